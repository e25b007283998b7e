// Creating a client and reading its devices.
#include "pjrt/client.h"

#include <fstream>

namespace torch_tpu::pjrt {
namespace {

// Code compiled for this processor may not run on another: its model and features, as one number.
std::string host_cpu_key() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, features;
  while (std::getline(file, line) && !line.empty()) {
    if (line.starts_with("model name") || line.starts_with("flags") ||
        line.starts_with("Features")) {
      features += line;
    }
  }
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : features) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return std::to_string(hash);
}

// The options to create a client of `plugin` with: cpu_device_count is known to the CPU plugin
// alone.
NamedValues create_values(const Plugin& plugin, const ClientOptions& options) {
  NamedValues values = options.create_options;
  if (!plugin.is_libtpu()) values.emplace("cpu_device_count", options.cpu_device_count);
  return values;
}

}  // namespace

Device::Device(const Api& api, PJRT_Device* device, int ordinal)
    : api_(&api), device_(device), ordinal_(ordinal) {
  PJRT_Device_GetDescription_Args description = {};
  description.struct_size = PJRT_Device_GetDescription_Args_STRUCT_SIZE;
  description.device = device;
  if (!to_status(api, api.PJRT_Device_GetDescription(&description)).ok()) return;

  PJRT_DeviceDescription_Id_Args id = {};
  id.struct_size = PJRT_DeviceDescription_Id_Args_STRUCT_SIZE;
  id.device_description = description.device_description;
  if (to_status(api, api.PJRT_DeviceDescription_Id(&id)).ok()) id_ = id.id;

  PJRT_DeviceDescription_ProcessIndex_Args process = {};
  process.struct_size = PJRT_DeviceDescription_ProcessIndex_Args_STRUCT_SIZE;
  process.device_description = description.device_description;
  if (to_status(api, api.PJRT_DeviceDescription_ProcessIndex(&process)).ok()) {
    process_index_ = process.process_index;
  }

  PJRT_DeviceDescription_Kind_Args kind = {};
  kind.struct_size = PJRT_DeviceDescription_Kind_Args_STRUCT_SIZE;
  kind.device_description = description.device_description;
  if (to_status(api, api.PJRT_DeviceDescription_Kind(&kind)).ok()) {
    kind_.assign(kind.device_kind, kind.device_kind_size);
  }

  PJRT_DeviceDescription_Attributes_Args attributes = {};
  attributes.struct_size = PJRT_DeviceDescription_Attributes_Args_STRUCT_SIZE;
  attributes.device_description = description.device_description;
  if (to_status(api, api.PJRT_DeviceDescription_Attributes(&attributes)).ok()) {
    attributes_ = from_c(attributes.attributes, attributes.num_attributes);
  }

  PJRT_Device_LocalHardwareId_Args local = {};
  local.struct_size = PJRT_Device_LocalHardwareId_Args_STRUCT_SIZE;
  local.device = device;
  if (to_status(api, api.PJRT_Device_LocalHardwareId(&local)).ok()) {
    local_hardware_id_ = local.local_hardware_id;
  }
}

Result<MemoryStats> Device::memory_stats() const {
  PJRT_Device_MemoryStats_Args args = {};
  args.struct_size = PJRT_Device_MemoryStats_Args_STRUCT_SIZE;
  args.device = device_;
  if (PJRT_Error* error = api_->PJRT_Device_MemoryStats(&args)) return take_error(*api_, error);
  const auto when = [](bool is_set, int64_t value) {
    return is_set ? std::optional<int64_t>(value) : std::nullopt;
  };
  MemoryStats stats;
  stats.bytes_in_use = args.bytes_in_use;
  stats.peak_bytes_in_use = when(args.peak_bytes_in_use_is_set, args.peak_bytes_in_use);
  stats.num_allocs = when(args.num_allocs_is_set, args.num_allocs);
  stats.largest_alloc_size = when(args.largest_alloc_size_is_set, args.largest_alloc_size);
  stats.bytes_limit = when(args.bytes_limit_is_set, args.bytes_limit);
  stats.bytes_reserved = when(args.bytes_reserved_is_set, args.bytes_reserved);
  stats.largest_free_block_bytes =
      when(args.largest_free_block_bytes_is_set, args.largest_free_block_bytes);
  return stats;
}

