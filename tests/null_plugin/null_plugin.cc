// A PJRT plugin that executes nothing: programs give zero-filled buffers of the right types at
// once, so that what a benchmark measures is the caller's own cost. Copies, donation and
// serialization work; the rest is UNIMPLEMENTED.
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "null_program.h"
#include "pjrt_c_api.h"

using null_plugin::parse_program;
using null_plugin::Program;
using null_plugin::Shape;

// ---- The opaque types of the C API ----

struct PJRT_Error {
  PJRT_Error_Code code;
  std::string message;
};

struct PJRT_Event {};

struct PJRT_DeviceDescription {
  int id;
};

struct PJRT_Device {
  PJRT_DeviceDescription description;
};

struct PJRT_Client {
  std::vector<PJRT_Device> devices;
  std::vector<PJRT_Device*> pointers;
};

// Followed, in the same allocation, by its dimensions and, where it is small, by its content.
struct PJRT_Buffer {
  void* data;
  void* separate;  // the allocation of a large content, freed when the buffer is donated; null for
                   // a small one
  size_t size;
  PJRT_Device* device;
  PJRT_Buffer_Type type;
  int rank;
  bool deleted;
  int64_t* dims() { return reinterpret_cast<int64_t*>(this + 1); }
};

struct PJRT_Executable {
  std::shared_ptr<const Program> program;
};

struct PJRT_LoadedExecutable {
  std::shared_ptr<const Program> program;
  PJRT_Device* device;
};

struct PJRT_SerializedExecutable {
  std::string bytes;
};

