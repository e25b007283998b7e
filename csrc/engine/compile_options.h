// The compile options of programs, and where each comes from.
#pragma once

#include "pjrt/compile_options.h"

namespace torch_tpu::engine {

// What a program is like, as far as its options depend on it.
struct ProgramTraits {
  bool many_equal_kernels =
      false;  // one update for each of many tensors (foreach and fused optimizers)
  bool only_short_trailing_reductions = false;  // lowering::ModuleTraits
};

pjrt::CompileOptions compile_options(const ProgramTraits& traits);

}  // namespace torch_tpu::engine
