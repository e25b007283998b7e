// A static number argument as a constant of the program.
#pragma once

#include "ir/graph.h"
#include "stablehlo/builder.h"

namespace torch_tpu::lowering {

// The value as a double; the real part of a complex number.
double real_value(const ir::Number& number);
// 0-d; converted as PyTorch casts a Python number: floats truncate, anything but zero is true.
stablehlo::Value constant_number(stablehlo::Builder& b, const ir::Number& number,
                                 stablehlo::DType dtype);

}  // namespace torch_tpu::lowering
