// The bytes of a dense array as elements of another type.
#pragma once

#include "stablehlo/builder.h"

namespace torch_tpu::lowering {

// The same bytes, row-major, as elements of `dtype`; the dimensions are retyped_dims(). Bytes at the end that fill no
// whole element are left out. bool is one byte, 0 or 1.
stablehlo::Value retype(stablehlo::Builder& b, stablehlo::Value x, stablehlo::DType dtype);

// A factorisation of the new element count that keeps the old dimensions where it can.
std::vector<int64_t> retyped_dims(std::vector<int64_t> dims, stablehlo::DType from,
                                  stablehlo::DType to);

}  // namespace torch_tpu::lowering
