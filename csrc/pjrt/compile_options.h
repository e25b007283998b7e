// Compile options and their bytes: XLA's CompileOptionsProto, written by hand.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace torch_tpu::pjrt {

// XLA's optimization levels. On libtpu the levels below kO2 compile faster but end the process on
// some programs.
enum class OptimizationLevel { kDefault = 0, kO0 = 9, kO1 = 19, kO2 = 29, kO3 = 39 };

struct CompileOptions {
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;
  int64_t device_ordinal = -1;  // -1: the plugin chooses
  // Global device ids, replica-major: num_replicas * num_partitions of them, or none for the
  // plugin's choice.
  std::vector<int64_t> device_assignment;
  bool use_spmd_partitioning = false;  // needed for num_partitions > 1
  bool use_shardy = false;             // needed for programs with the sdy dialect
  // The program may run on any device of the client, named at each execute.
  bool compile_portable_executable = false;
  OptimizationLevel optimization_level = OptimizationLevel::kDefault;
  // XLA options by name; an unknown name fails the compilation.
  std::map<std::string, std::variant<std::string, bool, int64_t, double>> env_option_overrides;

  // The serialized CompileOptionsProto. Equal options give equal bytes, so they can be part of a
  // cache key.
  std::string serialize() const;
};

}  // namespace torch_tpu::pjrt
