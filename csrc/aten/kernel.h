// The boxed kernel: every operator's calls come here.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <string>

#include "aten/entry.h"
#include "aten/op_info.h"

namespace torch_tpu::aten {

// Runs (strict, debug), records (under capture) or only infers (under InferScope) the call on top of `stack`.
void run_operator(const OpInfo& info, Stack* stack);

// Python's core decompositions, tried for operators with neither a lowering nor a C++ composite: pops the arguments,
// pushes the results, returns false where there is none. Set by the Python module.
using Decomposer = std::function<bool(const c10::OperatorHandle& op, Stack* stack)>;
void set_decomposer(Decomposer decomposer);
const Decomposer& decomposer();

}  // namespace torch_tpu::aten
