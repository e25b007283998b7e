// What PyTorch refuses of a distribution's numbers. They are values of a program, not part of its key, so a lowering
// cannot see them: they are checked before the call.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include <functional>

namespace torch_tpu::aten {

// The check of one operator's calls (arguments on top of the stack); empty where there is nothing to check.
using ArgumentCheck = std::function<void(const torch::jit::Stack&)>;
ArgumentCheck random_check(const c10::FunctionSchema& schema);

}  // namespace torch_tpu::aten
