// Static gathers and weighted sums along one axis.
#include "lowering/taps.h"

#include <algorithm>

#include "lowering/axes.h"

namespace torch_tpu::lowering {
namespace {

// Sums of up to this many taps are unrolled; longer ones are one gather and one reduction.
constexpr int64_t kUnrolledTaps = 4;

bool is_progression(const std::vector<int64_t>& positions, int64_t step) {
  for (size_t i = 1; i < positions.size(); ++i) {
    if (positions[i] - positions[i - 1] != step) return false;
  }
  return true;
}

bool is_repetition(const std::vector<int64_t>& positions, int64_t factor) {
  for (size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] != static_cast<int64_t>(i) / factor) return false;
  }
  return true;
}

Value repeat_each(Builder& b, Value x, int64_t axis, int64_t factor) {
  Dims split = x.dims(), merged = x.dims();
  split.insert(split.begin() + axis + 1, Size(factor));
  merged[axis] = merged[axis] * Size(factor);
  return b.reshape(b.broadcast_in_dim(x, split, axes_except(x.rank() + 1, axis + 1)), merged);
}

// A constant vector along `axis` of a tensor of `rank` dimensions.
Value weights_along(Builder& b, const std::vector<double>& weights, DType dtype, int64_t rank,
                    int64_t axis) {
  return along_axis(b, b.dense(weights, dtype, {static_cast<int64_t>(weights.size())}), rank, axis);
}

// x at the positions, zero where a position is -1, times the weights.
Value weighted_take(Builder& b, Value x, int64_t axis, const std::vector<int64_t>& positions,
                    const std::vector<double>& weights) {
  std::vector<int64_t> safe = positions, present(positions.size(), 1);
  bool all_present = true;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] >= 0) continue;
    safe[i] = i == 0 ? 0 : safe[i - 1];
    present[i] = 0;
    all_present = false;
  }
  Value v = take(b, x, axis, safe);
  const bool unit = std::all_of(weights.begin(), weights.end(), [](double w) { return w == 1; });
  if (!unit) v = b.mul(v, weights_along(b, weights, x.dtype(), x.rank(), axis));
  if (all_present) return v;
  const int64_t n = static_cast<int64_t>(present.size());
  const Value mask =
      along_axis(b, b.convert(b.dense(present, DType::kI32, {n}), DType::kPred), x.rank(), axis);
  return b.select(mask, v, b.convert(b.constant_int(0, DType::kI32), x.dtype()));
}

}  // namespace

Value take(Builder& b, Value x, int64_t axis, const std::vector<int64_t>& positions) {
  const int64_t n = static_cast<int64_t>(positions.size()), inputs = x.dim(axis).fixed();
  const int64_t step = n > 1 ? positions[1] - positions[0] : 1;
  if (n > 0 && step > 0 && is_progression(positions, step)) {
    if (step == 1 && n == inputs) return x;
    return b.slice_dim(x, axis, positions[0], positions[n - 1] + 1, step);
  }
  if (n > 0 && n % inputs == 0 && is_repetition(positions, n / inputs))
    return repeat_each(b, x, axis, n / inputs);
  stablehlo::GatherDims dims;
  dims.offset_dims = axes_except(x.rank(), axis);
  dims.collapsed_slice_dims = {axis};
  dims.start_index_map = {axis};
  dims.index_vector_dim = 1;
  for (const Size& size : x.dims()) dims.slice_sizes.push_back(size.bound());
  dims.slice_sizes[axis] = 1;
  return b.gather(x, b.dense(positions, DType::kI32, {n, 1}), dims);
}

Value apply_taps(Builder& b, Value x, int64_t axis, const Taps& taps) {
  if (taps.width > kUnrolledTaps) {
    const Value v = weighted_take(b, x, axis, taps.index, taps.weight);
    Dims split = v.dims();
    split[axis] = taps.outputs;
    split.insert(split.begin() + axis + 1, Size(taps.width));
    return sum_over(b, b.reshape(v, split), {axis + 1});
  }
  Value total;
  for (int64_t k = 0; k < taps.width; ++k) {
    std::vector<int64_t> positions;
    std::vector<double> weights;
    for (int64_t o = 0; o < taps.outputs; ++o) {
      positions.push_back(taps.index[o * taps.width + k]);
      if (!taps.weight.empty()) weights.push_back(taps.weight[o * taps.width + k]);
    }
    const Value v = weighted_take(b, x, axis, positions, weights);
    total = total ? b.add(total, v) : v;
  }
  return total;
}

Taps adjoint(const Taps& taps, int64_t inputs) {
  std::vector<std::vector<std::pair<int64_t, double>>> users(inputs);
  for (size_t i = 0; i < taps.index.size(); ++i) {
    const double weight = taps.weight.empty() ? 1 : taps.weight[i];
    if (taps.index[i] >= 0)
      users[taps.index[i]].push_back({static_cast<int64_t>(i) / taps.width, weight});
  }
  Taps r;
  r.outputs = inputs;
  for (const auto& list : users) r.width = std::max<int64_t>(r.width, list.size());
  for (const auto& list : users) {
    for (int64_t k = 0; k < r.width; ++k) {
      const bool present = k < static_cast<int64_t>(list.size());
      r.index.push_back(present ? list[k].first : -1);
      r.weight.push_back(present ? list[k].second : 1);
    }
  }
  return r;
}

}  // namespace torch_tpu::lowering
