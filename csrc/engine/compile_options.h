// The compile options of every program, and where each comes from.
#pragma once

#include "pjrt/compile_options.h"

namespace torch_tpu::engine {

pjrt::CompileOptions default_compile_options();

}  // namespace torch_tpu::engine
