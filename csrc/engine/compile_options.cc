#include "engine/compile_options.h"

#include "engine/client.h"

namespace torch_tpu::engine {

pjrt::CompileOptions default_compile_options() {
  pjrt::CompileOptions options;
  options.compile_portable_executable = client().num_devices() > 1;
  if (client().platform_name() == "cpu") {
    // docs/compile-options.md has the measurements.
    options.env_option_overrides["xla_cpu_use_fusion_emitters"] = false;
    options.env_option_overrides["xla_cpu_enable_fast_min_max"] = false;  // else maximum and minimum drop NaN
    options.env_option_overrides["xla_allow_excess_precision"] = false;   // bf16 and f16 round where PyTorch rounds
  }
  return options;
}

}  // namespace torch_tpu::engine
