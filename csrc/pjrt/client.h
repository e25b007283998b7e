// A PJRT client and its devices.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pjrt/plugin.h"
#include "pjrt/status.h"

namespace torch_tpu::pjrt {

struct ClientOptions {
  int64_t cpu_device_count =
      1;  // devices of the CPU plugin; other plugins take their number from the host
  NamedValues create_options;  // passed on as they are; override what this layer sets
};

struct MemoryStats {
  int64_t bytes_in_use = 0;
  std::optional<int64_t> peak_bytes_in_use;
  std::optional<int64_t> num_allocs;
  std::optional<int64_t> largest_alloc_size;
  std::optional<int64_t> bytes_limit;
  std::optional<int64_t> bytes_reserved;
  std::optional<int64_t> largest_free_block_bytes;
};

// A device of a client: a handle, owned by the client and valid as long as it is. Immutable and
// thread-safe.
class Device {
 public:
  Device(const Api& api, PJRT_Device* device, int ordinal);

  PJRT_Device* get() const { return device_; }
  int id() const { return id_; }  // global, as in a device assignment
  int ordinal() const {
    return ordinal_;
  }  // position among the addressable devices of the client: tpu:<ordinal>
  int local_hardware_id() const { return local_hardware_id_; }  // -1 where the plugin has none
  int process_index() const { return process_index_; }
  const std::string& kind() const { return kind_; }  // "TPU v5 lite", "cpu"
  const NamedValues& attributes() const { return attributes_; }

  // What the plugin knows about the device's memory now. UNIMPLEMENTED on plugins that do not count
  // (CPU).
  Result<MemoryStats> memory_stats() const;

 private:
  const Api* api_;
  PJRT_Device* device_;
  int ordinal_;
  int id_ = -1;
  int local_hardware_id_ = -1;
  int process_index_ = 0;
  std::string kind_;
  NamedValues attributes_;
};

// Owns a client: must outlive every buffer, executable and event made from it. Every method is
// thread-safe.
class Client {
 public:
  // Starts the plugin's runtime. On libtpu without a TPU fails with NOT_FOUND.
  static Result<std::unique_ptr<Client>> create(const Plugin& plugin,
                                                const ClientOptions& options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Plugin& plugin() const { return plugin_; }
  const Api& api() const { return plugin_.api(); }
  PJRT_Client* get() const { return client_; }

  const std::vector<Device>& devices() const {
    return devices_;
  }  // the addressable ones, by ordinal
  int num_devices() const { return static_cast<int>(devices_.size()); }
  int num_global_devices() const { return num_global_devices_; }
  int process_index() const { return process_index_; }
  const std::string& platform_name() const { return platform_name_; }  // "cpu", "tpu"
  const std::string& platform_version() const { return platform_version_; }
  // Whether unsafe_pointer() of a ready buffer can be read by the host.
  bool host_visible_memory() const { return host_visible_memory_; }
  // Names the compiler, the device kind and, where programs are machine code for it, the host's
  // processor: a program serialized under one key may be loaded under that key alone. The first
  // call reads the plugin's file (Plugin::file_hash).
  const std::string& cache_key() const;

 private:
  Client(const Plugin& plugin, PJRT_Client* client) : plugin_(plugin), client_(client) {}
  Status read_properties();

  const Plugin& plugin_;
  PJRT_Client* client_;
  std::vector<Device> devices_;
  int num_global_devices_ = 0;
  int process_index_ = 0;
  std::string platform_name_;
  std::string platform_version_;
  bool host_visible_memory_ = false;
  mutable std::once_flag cache_key_once_;
  mutable std::string cache_key_;
};

}  // namespace torch_tpu::pjrt
