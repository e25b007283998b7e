// Operators nothing here can compute: an error that names them, or the CPU where the user asked for that.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "aten/op_info.h"
#include "lowering/call.h"
#include "stablehlo/types.h"

namespace torch_tpu::aten {

using torch::jit::Stack;

// Nobody can compute an operator that a composite kernel needs; the composite's caller tries its next way.
class NoKernel : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

bool cpu_fallback_enabled();
bool set_cpu_fallback(bool enabled);  // returns the previous setting
// How a warning reaches the user: Python's warnings, from threads without its lock too.
void set_warner(void (*warner)(const std::string& message));
void warn(const std::string& message);

// The composite kernel run op by op, else the CPU, else the error.
void run_composite(const OpInfo& info, Stack* stack);

// What the builder refuses, in PyTorch's words where it has some: a dtype without a kernel, shapes that do not broadcast.
[[noreturn]] void raise_build_error(const OpInfo& info, const stablehlo::BuildError& error);

[[noreturn]] void raise_argument_error(const lowering::ArgumentError& error);

// torch.set_float32_matmul_precision.
stablehlo::Precision matmul_precision();

}  // namespace torch_tpu::aten
