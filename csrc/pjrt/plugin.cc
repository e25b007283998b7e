// Loading a plugin: environment, dlopen, version check, initialisation.
#include "pjrt/plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

namespace torch_tpu::pjrt {
namespace {

// The table must reach this far; entries behind it are asked for with TT_PJRT_HAS.
constexpr size_t kSmallestApi = offsetof(PJRT_Api, PJRT_Executable_OutputDimensions) +
                                sizeof(PJRT_Api::PJRT_Executable_OutputDimensions);

void set_unless_set(const char* name, const char* value) { setenv(name, value, /*overwrite=*/0); }

// libtpu reads these while it initialises. Without a TPU it would ask a cloud metadata server for
// minutes, lock a file so that a second process fails, and log that it knows no hosts. With a TPU
// it needs what it finds.
void prepare_environment_for_libtpu() {
  if (count_tpu_chips() > 0) return;
  set_unless_set("TPU_SKIP_MDS_QUERY", "1");
  set_unless_set("ALLOW_MULTIPLE_LIBTPU_LOAD", "1");
  set_unless_set("TPU_WORKER_HOSTNAMES", "localhost");
}

// The CPU plugin logs each of its create options to stderr at level 0.
void prepare_environment_for_cpu() { set_unless_set("TF_CPP_MIN_LOG_LEVEL", "1"); }

Result<const Api*> open_plugin(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return Status(Code::kNotFound, "cannot load the PJRT plugin \"" + path +
                                       "\": " + (reason == nullptr ? "unknown error" : reason));
  }
  const auto get_api = reinterpret_cast<const Api* (*)()>(dlsym(library, "GetPjrtApi"));
  if (get_api == nullptr) {
    return Status(Code::kNotFound,
                  "\"" + path + "\" is not a PJRT plugin: it has no function GetPjrtApi.");
  }
  const Api* api = get_api();
  if (api == nullptr)
    return Status(Code::kInternal, "GetPjrtApi of \"" + path + "\" gave nothing.");
  const PJRT_Api_Version& version = api->pjrt_api_version;
  if (api->struct_size < kSmallestApi || version.major_version != PJRT_API_MAJOR) {
    return Status(Code::kFailedPrecondition,
                  "the PJRT plugin \"" + path + "\" has PJRT version " +
                      std::to_string(version.major_version) + "." +
                      std::to_string(version.minor_version) + ", but " +
                      std::to_string(PJRT_API_MAJOR) + "." + std::to_string(PJRT_API_MINOR) +
                      " or a version compatible with it is needed: install a matching plugin.");
  }
  return api;
}

Result<NamedValues> initialize(const Api& api) {
  PJRT_Plugin_Initialize_Args init = {};
  init.struct_size = PJRT_Plugin_Initialize_Args_STRUCT_SIZE;
  if (PJRT_Error* error = api.PJRT_Plugin_Initialize(&init)) return take_error(api, error);
  PJRT_Plugin_Attributes_Args attributes = {};
  attributes.struct_size = PJRT_Plugin_Attributes_Args_STRUCT_SIZE;
  if (PJRT_Error* error = api.PJRT_Plugin_Attributes(&attributes)) return take_error(api, error);
  return from_c(attributes.attributes, attributes.num_attributes);
}

std::mutex g_mutex;

std::map<std::string, std::unique_ptr<const Plugin>>& loaded_plugins() {
  static auto* plugins = new std::map<std::string, std::unique_ptr<const Plugin>>();
  return *plugins;
}

}  // namespace

Result<const Plugin*> Plugin::load(const std::string& path) {
  const std::lock_guard lock(g_mutex);
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) {
    return Status(Code::kNotFound, "cannot load the PJRT plugin \"" + path + "\": no such file.");
  }
  const auto found = loaded_plugins().find(real.string());
  if (found != loaded_plugins().end()) return found->second.get();

  std::unique_ptr<Plugin> plugin(new Plugin());
  plugin->path_ = real.string();
  const auto named_libtpu = [](const std::filesystem::path& p) {
    return p.filename().string().find("libtpu") != std::string::npos;
  };
  plugin->is_libtpu_ = named_libtpu(path) || named_libtpu(real);
  plugin->is_libtpu_ ? prepare_environment_for_libtpu() : prepare_environment_for_cpu();
  Result<const Api*> api = open_plugin(plugin->path_);
  if (!api.ok()) return api.status();
  plugin->api_ = *api;
  Result<NamedValues> attributes = initialize(**api);
  if (!attributes.ok()) {
    return attributes.status().with_prefix("cannot initialise the PJRT plugin \"" + path + "\"");
  }
  plugin->attributes_ = std::move(attributes).value();
  const Plugin* result = plugin.get();
  loaded_plugins()[plugin->path_] = std::move(plugin);
  return result;
}

uint64_t Plugin::file_hash() const {
  std::call_once(hash_once_, [this] {
    const Result<uint64_t> hash = hash_plugin_file(path_);
    if (hash.ok()) file_hash_ = *hash;
  });
  return file_hash_;
}

std::string Plugin::cache_key() const {
  return std::to_string(file_hash_) + " pjrt " + std::to_string(api_major()) + "." +
         std::to_string(api_minor());
}

}  // namespace torch_tpu::pjrt
