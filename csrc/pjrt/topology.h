// A description of devices to compile for, which need not be present.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pjrt/plugin.h"

namespace torch_tpu::pjrt {

struct DeviceDescription {
  int id = -1;
  int process_index = 0;
  std::string kind;             // "TPU v5 lite"
  std::vector<int64_t> coords;  // position in the mesh; empty where the plugin has none
  int64_t core_on_chip = 0;
  NamedValues attributes;  // all of them, those above included
};

// Owns a topology. Move-only; const methods are thread-safe.
class Topology {
 public:
  // A topology by name, "v5e:2x2" or "tpu7x:2x2x1", and options ("num_slices", "wrap", ...). Fails
  // with the plugin's error on an unknown name or option, and with UNIMPLEMENTED on plugins that
  // have no topologies (CPU). libtpu ends the process when a program is compiled for a v5e wider
  // than 16: that is refused here with INVALID_ARGUMENT.
  static Result<Topology> create(const Plugin& plugin, const std::string& name,
                                 const NamedValues& options = {});

  Topology(Topology&& other) noexcept
      : api_(other.api_), topology_(std::exchange(other.topology_, nullptr)) {}
  Topology& operator=(Topology&& other) noexcept;
  ~Topology();

  PJRT_TopologyDescription* get() const { return topology_; }

  Result<std::vector<DeviceDescription>> devices() const;
  Result<NamedValues> attributes() const;  // "device_memory_bytes_limit", "wrap", "twist"
  Result<std::string> platform_name() const;
  Result<std::string> platform_version() const;
  Result<std::string> serialize() const;

 private:
  Topology(const Api& api, PJRT_TopologyDescription* topology) : api_(&api), topology_(topology) {}

  const Api* api_;
  PJRT_TopologyDescription* topology_;
};

}  // namespace torch_tpu::pjrt
