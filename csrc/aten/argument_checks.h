// What PyTorch refuses of a call that neither its composite kernels nor our lowerings look at: numbers that are values
// of a program and not part of its key, dtypes of out=, memory that is read and written at once. Checked before the call.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include <functional>

namespace torch_tpu::aten {

// The check of one operator's calls (arguments on top of the stack); empty where there is nothing to check.
using ArgumentCheck = std::function<void(const torch::jit::Stack&)>;
ArgumentCheck argument_check(const c10::FunctionSchema& schema);

}  // namespace torch_tpu::aten
