// Operators without a lowering of their own: PyTorch's C++ composite kernel, or its Python decomposition.
#pragma once

#include <ATen/core/stack.h>

#include "aten/op_info.h"

namespace torch_tpu::aten {

using torch::jit::Stack;

bool has_composite(const OpInfo& info);
// Runs it on the arguments on top of the stack, whose place the results take. False when there is none that does not
// need this operator itself; the stack is then as it was.
bool call_composite(const OpInfo& info, Stack* stack);

}  // namespace torch_tpu::aten
