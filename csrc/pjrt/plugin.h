// The PJRT plugin: finding it, loading it once for the life of the process, and naming it in cache
// keys.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "pjrt/named_value.h"
#include "pjrt/status.h"

namespace torch_tpu::pjrt {

// The number of TPU chips on the PCI bus of this host. Reads sysfs only: does not start libtpu.
int count_tpu_chips(const std::string& pci_devices = "/sys/bus/pci/devices");

// Where the installed plugins are; empty for one that is not installed.
struct PluginCandidates {
  std::string libtpu_path;
  std::string cpu_path;
};

struct PluginChoice {
  std::string path;
  bool is_tpu = false;  // chosen as libtpu, by variable or because the host has TPU chips
};

// Chooses the plugin: $TORCH_TPU_PJRT_PLUGIN, else $TPU_LIBRARY_PATH, else libtpu where the host
// has TPU chips, else the CPU plugin. Loads nothing. Thread-safe. Fails with NOT_FOUND and a
// sentence that says what to install or correct.
Result<PluginChoice> discover(const PluginCandidates& candidates);

// A loaded plugin. Lives to the end of the process (plugins are never unloaded); every method is
// thread-safe.
class Plugin {
 public:
  // Loads and initialises the plugin at `path`, or returns the one loaded from there before. For
  // libtpu the environment variables it needs are set first where the user has not set them. Fails
  // with NOT_FOUND when the file cannot be loaded, FAILED_PRECONDITION when its PJRT version is not
  // supported, or with the plugin's own error; a failed load is tried again at the next call.
  static Result<const Plugin*> load(const std::string& path);

  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const Api& api() const { return *api_; }
  const std::string& path() const { return path_; }
  bool is_libtpu() const { return is_libtpu_; }
  int api_major() const { return api_->pjrt_api_version.major_version; }
  int api_minor() const { return api_->pjrt_api_version.minor_version; }
  const NamedValues& attributes() const { return attributes_; }

  // Names the plugin's code: equal for copies of one build, different for two builds. From the ELF
  // build id and the file size, or from the whole content where there is no build id. Computed at
  // the first call (up to 0.1 s for a plugin of hundreds of megabytes); 0 where the file has been
  // removed since it was loaded.
  uint64_t file_hash() const;
  // The file hash and the PJRT version as text, for cache keys; the client adds its platform
  // version.
  std::string cache_key() const;

 private:
  Plugin() = default;

  const Api* api_ = nullptr;
  std::string path_;
  bool is_libtpu_ = false;
  NamedValues attributes_;
  mutable std::once_flag hash_once_;
  mutable uint64_t file_hash_ = 0;
};

// The hash behind Plugin::file_hash. Fails with NOT_FOUND when the file cannot be read.
Result<uint64_t> hash_plugin_file(const std::string& path);

}  // namespace torch_tpu::pjrt
