// Topologies and the descriptions of their devices.
#include "pjrt/topology.h"

#include <algorithm>
#include <cstdlib>

namespace torch_tpu::pjrt {
namespace {

constexpr int64_t kWidestV5e = 16;

// libtpu aborts when it compiles for a v5e wider than 16, so such a name is refused here.
bool is_too_wide_v5e(const std::string& name) {
  if (!name.starts_with("v5e")) return false;
  int64_t size = 0;
  for (size_t i = 4; i < name.size(); ++i) {
    if (name[i] >= '0' && name[i] <= '9') {
      size = std::min<int64_t>(size * 10 + (name[i] - '0'), kWidestV5e + 1);
      if (size > kWidestV5e) return true;
    } else {
      size = 0;
    }
  }
  return false;
}

Result<DeviceDescription> describe(const Api& api, PJRT_DeviceDescription* description) {
  DeviceDescription result;
  PJRT_DeviceDescription_Id_Args id = {};
  id.struct_size = PJRT_DeviceDescription_Id_Args_STRUCT_SIZE;
  id.device_description = description;
  if (PJRT_Error* error = api.PJRT_DeviceDescription_Id(&id)) return take_error(api, error);
  result.id = id.id;

  PJRT_DeviceDescription_ProcessIndex_Args process = {};
  process.struct_size = PJRT_DeviceDescription_ProcessIndex_Args_STRUCT_SIZE;
  process.device_description = description;
  if (PJRT_Error* error = api.PJRT_DeviceDescription_ProcessIndex(&process))
    return take_error(api, error);
  result.process_index = process.process_index;

  PJRT_DeviceDescription_Kind_Args kind = {};
  kind.struct_size = PJRT_DeviceDescription_Kind_Args_STRUCT_SIZE;
  kind.device_description = description;
  if (PJRT_Error* error = api.PJRT_DeviceDescription_Kind(&kind)) return take_error(api, error);
  result.kind.assign(kind.device_kind, kind.device_kind_size);

  PJRT_DeviceDescription_Attributes_Args attributes = {};
  attributes.struct_size = PJRT_DeviceDescription_Attributes_Args_STRUCT_SIZE;
  attributes.device_description = description;
  if (PJRT_Error* error = api.PJRT_DeviceDescription_Attributes(&attributes)) {
    return take_error(api, error);
  }
  result.attributes = from_c(attributes.attributes, attributes.num_attributes);
  if (const auto found = result.attributes.find("coords"); found != result.attributes.end()) {
    if (const auto* coords = std::get_if<std::vector<int64_t>>(&found->second))
      result.coords = *coords;
  }
  if (const auto found = result.attributes.find("core_on_chip"); found != result.attributes.end()) {
    if (const auto* core = std::get_if<int64_t>(&found->second)) result.core_on_chip = *core;
  }
  return result;
}

}  // namespace

Result<Topology> Topology::create(const Plugin& plugin, const std::string& name,
                                  const NamedValues& options) {
  if (is_too_wide_v5e(name)) {
    return Status(Code::kInvalidArgument, "the topology " + name + " is wider than the " +
                                              std::to_string(kWidestV5e) + " chips a v5e pod has");
  }
  const std::vector<PJRT_NamedValue> c_options = to_c(options);
  PJRT_TopologyDescription_Create_Args args = {};
  args.struct_size = PJRT_TopologyDescription_Create_Args_STRUCT_SIZE;
  args.topology_name = name.c_str();
  args.topology_name_size = name.size();
  args.create_options = c_options.data();
  args.num_options = c_options.size();
  const Api& api = plugin.api();
  if (PJRT_Error* error = api.PJRT_TopologyDescription_Create(&args)) {
    return take_error(api, error).with_prefix("topology \"" + name + "\"");
  }
  return Topology(api, args.topology);
}

Topology& Topology::operator=(Topology&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(topology_, other.topology_);
  return *this;
}

Topology::~Topology() {
  if (topology_ == nullptr) return;
  PJRT_TopologyDescription_Destroy_Args args = {};
  args.struct_size = PJRT_TopologyDescription_Destroy_Args_STRUCT_SIZE;
  args.topology = topology_;
  (void)to_status(*api_, api_->PJRT_TopologyDescription_Destroy(&args));
}

Result<std::vector<DeviceDescription>> Topology::devices() const {
  PJRT_TopologyDescription_GetDeviceDescriptions_Args args = {};
  args.struct_size = PJRT_TopologyDescription_GetDeviceDescriptions_Args_STRUCT_SIZE;
  args.topology = topology_;
  if (PJRT_Error* error = api_->PJRT_TopologyDescription_GetDeviceDescriptions(&args)) {
    return take_error(*api_, error);
  }
  std::vector<DeviceDescription> devices;
  devices.reserve(args.num_descriptions);
  for (size_t i = 0; i < args.num_descriptions; ++i) {
    Result<DeviceDescription> device = describe(*api_, args.descriptions[i]);
    if (!device.ok()) return device.status();
    devices.push_back(std::move(device).value());
  }
  return devices;
}

Result<NamedValues> Topology::attributes() const {
  PJRT_TopologyDescription_Attributes_Args args = {};
  args.struct_size = PJRT_TopologyDescription_Attributes_Args_STRUCT_SIZE;
  args.topology = topology_;
  if (PJRT_Error* error = api_->PJRT_TopologyDescription_Attributes(&args)) {
    return take_error(*api_, error);
  }
  return from_c(args.attributes, args.num_attributes);
}

Result<std::string> Topology::platform_name() const {
  PJRT_TopologyDescription_PlatformName_Args args = {};
  args.struct_size = PJRT_TopologyDescription_PlatformName_Args_STRUCT_SIZE;
  args.topology = topology_;
  if (PJRT_Error* error = api_->PJRT_TopologyDescription_PlatformName(&args)) {
    return take_error(*api_, error);
  }
  return std::string(args.platform_name, args.platform_name_size);
}

Result<std::string> Topology::platform_version() const {
  PJRT_TopologyDescription_PlatformVersion_Args args = {};
  args.struct_size = PJRT_TopologyDescription_PlatformVersion_Args_STRUCT_SIZE;
  args.topology = topology_;
  if (PJRT_Error* error = api_->PJRT_TopologyDescription_PlatformVersion(&args)) {
    return take_error(*api_, error);
  }
  return std::string(args.platform_version, args.platform_version_size);
}

Result<std::string> Topology::serialize() const {
  PJRT_TopologyDescription_Serialize_Args args = {};
  args.struct_size = PJRT_TopologyDescription_Serialize_Args_STRUCT_SIZE;
  args.topology = topology_;
  if (PJRT_Error* error = api_->PJRT_TopologyDescription_Serialize(&args)) {
    return take_error(*api_, error);
  }
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_topology_deleter(args.serialized_topology);
  return bytes;
}

}  // namespace torch_tpu::pjrt
