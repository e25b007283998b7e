// The memory functions of torch_tpu._C.
#pragma once

#include <torch/extension.h>

namespace torch_tpu {

void bind_memory(pybind11::module_& m);

}  // namespace torch_tpu
