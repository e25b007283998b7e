#include "engine/compile_options.h"

#include "engine/client.h"

namespace torch_tpu::engine {

pjrt::CompileOptions compile_options(const ProgramTraits& traits) {
  pjrt::CompileOptions options;
  options.compile_portable_executable = client().num_devices() > 1;
  if (client().platform_name() != "cpu") return options;
  auto& xla = options.env_option_overrides;
  xla["xla_cpu_enable_fast_min_max"] = false;  // else maximum and minimum drop NaN
  xla["xla_allow_excess_precision"] = false;   // bf16 and f16 round where PyTorch rounds
  xla["xla_cpu_use_xnnpack"] =
      false;  // it keeps packed right operands by address: stale after a donated update
  // docs/compile-options.md has the measurements behind these.
  xla["xla_cpu_parallel_codegen_split_count"] = int64_t{1};
  if (!traits.many_equal_kernels) xla["xla_cpu_use_fusion_emitters"] = false;
  if (traits.only_short_trailing_reductions)
    xla["xla_disable_hlo_passes"] = std::string("tree_reduction_rewriter");
  return options;
}

}  // namespace torch_tpu::engine
