// Compiled programs: loaded ones, which run, and unloaded ones, which can only be asked about.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pjrt/client.h"
#include "pjrt/compile_options.h"
#include "pjrt/event.h"
#include "pjrt/topology.h"

namespace torch_tpu::pjrt {

// Bytes a program needs, by what they are for.
struct ProgramMemory {
  int64_t generated_code = 0;
  int64_t argument = 0;
  int64_t output = 0;
  int64_t alias = 0;  // of the arguments that outputs take over
  int64_t temp = 0;
  int64_t host_argument = 0;
  int64_t host_output = 0;
  int64_t host_alias = 0;
  int64_t host_temp = 0;
};

struct OutputType {
  PJRT_Buffer_Type type;
  std::vector<int64_t> dims;  // the bound where a dimension is bounded
};

// Owns a compiled program that is not (necessarily) loaded on a device. Move-only; const methods
// are thread-safe. Every method returns UNIMPLEMENTED where the plugin cannot tell.
class UnloadedExecutable {
 public:
  UnloadedExecutable() = default;
  UnloadedExecutable(const Api& api, PJRT_Executable* executable)
      : api_(&api), executable_(executable) {}
  UnloadedExecutable(UnloadedExecutable&& other) noexcept
      : api_(other.api_), executable_(std::exchange(other.executable_, nullptr)) {}
  UnloadedExecutable& operator=(UnloadedExecutable&& other) noexcept;
  ~UnloadedExecutable() { reset(); }

  PJRT_Executable* get() const { return executable_; }
  void reset();

  Result<std::string> name() const;
  Result<size_t> num_outputs() const;
  Result<std::vector<OutputType>> output_types() const;
  Result<ProgramMemory> memory_stats() const;
  // The compiler's estimates: "flops", "bytes accessed", ... Loop bodies count once.
  Result<std::map<std::string, double>> cost_analysis() const;
  // Bytes that name the program; not text on every plugin.
  Result<std::string> fingerprint() const;
  // The optimized program in the plugin's format (libtpu: a HloModuleProtoWithConfig).
  Result<std::string> optimized_program() const;
  // The compiled code, for load() under the same Client::cache_key().
  Result<std::string> serialize() const;

 private:
  const Api* api_ = nullptr;
  PJRT_Executable* executable_ = nullptr;
};

// Owns a loaded program. Move-only. Const methods are thread-safe; several threads may execute it
// at once. Must not be destroyed during execute(), but may be while its work is still running on
// the device.
class Executable {
 public:
  Executable() = default;
  Executable(Executable&& other) noexcept;
  Executable& operator=(Executable&& other) noexcept;
  ~Executable() { reset(); }

  explicit operator bool() const { return executable_ != nullptr; }
  PJRT_LoadedExecutable* get() const { return executable_; }
  void reset();

  // Runs the program on one device with `num_args` buffers and stores num_outputs() new buffers,
  // owned by the caller, in `outs`. Returns once the work is issued: the outputs' ready events tell
  // when it is done and whether it failed. Arguments that the program aliases to outputs are
  // donated: they are dead after the call (destroy them as usual), except those whose index is
  // among `non_donatable`. `device` is needed where the program was compiled portable; null means
  // the device it was compiled for. A program with collectives must be issued from one thread per
  // device. On failure `outs` is untouched, and donated arguments may be dead.
  Status execute(PJRT_Buffer* const* args, size_t num_args, PJRT_Buffer** outs,
                 const int64_t* non_donatable = nullptr, size_t num_non_donatable = 0,
                 PJRT_Device* device = nullptr) const {
    return launch(args, num_args, outs, non_donatable, num_non_donatable, device, nullptr);
  }

  // The same, with an event that is ready when the whole program has finished. Dearer than
  // execute().
  Result<Event> execute_with_event(PJRT_Buffer* const* args, size_t num_args, PJRT_Buffer** outs,
                                   const int64_t* non_donatable = nullptr,
                                   size_t num_non_donatable = 0,
                                   PJRT_Device* device = nullptr) const {
    PJRT_Event* event = nullptr;
    Status status = launch(args, num_args, outs, non_donatable, num_non_donatable, device, &event);
    if (!status.ok()) return status;
    return Event(*api_, event);
  }

  size_t num_outputs() const { return num_outputs_; }
  // What can be asked about the program; valid as long as this object.
  const UnloadedExecutable& info() const { return info_; }
  Result<std::string> serialize() const { return info_.serialize(); }
  Result<ProgramMemory> memory_stats() const { return info_.memory_stats(); }
  Result<std::map<std::string, double>> cost_analysis() const { return info_.cost_analysis(); }
  Result<std::string> fingerprint() const { return info_.fingerprint(); }

 private:
  friend Result<Executable> compile(const Client&, std::string_view, const CompileOptions&);
  friend Result<Executable> load(const Client&, std::string_view);

  static Result<Executable> adopt(const Api& api, PJRT_LoadedExecutable* executable);
  Status launch(PJRT_Buffer* const* args, size_t num_args, PJRT_Buffer** outs,
                const int64_t* non_donatable, size_t num_non_donatable, PJRT_Device* device,
                PJRT_Event** event) const;

  const Api* api_ = nullptr;
  PJRT_LoadedExecutable* executable_ = nullptr;
  size_t num_outputs_ = 0;
  UnloadedExecutable info_;
};

inline Status Executable::launch(PJRT_Buffer* const* args, size_t num_args, PJRT_Buffer** outs,
                                 const int64_t* non_donatable, size_t num_non_donatable,
                                 PJRT_Device* device, PJRT_Event** event) const {
  PJRT_ExecuteOptions options = {};
  options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
  options.non_donatable_input_indices = non_donatable;
  options.num_non_donatable_input_indices = num_non_donatable;
  PJRT_LoadedExecutable_Execute_Args call = {};
  call.struct_size = PJRT_LoadedExecutable_Execute_Args_STRUCT_SIZE;
  call.executable = executable_;
  call.options = &options;
  call.argument_lists = &args;
  call.num_devices = 1;
  call.num_args = num_args;
  call.output_lists = &outs;
  call.device_complete_events = event;
  call.execute_device = device;
  return to_status(*api_, api_->PJRT_LoadedExecutable_Execute(&call));
}

// Compiles StableHLO (text or bytecode) and loads it. Blocks, possibly for minutes; several threads
// may compile at once. Fails with the compiler's message. libtpu ends the process on some programs:
// refuse unbounded dimensions beforehand.
Result<Executable> compile(const Client& client, std::string_view mlir,
                           const CompileOptions& options);

// Loads what UnloadedExecutable::serialize() gave under the same Client::cache_key(). Fails on
// bytes the plugin refuses.
Result<Executable> load(const Client& client, std::string_view serialized);

// Compiles for devices that need not be there. Thread-safe, blocks, fails as compile() does.
Result<UnloadedExecutable> compile_for_topology(const Plugin& plugin, const Topology& topology,
                                                std::string_view mlir,
                                                const CompileOptions& options);

}  // namespace torch_tpu::pjrt
