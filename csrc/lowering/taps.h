// Weighted sums of a few elements along one axis whose positions and weights are known when the program is built:
// interpolation, padding by copying, adaptive averages, unfolding.
#pragma once

#include <vector>

#include "lowering/call.h"

namespace torch_tpu::lowering {

struct Taps {
  int64_t outputs = 0;
  int64_t width = 1;  // taps of one output
  std::vector<int64_t>
      index;  // [outputs * width] input positions; -1 where an output has fewer taps
  std::vector<double> weight;  // of the same length, or empty: all ones
};

// The elements of x at `positions` along `axis`.
Value take(Builder& b, Value x, int64_t axis, const std::vector<int64_t>& positions);
// out[o] = sum over an output's taps of weight * x[index], along `axis`.
Value apply_taps(Builder& b, Value x, int64_t axis, const Taps& taps);
// The transpose of `taps` over `inputs` input positions: applied to the gradient it gives the input's gradient.
Taps adjoint(const Taps& taps, int64_t inputs);

}  // namespace torch_tpu::lowering
