// Compiling, loading and asking about programs; running them is inline in the header.
#include "pjrt/executable.h"

namespace torch_tpu::pjrt {
namespace {

constexpr std::string_view kFormat = "mlir";

PJRT_Program program_of(std::string_view mlir) {
  PJRT_Program program = {};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  program.code = const_cast<char*>(mlir.data());  // in/out in the C API; only read when compiling
  program.code_size = mlir.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  return program;
}

void destroy_loaded(const Api& api, PJRT_LoadedExecutable* executable) {
  PJRT_LoadedExecutable_Destroy_Args args = {};
  args.struct_size = PJRT_LoadedExecutable_Destroy_Args_STRUCT_SIZE;
  args.executable = executable;
  (void)to_status(api, api.PJRT_LoadedExecutable_Destroy(&args));
}

Status check_options(const CompileOptions& options) {
  if (options.num_replicas < 1 || options.num_partitions < 1) {
    return Status(Code::kInvalidArgument, "a program needs at least one replica and one partition");
  }
  const auto devices = static_cast<int64_t>(options.device_assignment.size());
  const int64_t needed = options.num_replicas * options.num_partitions;
  if (devices != 0 && devices != needed) {
    return Status(Code::kInvalidArgument, "the device assignment has " + std::to_string(devices) +
                                              " devices; " + std::to_string(options.num_replicas) +
                                              " replicas of " +
                                              std::to_string(options.num_partitions) +
                                              " partitions need " + std::to_string(needed));
  }
  return Status();
}

}  // namespace

UnloadedExecutable& UnloadedExecutable::operator=(UnloadedExecutable&& other) noexcept {
  if (this != &other) {
    reset();
    api_ = other.api_;
    executable_ = std::exchange(other.executable_, nullptr);
  }
  return *this;
}

void UnloadedExecutable::reset() {
  if (executable_ == nullptr) return;
  PJRT_Executable_Destroy_Args args = {};
  args.struct_size = PJRT_Executable_Destroy_Args_STRUCT_SIZE;
  args.executable = std::exchange(executable_, nullptr);
  (void)to_status(*api_, api_->PJRT_Executable_Destroy(&args));
}

Result<std::string> UnloadedExecutable::name() const {
  PJRT_Executable_Name_Args args = {};
  args.struct_size = PJRT_Executable_Name_Args_STRUCT_SIZE;
  args.executable = executable_;
  if (PJRT_Error* error = api_->PJRT_Executable_Name(&args)) return take_error(*api_, error);
  return std::string(args.executable_name, args.executable_name_size);
}

Result<size_t> UnloadedExecutable::num_outputs() const {
  PJRT_Executable_NumOutputs_Args args = {};
  args.struct_size = PJRT_Executable_NumOutputs_Args_STRUCT_SIZE;
  args.executable = executable_;
  if (PJRT_Error* error = api_->PJRT_Executable_NumOutputs(&args)) return take_error(*api_, error);
  return args.num_outputs;
}

Result<std::vector<OutputType>> UnloadedExecutable::output_types() const {
  PJRT_Executable_OutputElementTypes_Args types = {};
  types.struct_size = PJRT_Executable_OutputElementTypes_Args_STRUCT_SIZE;
  types.executable = executable_;
  if (PJRT_Error* error = api_->PJRT_Executable_OutputElementTypes(&types)) {
    return take_error(*api_, error);
  }
  PJRT_Executable_OutputDimensions_Args dims = {};
  dims.struct_size = PJRT_Executable_OutputDimensions_Args_STRUCT_SIZE;
  dims.executable = executable_;
  if (PJRT_Error* error = api_->PJRT_Executable_OutputDimensions(&dims))
    return take_error(*api_, error);
  std::vector<OutputType> outputs;
  outputs.reserve(types.num_output_types);
  const int64_t* next = dims.dims;
  for (size_t i = 0; i < types.num_output_types; ++i) {
    outputs.push_back(
        {types.output_types[i], std::vector<int64_t>(next, next + dims.dim_sizes[i])});
    next += dims.dim_sizes[i];
  }
  return outputs;
}

Result<ProgramMemory> UnloadedExecutable::memory_stats() const {
  if (!TT_PJRT_HAS(*api_, PJRT_Executable_GetCompiledMemoryStats)) {
    return missing_entry("PJRT_Executable_GetCompiledMemoryStats");
  }
  PJRT_Executable_GetCompiledMemoryStats_Args args = {};
  args.struct_size = PJRT_Executable_GetCompiledMemoryStats_Args_STRUCT_SIZE;
  args.executable = executable_;
  if (PJRT_Error* error = api_->PJRT_Executable_GetCompiledMemoryStats(&args)) {
    return take_error(*api_, error);
  }
  ProgramMemory memory;
  memory.generated_code = args.generated_code_size_in_bytes;
  memory.argument = args.argument_size_in_bytes;
  memory.output = args.output_size_in_bytes;
  memory.alias = args.alias_size_in_bytes;
  memory.temp = args.temp_size_in_bytes;
  memory.host_argument = args.host_argument_size_in_bytes;
  memory.host_output = args.host_output_size_in_bytes;
  memory.host_alias = args.host_alias_size_in_bytes;
  memory.host_temp = args.host_temp_size_in_bytes;
  return memory;
}

Result<std::map<std::string, double>> UnloadedExecutable::cost_analysis() const {
  PJRT_Executable_GetCostAnalysis_Args args = {};
  args.struct_size = PJRT_Executable_GetCostAnalysis_Args_STRUCT_SIZE;
  args.executable = executable_;
  if (PJRT_Error* error = api_->PJRT_Executable_GetCostAnalysis(&args))
    return take_error(*api_, error);
  std::map<std::string, double> costs;
  for (const auto& [name, value] : from_c(args.properties, args.num_properties)) {
    if (const auto* real = std::get_if<float>(&value)) costs[name] = *real;
    if (const auto* integer = std::get_if<int64_t>(&value))
      costs[name] = static_cast<double>(*integer);
  }
  return costs;
}

Result<std::string> UnloadedExecutable::fingerprint() const {
  if (!TT_PJRT_HAS(*api_, PJRT_Executable_Fingerprint)) {
    return missing_entry("PJRT_Executable_Fingerprint");
  }
  PJRT_Executable_Fingerprint_Args args = {};
  args.struct_size = PJRT_Executable_Fingerprint_Args_STRUCT_SIZE;
  args.executable = executable_;
  if (PJRT_Error* error = api_->PJRT_Executable_Fingerprint(&args)) return take_error(*api_, error);
  return std::string(args.executable_fingerprint, args.executable_fingerprint_size);
}

Result<std::string> UnloadedExecutable::optimized_program() const {
  PJRT_Program program = {};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  PJRT_Executable_OptimizedProgram_Args args = {};
  args.struct_size = PJRT_Executable_OptimizedProgram_Args_STRUCT_SIZE;
  args.executable = executable_;
  args.program = &program;
  // The first call gives the size, the second the bytes.
  if (PJRT_Error* error = api_->PJRT_Executable_OptimizedProgram(&args))
    return take_error(*api_, error);
  std::string code(program.code_size, '\0');
  program.code = code.data();
  if (PJRT_Error* error = api_->PJRT_Executable_OptimizedProgram(&args))
    return take_error(*api_, error);
  return code;
}

Result<std::string> UnloadedExecutable::serialize() const {
  PJRT_Executable_Serialize_Args args = {};
  args.struct_size = PJRT_Executable_Serialize_Args_STRUCT_SIZE;
  args.executable = executable_;
  if (PJRT_Error* error = api_->PJRT_Executable_Serialize(&args)) return take_error(*api_, error);
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter(args.serialized_executable);
  return bytes;
}

Executable::Executable(Executable&& other) noexcept
    : api_(other.api_),
      executable_(std::exchange(other.executable_, nullptr)),
      num_outputs_(other.num_outputs_),
      info_(std::move(other.info_)) {}

Executable& Executable::operator=(Executable&& other) noexcept {
  if (this != &other) {
    reset();
    api_ = other.api_;
    executable_ = std::exchange(other.executable_, nullptr);
    num_outputs_ = other.num_outputs_;
    info_ = std::move(other.info_);
  }
  return *this;
}

void Executable::reset() {
  info_.reset();
  if (executable_ != nullptr) destroy_loaded(*api_, std::exchange(executable_, nullptr));
}

Result<Executable> Executable::adopt(const Api& api, PJRT_LoadedExecutable* executable) {
  Executable result;
  result.api_ = &api;
  result.executable_ = executable;
  PJRT_LoadedExecutable_GetExecutable_Args args = {};
  args.struct_size = PJRT_LoadedExecutable_GetExecutable_Args_STRUCT_SIZE;
  args.loaded_executable = executable;
  if (PJRT_Error* error = api.PJRT_LoadedExecutable_GetExecutable(&args))
    return take_error(api, error);
  result.info_ = UnloadedExecutable(api, args.executable);
  const Result<size_t> count = result.info_.num_outputs();
  if (!count.ok()) return count.status();
  result.num_outputs_ = *count;
  return result;
}

Result<Executable> compile(const Client& client, std::string_view mlir,
                           const CompileOptions& options) {
  Status status = check_options(options);
  if (!status.ok()) return status;
  const PJRT_Program program = program_of(mlir);
  const std::string serialized = options.serialize();
  PJRT_Client_Compile_Args args = {};
  args.struct_size = PJRT_Client_Compile_Args_STRUCT_SIZE;
  args.client = client.get();
  args.program = &program;
  args.compile_options = serialized.data();
  args.compile_options_size = serialized.size();
  const Api& api = client.api();
  if (PJRT_Error* error = api.PJRT_Client_Compile(&args)) return take_error(api, error);
  return Executable::adopt(api, args.executable);
}

Result<Executable> load(const Client& client, std::string_view serialized) {
  PJRT_Executable_DeserializeAndLoad_Args args = {};
  args.struct_size = PJRT_Executable_DeserializeAndLoad_Args_STRUCT_SIZE;
  args.client = client.get();
  args.serialized_executable = serialized.data();
  args.serialized_executable_size = serialized.size();
  const Api& api = client.api();
  if (PJRT_Error* error = api.PJRT_Executable_DeserializeAndLoad(&args))
    return take_error(api, error);
  return Executable::adopt(api, args.loaded_executable);
}

Result<UnloadedExecutable> compile_for_topology(const Plugin& plugin, const Topology& topology,
                                                std::string_view mlir,
                                                const CompileOptions& options) {
  Status status = check_options(options);
  if (!status.ok()) return status;
  const PJRT_Program program = program_of(mlir);
  const std::string serialized = options.serialize();
  PJRT_Compile_Args args = {};
  args.struct_size = PJRT_Compile_Args_STRUCT_SIZE;
  args.topology = topology.get();
  args.program = &program;
  args.compile_options = serialized.data();
  args.compile_options_size = serialized.size();
  if (PJRT_Error* error = plugin.api().PJRT_Compile(&args)) return take_error(plugin.api(), error);
  return UnloadedExecutable(plugin.api(), args.executable);
}

}  // namespace torch_tpu::pjrt