namespace {

constexpr char kPlatform[] = "null";
constexpr char kVersion[] = "null 1";
constexpr std::string_view kMagic = "null-pjrt-program-1\n";
constexpr size_t kLargestInline = size_t{1} << 16;
constexpr size_t kDataAlignment = 16;

PJRT_Event g_ready;  // the only event: everything is done at once

PJRT_Error* fail(PJRT_Error_Code code, std::string message) {
  return new PJRT_Error{code, std::move(message)};
}

template <typename Args>
PJRT_Error* unsupported(Args*) {
  return fail(PJRT_Error_Code_UNIMPLEMENTED, "the null plugin does not have this PJRT call");
}

size_t data_offset(int rank) {
  const size_t header = sizeof(PJRT_Buffer) + static_cast<size_t>(rank) * sizeof(int64_t);
  return (header + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
}

// A buffer with zeros, or, where `content` is given, with that allocation as its content.
PJRT_Buffer* new_buffer(PJRT_Buffer_Type type, const int64_t* dims, int rank, size_t size,
                        PJRT_Device* device, void* content = nullptr) {
  const size_t offset = data_offset(rank);
  const bool is_inline = content == nullptr && size <= kLargestInline;
  auto* buffer = static_cast<PJRT_Buffer*>(calloc(1, offset + (is_inline ? size : 0)));
  if (is_inline) {
    buffer->data = reinterpret_cast<char*>(buffer) + offset;
  } else {
    buffer->separate = content != nullptr ? content : calloc(1, size);
    buffer->data = buffer->separate;
  }
  buffer->size = size;
  buffer->device = device;
  buffer->type = type;
  buffer->rank = rank;
  for (int i = 0; i < rank; ++i) buffer->dims()[i] = dims[i];
  return buffer;
}

// Gives up the content of a donated buffer; returns it where it is an allocation of its own.
void* take_content(PJRT_Buffer* buffer) {
  buffer->deleted = true;
  buffer->data = nullptr;
  return std::exchange(buffer->separate, nullptr);
}

PJRT_Error* dead_buffer() {
  return fail(PJRT_Error_Code_INVALID_ARGUMENT, "the buffer has been deleted or donated");
}

// ---- Errors, events, plugin ----

void error_destroy(PJRT_Error_Destroy_Args* args) { delete args->error; }

void error_message(PJRT_Error_Message_Args* args) {
  args->message = args->error->message.data();
  args->message_size = args->error->message.size();
}

PJRT_Error* error_code(PJRT_Error_GetCode_Args* args) {
  args->code = args->error->code;
  return nullptr;
}

template <typename Args>
PJRT_Error* succeed(Args*) {
  return nullptr;
}

PJRT_Error* event_is_ready(PJRT_Event_IsReady_Args* args) {
  args->is_ready = true;
  return nullptr;
}

PJRT_Error* event_on_ready(PJRT_Event_OnReady_Args* args) {
  args->callback(nullptr, args->user_arg);
  return nullptr;
}

PJRT_NamedValue flag(const char* name, bool value) {
  PJRT_NamedValue result = {};
  result.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  result.name = name;
  result.name_size = strlen(name);
  result.type = PJRT_NamedValue_kBool;
  result.bool_value = value;
  result.value_size = 1;
  return result;
}

PJRT_Error* plugin_attributes(PJRT_Plugin_Attributes_Args* args) {
  static const PJRT_NamedValue attributes[] = {flag("host_visible_memory", true),
                                               flag("executes", false)};
  args->attributes = attributes;
  args->num_attributes = std::size(attributes);
  return nullptr;
}

// ---- Client and devices ----

PJRT_Error* client_create(PJRT_Client_Create_Args* args) {
  int64_t count = 1;
  for (size_t i = 0; i < args->num_options; ++i) {
    const PJRT_NamedValue& option = args->create_options[i];
    if (std::string_view(option.name, option.name_size) == "cpu_device_count" &&
        option.type == PJRT_NamedValue_kInt64) {
      count = option.int64_value;
    }
  }
  if (count < 1)
    return fail(PJRT_Error_Code_INVALID_ARGUMENT, "cpu_device_count must be at least 1");
  auto client = std::make_unique<PJRT_Client>();
  client->devices.resize(static_cast<size_t>(count));
  for (PJRT_Device& device : client->devices) {
    device.description.id = static_cast<int>(client->pointers.size());
    client->pointers.push_back(&device);
  }
  args->client = client.release();
  return nullptr;
}

PJRT_Error* client_destroy(PJRT_Client_Destroy_Args* args) {
  delete args->client;
  return nullptr;
}

PJRT_Error* client_platform_name(PJRT_Client_PlatformName_Args* args) {
  args->platform_name = kPlatform;
  args->platform_name_size = strlen(kPlatform);
  return nullptr;
}

PJRT_Error* client_platform_version(PJRT_Client_PlatformVersion_Args* args) {
  args->platform_version = kVersion;
  args->platform_version_size = strlen(kVersion);
  return nullptr;
}

PJRT_Error* client_process_index(PJRT_Client_ProcessIndex_Args* args) {
  args->process_index = 0;
  return nullptr;
}

PJRT_Error* client_devices(PJRT_Client_Devices_Args* args) {
  args->devices = args->client->pointers.data();
  args->num_devices = args->client->pointers.size();
  return nullptr;
}

PJRT_Error* client_addressable_devices(PJRT_Client_AddressableDevices_Args* args) {
  args->addressable_devices = args->client->pointers.data();
  args->num_addressable_devices = args->client->pointers.size();
  return nullptr;
}

PJRT_Error* device_description(PJRT_Device_GetDescription_Args* args) {
  args->device_description = &args->device->description;
  return nullptr;
}

PJRT_Error* device_local_hardware_id(PJRT_Device_LocalHardwareId_Args* args) {
  args->local_hardware_id = args->device->description.id;
  return nullptr;
}

PJRT_Error* device_is_addressable(PJRT_Device_IsAddressable_Args* args) {
  args->is_addressable = true;
  return nullptr;
}

PJRT_Error* description_id(PJRT_DeviceDescription_Id_Args* args) {
  args->id = args->device_description->id;
  return nullptr;
}

PJRT_Error* description_process_index(PJRT_DeviceDescription_ProcessIndex_Args* args) {
  args->process_index = 0;
  return nullptr;
}

PJRT_Error* description_kind(PJRT_DeviceDescription_Kind_Args* args) {
  args->device_kind = kPlatform;
  args->device_kind_size = strlen(kPlatform);
  return nullptr;
}

PJRT_Error* description_attributes(PJRT_DeviceDescription_Attributes_Args* args) {
  args->attributes = nullptr;
  args->num_attributes = 0;
  return nullptr;
}

// ---- Programs ----

PJRT_Error* load_program(PJRT_Client* client, std::string text, PJRT_LoadedExecutable** out) {
  std::string problem;
  std::shared_ptr<const Program> program = parse_program(std::move(text), &problem);
  if (program == nullptr) return fail(PJRT_Error_Code_INVALID_ARGUMENT, problem);
  *out = new PJRT_LoadedExecutable{std::move(program), client->pointers.front()};
  return nullptr;
}

PJRT_Error* client_compile(PJRT_Client_Compile_Args* args) {
  return load_program(args->client, std::string(args->program->code, args->program->code_size),
                      &args->executable);
}

PJRT_Error* executable_load(PJRT_Executable_DeserializeAndLoad_Args* args) {
  const std::string_view bytes(args->serialized_executable, args->serialized_executable_size);
  if (!bytes.starts_with(kMagic)) {
    return fail(PJRT_Error_Code_INVALID_ARGUMENT, "not a serialized program of the null plugin");
  }
  return load_program(args->client, std::string(bytes.substr(kMagic.size())),
                      &args->loaded_executable);
}

PJRT_Error* executable_serialize(PJRT_Executable_Serialize_Args* args) {
  auto* serialized =
      new PJRT_SerializedExecutable{std::string(kMagic) + args->executable->program->text};
  args->serialized_bytes = serialized->bytes.data();
  args->serialized_bytes_size = serialized->bytes.size();
  args->serialized_executable = serialized;
  args->serialized_executable_deleter = [](PJRT_SerializedExecutable* exec) { delete exec; };
  return nullptr;
}

PJRT_Error* executable_destroy(PJRT_Executable_Destroy_Args* args) {
  delete args->executable;
  return nullptr;
}

PJRT_Error* executable_name(PJRT_Executable_Name_Args* args) {
  args->executable_name = "main";
  args->executable_name_size = 4;
  return nullptr;
}

PJRT_Error* executable_num_outputs(PJRT_Executable_NumOutputs_Args* args) {
  args->num_outputs = args->executable->program->outputs.size();
  return nullptr;
}

PJRT_Error* executable_output_types(PJRT_Executable_OutputElementTypes_Args* args) {
  const Program& program = *args->executable->program;
  args->output_types =
      const_cast<PJRT_Buffer_Type*>(program.output_types.data());  // read-only in the C API
  args->num_output_types = program.output_types.size();
  return nullptr;
}

PJRT_Error* executable_output_dims(PJRT_Executable_OutputDimensions_Args* args) {
  const Program& program = *args->executable->program;
  args->num_outputs = program.outputs.size();
  args->dims = program.output_dims.data();
  args->dim_sizes = program.output_ranks.data();
  return nullptr;
}

PJRT_Error* executable_memory(PJRT_Executable_GetCompiledMemoryStats_Args* args) {
  const Program& program = *args->executable->program;
  const auto total = [](const std::vector<Shape>& shapes) {
    int64_t bytes = 0;
    for (const Shape& shape : shapes) bytes += static_cast<int64_t>(shape.size);
    return bytes;
  };
  args->generated_code_size_in_bytes = 0;
  args->argument_size_in_bytes = total(program.arguments);
  args->output_size_in_bytes = total(program.outputs);
  args->alias_size_in_bytes = 0;
  for (const Program::Donation& donation : program.donations) {
    args->alias_size_in_bytes += static_cast<int64_t>(program.arguments[donation.argument].size);
  }
  args->temp_size_in_bytes = 0;
  args->host_generated_code_size_in_bytes = 0;
  args->host_argument_size_in_bytes = 0;
  args->host_output_size_in_bytes = 0;
  args->host_alias_size_in_bytes = 0;
  args->host_temp_size_in_bytes = 0;
  return nullptr;
}

PJRT_Error* executable_cost(PJRT_Executable_GetCostAnalysis_Args* args) {
  args->num_properties = 0;
  args->properties = nullptr;
  return nullptr;
}

PJRT_Error* executable_fingerprint(PJRT_Executable_Fingerprint_Args* args) {
  const std::string& fingerprint = args->executable->program->fingerprint;
  args->executable_fingerprint = fingerprint.data();
  args->executable_fingerprint_size = fingerprint.size();
  return nullptr;
}

PJRT_Error* loaded_destroy(PJRT_LoadedExecutable_Destroy_Args* args) {
  delete args->executable;
  return nullptr;
}

PJRT_Error* loaded_get_executable(PJRT_LoadedExecutable_GetExecutable_Args* args) {
  args->executable = new PJRT_Executable{args->loaded_executable->program};
  return nullptr;
}

bool may_donate(const PJRT_ExecuteOptions& options, size_t argument) {
  for (size_t i = 0; i < options.num_non_donatable_input_indices; ++i) {
    if (options.non_donatable_input_indices[i] == static_cast<int64_t>(argument)) return false;
  }
  return true;
}

PJRT_Error* loaded_execute(PJRT_LoadedExecutable_Execute_Args* args) {
  const PJRT_LoadedExecutable& executable = *args->executable;
  const Program& program = *executable.program;
  if (args->num_devices != 1 || args->num_args != program.arguments.size()) {
    return fail(PJRT_Error_Code_INVALID_ARGUMENT,
                "the program takes " + std::to_string(program.arguments.size()) + " arguments, " +
                    std::to_string(args->num_args) + " were given");
  }
  PJRT_Buffer* const* inputs = args->argument_lists[0];
  PJRT_Buffer** outputs = args->output_lists[0];
  PJRT_Device* device = args->execute_device;
  if (device == nullptr) device = args->num_args > 0 ? inputs[0]->device : executable.device;
  for (size_t i = 0; i < args->num_args; ++i) {
    if (inputs[i]->deleted) return dead_buffer();
  }
  if (program.donations.empty()) {
    size_t i = 0;
    for (const Shape& shape : program.outputs) {
      outputs[i++] = new_buffer(shape.type, shape.dims.data(), static_cast<int>(shape.dims.size()),
                                shape.size, device);
    }
  } else {
    for (size_t i = 0; i < program.outputs.size(); ++i) outputs[i] = nullptr;
    for (const Program::Donation& donation : program.donations) {
      if (!may_donate(*args->options, donation.argument)) continue;
      void* content = take_content(inputs[donation.argument]);
      if (content == nullptr) continue;
      const Shape& shape = program.outputs[donation.output];
      outputs[donation.output] =
          new_buffer(shape.type, shape.dims.data(), static_cast<int>(shape.dims.size()), shape.size,
                     device, content);
    }
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      if (outputs[i] != nullptr) continue;
      const Shape& shape = program.outputs[i];
      outputs[i] = new_buffer(shape.type, shape.dims.data(), static_cast<int>(shape.dims.size()),
                              shape.size, device);
    }
  }
  if (args->device_complete_events != nullptr) args->device_complete_events[0] = &g_ready;
  return nullptr;
}

// ---- Buffers ----

// Gathers a strided host array into row-major order.
void gather(const char* from, const int64_t* dims, const int64_t* strides, int rank, size_t element,
            char** to) {
  if (rank == 0) {
    memcpy(*to, from, element);
    *to += element;
    return;
  }
  for (int64_t i = 0; i < dims[0]; ++i) {
    gather(from + i * strides[0], dims + 1, strides + 1, rank - 1, element, to);
  }
}

PJRT_Error* buffer_from_host(PJRT_Client_BufferFromHostBuffer_Args* args) {
  const size_t element = null_plugin::element_size(args->type);
  if (element == 0)
    return fail(PJRT_Error_Code_UNIMPLEMENTED, "element type not known to the null plugin");
  const int rank = static_cast<int>(args->num_dims);
  size_t size = element;
  for (int i = 0; i < rank; ++i) size *= static_cast<size_t>(args->dims[i]);
  PJRT_Buffer* buffer = new_buffer(args->type, args->dims, rank, size, args->device);
  if (args->num_byte_strides == 0) {
    if (size > 0) memcpy(buffer->data, args->data, size);
  } else {
    char* to = static_cast<char*>(buffer->data);
    gather(static_cast<const char*>(args->data), args->dims, args->byte_strides, rank, element,
           &to);
  }
  args->buffer = buffer;
  args->done_with_host_buffer = &g_ready;
  return nullptr;
}

PJRT_Error* buffer_destroy(PJRT_Buffer_Destroy_Args* args) {
  free(args->buffer->separate);
  free(args->buffer);
  return nullptr;
}

PJRT_Error* buffer_delete(PJRT_Buffer_Delete_Args* args) {
  free(take_content(args->buffer));
  return nullptr;
}

PJRT_Error* buffer_is_deleted(PJRT_Buffer_IsDeleted_Args* args) {
  args->is_deleted = args->buffer->deleted;
  return nullptr;
}

PJRT_Error* buffer_element_type(PJRT_Buffer_ElementType_Args* args) {
  args->type = args->buffer->type;
  return nullptr;
}

PJRT_Error* buffer_dimensions(PJRT_Buffer_Dimensions_Args* args) {
  args->dims = args->buffer->dims();
  args->num_dims = static_cast<size_t>(args->buffer->rank);
  return nullptr;
}

PJRT_Error* buffer_unpadded_dimensions(PJRT_Buffer_UnpaddedDimensions_Args* args) {
  args->unpadded_dims = args->buffer->dims();
  args->num_dims = static_cast<size_t>(args->buffer->rank);
  return nullptr;
}

PJRT_Error* buffer_dynamic_dimensions(PJRT_Buffer_DynamicDimensionIndices_Args* args) {
  args->dynamic_dim_indices = nullptr;
  args->num_dynamic_dims = 0;
  return nullptr;
}

PJRT_Error* buffer_size(PJRT_Buffer_OnDeviceSizeInBytes_Args* args) {
  args->on_device_size_in_bytes = args->buffer->size;
  return nullptr;
}

PJRT_Error* buffer_device(PJRT_Buffer_Device_Args* args) {
  args->device = args->buffer->device;
  return nullptr;
}

PJRT_Error* buffer_is_on_cpu(PJRT_Buffer_IsOnCpu_Args* args) {
  args->is_on_cpu = true;
  return nullptr;
}

PJRT_Error* buffer_ready_event(PJRT_Buffer_ReadyEvent_Args* args) {
  if (args->buffer->deleted) return dead_buffer();
  args->event = &g_ready;
  return nullptr;
}

PJRT_Error* buffer_unsafe_pointer(PJRT_Buffer_UnsafePointer_Args* args) {
  if (args->buffer->deleted) return dead_buffer();
  args->buffer_pointer = reinterpret_cast<uintptr_t>(args->buffer->data);
  return nullptr;
}

PJRT_Error* buffer_to_host(PJRT_Buffer_ToHostBuffer_Args* args) {
  if (args->src->deleted) return dead_buffer();
  if (args->dst == nullptr) {
    args->dst_size = args->src->size;
    return nullptr;
  }
  if (args->dst_size < args->src->size) {
    return fail(PJRT_Error_Code_INVALID_ARGUMENT, "the host array is smaller than the buffer");
  }
  memcpy(args->dst, args->src->data, args->src->size);
  args->event = &g_ready;
  return nullptr;
}

PJRT_Error* buffer_copy_to_device(PJRT_Buffer_CopyToDevice_Args* args) {
  PJRT_Buffer* from = args->buffer;
  if (from->deleted) return dead_buffer();
  args->dst_buffer = new_buffer(from->type, from->dims(), from->rank, from->size, args->dst_device);
  memcpy(args->dst_buffer->data, from->data, from->size);
  return nullptr;
}

// ---- The table ----

PJRT_Api make_api() {
  PJRT_Api api = {};
  api.struct_size = PJRT_Api_STRUCT_SIZE;
  api.pjrt_api_version.struct_size = PJRT_Api_Version_STRUCT_SIZE;
  api.pjrt_api_version.major_version = PJRT_API_MAJOR;
  api.pjrt_api_version.minor_version = PJRT_API_MINOR;
  api.PJRT_Error_Destroy = error_destroy;
  api.PJRT_Error_Message = error_message;
  api.PJRT_Error_GetCode = error_code;
  api.PJRT_Plugin_Initialize = succeed;
  api.PJRT_Plugin_Attributes = plugin_attributes;
  api.PJRT_Event_Destroy = succeed;
  api.PJRT_Event_IsReady = event_is_ready;
  api.PJRT_Event_Error = succeed;
  api.PJRT_Event_Await = succeed;
  api.PJRT_Event_OnReady = event_on_ready;
  api.PJRT_Client_Create = client_create;
  api.PJRT_Client_Destroy = client_destroy;
  api.PJRT_Client_PlatformName = client_platform_name;
  api.PJRT_Client_ProcessIndex = client_process_index;
  api.PJRT_Client_PlatformVersion = client_platform_version;
  api.PJRT_Client_Devices = client_devices;
  api.PJRT_Client_AddressableDevices = client_addressable_devices;
  api.PJRT_Client_LookupDevice = unsupported;
  api.PJRT_Client_LookupAddressableDevice = unsupported;
  api.PJRT_Client_AddressableMemories = unsupported;
  api.PJRT_Client_Compile = client_compile;
  api.PJRT_Client_DefaultDeviceAssignment = unsupported;
  api.PJRT_Client_BufferFromHostBuffer = buffer_from_host;
  api.PJRT_DeviceDescription_Id = description_id;
  api.PJRT_DeviceDescription_ProcessIndex = description_process_index;
  api.PJRT_DeviceDescription_Attributes = description_attributes;
  api.PJRT_DeviceDescription_Kind = description_kind;
  api.PJRT_DeviceDescription_DebugString = unsupported;
  api.PJRT_DeviceDescription_ToString = unsupported;
  api.PJRT_Device_GetDescription = device_description;
  api.PJRT_Device_IsAddressable = device_is_addressable;
  api.PJRT_Device_LocalHardwareId = device_local_hardware_id;
  api.PJRT_Device_AddressableMemories = unsupported;
  api.PJRT_Device_DefaultMemory = unsupported;
  api.PJRT_Device_MemoryStats = unsupported;
  api.PJRT_Memory_Id = unsupported;
  api.PJRT_Memory_Kind = unsupported;
  api.PJRT_Memory_DebugString = unsupported;
  api.PJRT_Memory_ToString = unsupported;
  api.PJRT_Memory_AddressableByDevices = unsupported;
  api.PJRT_Executable_Destroy = executable_destroy;
  api.PJRT_Executable_Name = executable_name;
  api.PJRT_Executable_NumReplicas = unsupported;
  api.PJRT_Executable_NumPartitions = unsupported;
  api.PJRT_Executable_NumOutputs = executable_num_outputs;
  api.PJRT_Executable_SizeOfGeneratedCodeInBytes = unsupported;
  api.PJRT_Executable_GetCostAnalysis = executable_cost;
  api.PJRT_Executable_OutputMemoryKinds = unsupported;
  api.PJRT_Executable_OptimizedProgram = unsupported;
  api.PJRT_Executable_Serialize = executable_serialize;
  api.PJRT_LoadedExecutable_Destroy = loaded_destroy;
  api.PJRT_LoadedExecutable_GetExecutable = loaded_get_executable;
  api.PJRT_LoadedExecutable_AddressableDevices = unsupported;
  api.PJRT_LoadedExecutable_Delete = unsupported;
  api.PJRT_LoadedExecutable_IsDeleted = unsupported;
  api.PJRT_LoadedExecutable_Execute = loaded_execute;
  api.PJRT_Executable_DeserializeAndLoad = executable_load;
  api.PJRT_LoadedExecutable_Fingerprint = unsupported;
  api.PJRT_Buffer_Destroy = buffer_destroy;
  api.PJRT_Buffer_ElementType = buffer_element_type;
  api.PJRT_Buffer_Dimensions = buffer_dimensions;
  api.PJRT_Buffer_UnpaddedDimensions = buffer_unpadded_dimensions;
  api.PJRT_Buffer_DynamicDimensionIndices = buffer_dynamic_dimensions;
  api.PJRT_Buffer_GetMemoryLayout = unsupported;
  api.PJRT_Buffer_OnDeviceSizeInBytes = buffer_size;
  api.PJRT_Buffer_Device = buffer_device;
  api.PJRT_Buffer_Memory = unsupported;
  api.PJRT_Buffer_Delete = buffer_delete;
  api.PJRT_Buffer_IsDeleted = buffer_is_deleted;
  api.PJRT_Buffer_CopyToDevice = buffer_copy_to_device;
  api.PJRT_Buffer_ToHostBuffer = buffer_to_host;
  api.PJRT_Buffer_IsOnCpu = buffer_is_on_cpu;
  api.PJRT_Buffer_ReadyEvent = buffer_ready_event;
  api.PJRT_Buffer_UnsafePointer = buffer_unsafe_pointer;
  api.PJRT_Buffer_IncreaseExternalReferenceCount = unsupported;
  api.PJRT_Buffer_DecreaseExternalReferenceCount = unsupported;
  api.PJRT_Buffer_OpaqueDeviceMemoryDataPointer = unsupported;
  api.PJRT_CopyToDeviceStream_Destroy = unsupported;
  api.PJRT_CopyToDeviceStream_AddChunk = unsupported;
  api.PJRT_CopyToDeviceStream_TotalBytes = unsupported;
  api.PJRT_CopyToDeviceStream_GranuleSize = unsupported;
  api.PJRT_CopyToDeviceStream_CurrentBytes = unsupported;
  api.PJRT_TopologyDescription_Create = unsupported;
  api.PJRT_TopologyDescription_Destroy = unsupported;
  api.PJRT_TopologyDescription_PlatformName = unsupported;
  api.PJRT_TopologyDescription_PlatformVersion = unsupported;
  api.PJRT_TopologyDescription_GetDeviceDescriptions = unsupported;
  api.PJRT_TopologyDescription_Serialize = unsupported;
  api.PJRT_TopologyDescription_Attributes = unsupported;
  api.PJRT_Compile = unsupported;
  api.PJRT_Executable_OutputElementTypes = executable_output_types;
  api.PJRT_Executable_OutputDimensions = executable_output_dims;
  api.PJRT_Buffer_CopyToMemory = unsupported;
  api.PJRT_Client_CreateViewOfDeviceBuffer = unsupported;
  api.PJRT_Executable_Fingerprint = executable_fingerprint;
  api.PJRT_Client_TopologyDescription = unsupported;
  api.PJRT_Executable_GetCompiledMemoryStats = executable_memory;
  api.PJRT_Memory_Kind_Id = unsupported;
  api.PJRT_ExecuteContext_Create = unsupported;
  api.PJRT_ExecuteContext_Destroy = unsupported;
  api.PJRT_Buffer_CopyRawToHost = unsupported;
  api.PJRT_AsyncHostToDeviceTransferManager_Destroy = unsupported;
  api.PJRT_AsyncHostToDeviceTransferManager_TransferData = unsupported;
  api.PJRT_Client_CreateBuffersForAsyncHostToDevice = unsupported;
  api.PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer = unsupported;
  api.PJRT_AsyncHostToDeviceTransferManager_Device = unsupported;
  api.PJRT_AsyncHostToDeviceTransferManager_BufferCount = unsupported;
  api.PJRT_AsyncHostToDeviceTransferManager_BufferSize = unsupported;
  api.PJRT_AsyncHostToDeviceTransferManager_SetBufferError = unsupported;
  api.PJRT_AsyncHostToDeviceTransferManager_AddMetadata = unsupported;
  api.PJRT_Client_DmaMap = unsupported;
  api.PJRT_Client_DmaUnmap = unsupported;
  api.PJRT_Client_CreateUninitializedBuffer = unsupported;
  api.PJRT_Client_UpdateGlobalProcessInfo = unsupported;
  api.PJRT_TopologyDescription_Deserialize = unsupported;
  api.PJRT_Client_CreateAliasBuffer = unsupported;
  api.PJRT_Client_FulfillAliasBuffer = unsupported;
  api.PJRT_LoadedExecutable_GetDeviceAssignment = unsupported;
  return api;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api api = make_api();
  return &api;
}
