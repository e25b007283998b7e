// Axis arithmetic that several families share: counts, means, kept axes, per-channel values, argument reductions.
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "lowering/call.h"

namespace torch_tpu::lowering {

// The name PyTorch's error texts give a dtype.
inline const char* scalar_type_name(DType t) {
  switch (t) {
    case DType::kPred:
      return "Bool";
    case DType::kI8:
      return "Char";
    case DType::kI16:
      return "Short";
    case DType::kI32:
      return "Int";
    case DType::kI64:
      return "Long";
    case DType::kU8:
      return "Byte";
    case DType::kU16:
      return "UInt16";
    case DType::kU32:
      return "UInt32";
    case DType::kU64:
      return "UInt64";
    case DType::kF16:
      return "Half";
    case DType::kBF16:
      return "BFloat16";
    case DType::kF32:
      return "Float";
    case DType::kF64:
      return "Double";
    case DType::kC64:
      return "ComplexFloat";
    case DType::kC128:
      return "ComplexDouble";
    case DType::kF8E4M3FN:
      return "Float8_e4m3fn";
    case DType::kF8E5M2:
      return "Float8_e5m2";
    default:
      return "Bits";
  }
}

inline std::string sizes_text(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + dims[i].str();
  return text + "]";
}

inline std::string sizes_text(const std::vector<int64_t>& dims) {
  return sizes_text(Dims(dims.begin(), dims.end()));
}

inline std::vector<int64_t> all_axes(int64_t rank) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

inline std::vector<int64_t> axes_except(int64_t rank, int64_t kept) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != kept) axes.push_back(i);
  }
  return axes;
}

inline std::vector<int64_t> axes_from(int64_t first, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t i = first; i < rank; ++i) axes.push_back(i);
  return axes;
}

// How many elements a reduction over `axes` reads for each of its results.
inline Size extent(const Value& x, const std::vector<int64_t>& axes) {
  Size n = 1;
  for (int64_t axis : axes) n = n * x.dim(axis);
  return n;
}

inline Value count(Builder& b, const Value& x, const std::vector<int64_t>& axes, DType dtype) {
  return b.convert(b.size(extent(x, axes), stablehlo::real_of(dtype)), dtype);
}

// No axes: x itself.
inline Value reduce_over(Builder& b, stablehlo::Monoid op, Value x,
                         const std::vector<int64_t>& axes, bool keepdim = false) {
  return axes.empty() ? x : b.reduce(op, x, axes, keepdim);
}

inline Value sum_over(Builder& b, Value x, const std::vector<int64_t>& axes, bool keepdim = false) {
  return reduce_over(b, stablehlo::Monoid::kAdd, x, axes, keepdim);
}

inline Value max_over(Builder& b, Value x, const std::vector<int64_t>& axes, bool keepdim = false) {
  return reduce_over(b, stablehlo::Monoid::kMaximum, x, axes, keepdim);
}

inline Value mean_over(Builder& b, Value x, const std::vector<int64_t>& axes,
                       bool keepdim = false) {
  return b.div(sum_over(b, x, axes, keepdim), count(b, x, axes, x.dtype()));
}

// A reduced value with `axis` of x put back as a dimension of one.
inline Value keep_axis(Builder& b, Value reduced, const Value& x, int64_t axis) {
  if (x.rank() == 0) return reduced;
  Dims dims = x.dims();
  dims.at(axis) = 1;
  return b.reshape(reduced, dims);
}

// A vector along dimension `axis` of a tensor of `rank` dimensions.
inline Value along_axis(Builder& b, Value vector, int64_t rank, int64_t axis) {
  Dims dims(rank, Size(1));
  dims.at(axis) = vector.numel();
  return b.reshape(vector, dims);
}

// x as x.dtype or wider: the type a formula of several steps is computed in.
inline Value wide(Builder& b, Value x) { return b.convert(x, stablehlo::opmath(x.dtype())); }

// The body of a (value, index) reduction: NaN wins, then the larger (smaller) value, then the lower index.
inline Builder::Body arg_body(Builder& b, bool largest) {
  return [&b, largest](const std::vector<Value>& v) -> std::vector<Value> {
    const Value &x = v[0], &i = v[1], &y = v[2], &j = v[3];
    Value better = largest ? b.gt(x, y) : b.lt(x, y);
    Value tie = b.eq(x, y);
    if (stablehlo::is_float(x.dtype())) {
      const Value x_nan = b.is_nan(x), y_nan = b.is_nan(y);
      better = b.logical_or(better, b.logical_and(x_nan, b.logical_not(y_nan)));
      tie = b.logical_or(tie, b.logical_and(x_nan, y_nan));
    }
    const Value first = b.logical_or(better, b.logical_and(tie, b.lt(i, j)));
    return {b.select(first, x, y), b.select(first, i, j)};
  };
}

inline std::vector<Value> arg_inits(Builder& b, DType dtype, bool largest) {
  return {largest ? b.lowest(dtype) : b.highest(dtype),
          b.constant_int(std::numeric_limits<int32_t>::max(), DType::kI32)};
}

// The extreme values along `axis` and their i64 positions, the axis dropped.
inline std::pair<Value, Value> arg_reduce(Builder& b, Value x, int64_t axis, bool largest) {
  if (x.rank() == 0) return {x, b.constant_int(0, DType::kI64)};
  const DType dtype = x.dtype();
  if (dtype == DType::kPred) x = b.convert(x, DType::kI32);
  const std::vector<Value> r =
      b.reduce({x, b.iota(DType::kI32, x.dims(), axis)}, arg_inits(b, x.dtype(), largest), {axis},
               arg_body(b, largest));
  return {b.convert(r[0], dtype), b.convert(r[1], DType::kI64)};
}

// PyTorch's error where two shapes do not broadcast.
inline void check_broadcast(const Call& c, const Dims& x, const Dims& y) {
  const int64_t rank = static_cast<int64_t>(std::max(x.size(), y.size()));
  for (int64_t i = rank - 1; i >= 0; --i) {
    const int64_t from_end = rank - i;
    if (from_end > static_cast<int64_t>(std::min(x.size(), y.size()))) break;
    const Size &a = x[x.size() - from_end], &b = y[y.size() - from_end];
    c.check(a == b || a == Size(1) || b == Size(1),
            "The size of tensor a (" + a.str() + ") must match the size of tensor b (" + b.str() +
                ") at non-singleton dimension " + std::to_string(i));
  }
}

// Sums `x` down to `dims`, the reverse of a NumPy broadcast.
inline Value sum_to(Builder& b, Value x, const Dims& dims) {
  const int64_t extra = x.rank() - static_cast<int64_t>(dims.size());
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < x.rank(); ++i) {
    const bool stretched = i >= extra && dims[i - extra] == Size(1) && x.dim(i) != Size(1);
    if (i < extra || stretched) axes.push_back(i);
  }
  return axes.empty() ? x : b.reshape(sum_over(b, x, axes), dims);
}

}  // namespace torch_tpu::lowering
