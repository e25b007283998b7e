// Running combinations along one dimension, for the scan family and for whoever needs positions from masks.
#pragma once

#include <functional>

#include "lowering/call.h"

namespace torch_tpu::lowering {

// An associative operation on arrays of equal shapes; `before` lies earlier along the dimension.
using ScanStep = std::function<Values(const Values& before, const Values& after)>;

// out[i] = step(...step(x[0], x[1])..., x[i]) along `dim`, for several operands of one shape at once.
Values inclusive_scan(Builder& b, const Values& xs, int64_t dim, const ScanStep& step);

Value running_sum(Builder& b, Value x, int64_t dim);

// For each true element of `mask` its place among the true ones in row-major order (i32, or i64 where the count needs
// it), -1 for each false one.
Value places_of_true(Builder& b, Value mask);

}  // namespace torch_tpu::lowering