Result<std::unique_ptr<Client>> Client::create(const Plugin& plugin, const ClientOptions& options) {
  const NamedValues values = create_values(plugin, options);
  const std::vector<PJRT_NamedValue> c_values = to_c(values);
  PJRT_Client_Create_Args args = {};
  args.struct_size = PJRT_Client_Create_Args_STRUCT_SIZE;
  args.create_options = c_values.data();
  args.num_options = c_values.size();
  const Api& api = plugin.api();
  if (PJRT_Error* error = api.PJRT_Client_Create(&args)) {
    return take_error(api, error)
        .with_prefix("cannot start the PJRT plugin \"" + plugin.path() + "\"");
  }
  std::unique_ptr<Client> client(new Client(plugin, args.client));
  Status status = client->read_properties();
  if (!status.ok()) return status;
  return client;
}

Client::~Client() {
  PJRT_Client_Destroy_Args args = {};
  args.struct_size = PJRT_Client_Destroy_Args_STRUCT_SIZE;
  args.client = client_;
  (void)to_status(api(), api().PJRT_Client_Destroy(&args));
}

Status Client::read_properties() {
  PJRT_Client_PlatformName_Args name = {};
  name.struct_size = PJRT_Client_PlatformName_Args_STRUCT_SIZE;
  name.client = client_;
  if (PJRT_Error* error = api().PJRT_Client_PlatformName(&name)) return take_error(api(), error);
  platform_name_.assign(name.platform_name, name.platform_name_size);

  PJRT_Client_PlatformVersion_Args version = {};
  version.struct_size = PJRT_Client_PlatformVersion_Args_STRUCT_SIZE;
  version.client = client_;
  if (PJRT_Error* error = api().PJRT_Client_PlatformVersion(&version))
    return take_error(api(), error);
  platform_version_.assign(version.platform_version, version.platform_version_size);

  PJRT_Client_ProcessIndex_Args process = {};
  process.struct_size = PJRT_Client_ProcessIndex_Args_STRUCT_SIZE;
  process.client = client_;
  if (PJRT_Error* error = api().PJRT_Client_ProcessIndex(&process)) return take_error(api(), error);
  process_index_ = process.process_index;

  PJRT_Client_Devices_Args all = {};
  all.struct_size = PJRT_Client_Devices_Args_STRUCT_SIZE;
  all.client = client_;
  if (PJRT_Error* error = api().PJRT_Client_Devices(&all)) return take_error(api(), error);
  num_global_devices_ = static_cast<int>(all.num_devices);

  PJRT_Client_AddressableDevices_Args local = {};
  local.struct_size = PJRT_Client_AddressableDevices_Args_STRUCT_SIZE;
  local.client = client_;
  if (PJRT_Error* error = api().PJRT_Client_AddressableDevices(&local))
    return take_error(api(), error);
  devices_.reserve(local.num_addressable_devices);
  for (size_t i = 0; i < local.num_addressable_devices; ++i) {
    devices_.emplace_back(api(), local.addressable_devices[i], static_cast<int>(i));
  }
  if (devices_.empty()) {
    return Status(Code::kNotFound, "the PJRT plugin \"" + plugin_.path() + "\" found no device.");
  }

  const auto declared = plugin_.attributes().find("host_visible_memory");
  host_visible_memory_ = platform_name_ == "cpu" || (declared != plugin_.attributes().end() &&
                                                     declared->second == Value(true));
  return Status();
}

const std::string& Client::cache_key() const {
  std::call_once(cache_key_once_, [this] {
    cache_key_ = plugin_.cache_key() + " " + platform_name_ + " " + platform_version_ + " " +
                 devices_.front().kind();
    if (host_visible_memory_) cache_key_ += " " + host_cpu_key();
  });
  return cache_key_;
}

}  // namespace torch_tpu::pjrt
