// PyTorch's order of values, for the sort family and for searches.
#pragma once

#include "lowering/call.h"

namespace torch_tpu::lowering {

// Sorts all operands along `dim` by the first one: stable, NaN counts as largest.
Values sort_by(Builder& b, const Values& xs, int64_t dim, bool descending);

}  // namespace torch_tpu::lowering
