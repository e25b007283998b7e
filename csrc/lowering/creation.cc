// Tensors made from numbers, and values copied with a change of element type.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "lowering/families.h"
#include "lowering/pointwise_math.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::GatherDims;
using stablehlo::is_float;
using stablehlo::is_int;
using stablehlo::opmath;

// -- Copies ---------------------------------------------------------------------------------------------------------

Values lower_clone(Call& c) { return {c.tensor("self")}; }
Values lower_to_copy(Call& c) { return {convert_like_torch(c.b, c.tensor("self"), c.out().dtype)}; }

Values lower_copy(Call& c) {
  Value self = c.tensor("self");
  Value source = convert_like_torch(c.b, c.tensor("src"), self.dtype());
  return {c.b.broadcast_to(source, self.dims())};
}

// -- One value everywhere --------------------------------------------------------------------------------------------

Values lower_zeros(Call& c) { return {c.b.zeros(c.out())}; }

Values lower_ones(Call& c) {
  Type out = c.out();
  if (out.dtype == DType::kPred) return {c.b.constant_bool(true, out.dims)};
  return {c.b.constant(1.0, out.dtype, out.dims)};
}

Values lower_zero(Call& c) { return {c.b.zeros(c.tensor("self").type())}; }

Values filled(Call& c, const char* name) {
  Type out = c.out();
  return {c.b.broadcast_to(c.scalar(name, out.dtype), out.dims)};
}

Values lower_full(Call& c) { return filled(c, "fill_value"); }
Values lower_scalar_tensor(Call& c) { return filled(c, "s"); }

Values lower_fill_scalar(Call& c) {
  Value self = c.tensor("self");
  return {c.b.broadcast_to(c.scalar("value", self.dtype()), self.dims())};
}

Values lower_fill_tensor(Call& c) {
  Value self = c.tensor("self");
  Value value = c.tensor("value");
  c.check(value.rank() == 0, "fill_ only supports 0-dimension value tensor but got tensor with " +
                                 std::to_string(value.rank()) + " dimensions.");
  return {c.b.broadcast_to(convert_like_torch(c.b, value, self.dtype()), self.dims())};
}

// -- Ranges ------------------------------------------------------------------------------------------------------------

// PyTorch's default floating-point type, as the promotion of the call's numbers tells it.
DType default_float(Call& c) { return is_float(c.promoted()) ? c.promoted() : DType::kF32; }

std::string text(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

struct Range {
  double start = 0, step = 1;
  int64_t first = 0, stride = 1;  // the same as integers, where the result is i64
  int64_t count = 0;
};

int64_t as_integer(Call& c, const char* name) {
  return c.number_is_integral(name) ? c.integer(name) : static_cast<int64_t>(c.number(name));
}

void check_range(Call& c, double start, double end, double step) {
  c.check(step != 0, "step must be nonzero");
  c.check(std::isfinite(start) && std::isfinite(end),
          "unsupported range: " + text(start) + " -> " + text(end));
  c.check(step > 0 ? end >= start : end <= start,
          "upper bound and lower bound inconsistent with step sign");
}

Range read_range(Call& c, DType dtype, bool has_start, bool has_step, bool inclusive) {
  Range range;
  double end = c.number("end");
  int64_t last = as_integer(c, "end");
  if (has_start) {
    range.start = c.number("start");
    range.first = as_integer(c, "start");
  }
  if (has_step) {
    range.step = c.number("step");
    range.stride = as_integer(c, "step");
  }
  check_range(c, range.start, end, range.step);
  if (inclusive) {
    range.count = static_cast<int64_t>(std::floor((end - range.start) / range.step)) + 1;
  } else if (dtype == DType::kI64) {
    c.check(range.stride != 0, "step must be nonzero", ArgumentError::Kind::kPythonValue);
    int64_t sign = range.stride > 0 ? 1 : -1;
    range.count = (last - range.first + range.stride - sign) / range.stride;
  } else {
    range.count = static_cast<int64_t>(std::ceil((end - range.start) / range.step));
  }
  return range;
}

Value range_values(Call& c, const Range& range, DType dtype) {
  Builder& b = c.b;
  Dims dims = {range.count};
  if (is_int(dtype)) {
    Value index = b.iota(DType::kI64, dims, 0);
    if (range.stride != 1) index = b.mul(index, b.constant_int(range.stride, DType::kI64));
    if (range.first != 0) index = b.add(index, b.constant_int(range.first, DType::kI64));
    return b.convert(index, dtype);
  }
  DType t = opmath(dtype);
  Value index = b.iota(t, dims, 0);
  if (range.step != 1) index = b.mul(index, b.constant(range.step, t));
  if (range.start != 0) index = b.add(index, b.constant(range.start, t));
  return b.convert(index, dtype);
}

DType range_dtype(Call& c, bool has_start, bool has_step) {
  if (auto given = c.dtype("dtype")) return *given;
  bool integral = c.number_is_integral("end") && (!has_start || c.number_is_integral("start")) &&
                  (!has_step || c.number_is_integral("step"));
  return integral ? DType::kI64 : default_float(c);
}

template <bool has_start, bool has_step>
Values lower_arange(Call& c) {
  DType dtype = range_dtype(c, has_start, has_step);
  c.check(is_int(dtype) || is_float(dtype), "\"arange_cpu\" not implemented for this dtype",
          ArgumentError::Kind::kNotImplemented);
  return {range_values(c, read_range(c, dtype, has_start, has_step, false), dtype)};
}

template <bool has_step>
Values lower_range(Call& c) {
  DType dtype = c.dtype("dtype").value_or(default_float(c));
  return {range_values(c, read_range(c, dtype, true, has_step, true), dtype)};
}

// From both ends towards the middle, as PyTorch does; integers are truncated from f64.
Value linspace(Call& c, DType t) {
  Builder& b = c.b;
  int64_t steps = c.integer("steps");
  Value start = c.scalar("start", t), end = c.scalar("end", t);
  if (steps <= 1) return b.broadcast_to(start, {steps});
  const int64_t half = steps / 2;
  Value index = b.convert(b.iota(DType::kI64, {steps}, 0), t);
  // XLA multiplies by the divisor's reciprocal: a second step makes the quotient as good as a division's.
  const Value length = b.sub(end, start), divisor = b.constant(static_cast<double>(steps - 1), t);
  Value step = b.div(length, divisor);
  step = b.add(step, b.div(b.sub(length, b.mul(step, divisor)), divisor));
  Value lower = b.add(start, b.mul(step, index));
  Value upper =
      b.sub(end, b.mul(step, b.sub(b.constant(static_cast<double>(steps - 1), t), index)));
  return b.select(b.lt(index, b.constant(static_cast<double>(half), t)), lower, upper);
}

DType linspace_type(DType out) { return is_int(out) ? DType::kF64 : opmath(out); }

Values lower_linspace(Call& c) { return {linspace(c, linspace_type(c.out().dtype))}; }

Values lower_logspace(Call& c) {
  DType t = linspace_type(c.out().dtype);
  return {c.b.pow(c.scalar("base", t), linspace(c, t))};
}

// -- Matrices ------------------------------------------------------------------------------------------------------------

Value identity_matrix(Call& c, int64_t rows, int64_t columns) {
  c.check(rows >= 0, "n must be greater or equal to 0, got " + std::to_string(rows));
  c.check(columns >= 0, "m must be greater or equal to 0, got " + std::to_string(columns));
  Dims dims = {rows, columns};
  Value diagonal = c.b.eq(c.b.iota(DType::kI64, dims, 0), c.b.iota(DType::kI64, dims, 1));
  return c.b.convert(diagonal, c.dtype("dtype").value_or(default_float(c)));
}

Values lower_eye(Call& c) { return {identity_matrix(c, c.integer("n"), c.integer("n"))}; }
Values lower_eye_m(Call& c) { return {identity_matrix(c, c.integer("n"), c.integer("m"))}; }

// The elements of `table` (one-dimensional) at `positions`.
Value look_up(Builder& b, Value table, Value positions) {
  GatherDims dims;
  dims.collapsed_slice_dims = {0};
  dims.start_index_map = {0};
  dims.index_vector_dim = 1;
  dims.slice_sizes = {1};
  return b.gather(table, positions, dims);
}

// Row r holds the columns first[r] .. first[r] + length[r] - 1. Element k lies in the last row that starts at or before
// k, found by bisection.
Values lower_triangle(Call& c, bool lower) {
  Builder& b = c.b;
  int64_t rows = c.integer("row"), columns = c.integer("col"), offset = c.integer("offset");
  c.check(rows >= 0, "row must be non-negative, got" + std::to_string(rows));
  c.check(columns >= 0, "col must be non-negative, got" + std::to_string(columns));
  std::vector<int64_t> starts, shifts;  // shift: column minus k
  int64_t count = 0, most = 1;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t first = lower ? 0 : std::clamp<int64_t>(r + offset, 0, columns);
    int64_t end = lower ? std::clamp<int64_t>(r + offset + 1, 0, columns) : columns;
    starts.push_back(count);
    shifts.push_back(first - count);
    count += end - first;
  }
  while (most < rows) most *= 2;
  DType dtype = c.dtype("dtype").value_or(DType::kI64);
  if (count == 0) return {b.zeros({dtype, {2, 0}})};
  Value k = b.iota(DType::kI64, {count}, 0);
  Value table = b.dense(starts, DType::kI64, {rows});
  Value row = b.constant_int(0, DType::kI64, {count});
  Value last = b.constant_int(rows - 1, DType::kI64);
  for (int64_t bit = most / 2; bit >= 1; bit /= 2) {
    Value candidate = b.add(row, b.constant_int(bit, DType::kI64));
    Value inside = b.le(candidate, last);
    Value start = look_up(b, table, b.min(candidate, last));
    row = b.select(b.logical_and(inside, b.le(start, k)), candidate, row);
  }
  Value column = b.add(k, look_up(b, b.dense(shifts, DType::kI64, {rows}), row));
  Dims one_row = {1, count};
  Value both = b.concatenate({b.reshape(row, one_row), b.reshape(column, one_row)}, 0);
  return {b.convert(both, dtype)};
}

Values lower_tril_indices(Call& c) { return lower_triangle(c, true); }
Values lower_triu_indices(Call& c) { return lower_triangle(c, false); }

constexpr Infer kComposite = Infer::kComposite;
constexpr Infer kLowering = Infer::kLowering;
constexpr Tolerance kExact = Tolerance::kExact;

}  // namespace

const OpRow kCreationRows[] = {
    {"clone", lower_clone, "", kComposite, kExact},
    {"_to_copy", lower_to_copy, "", kComposite, kExact},
    {"copy", lower_copy, "", Infer::kLikeFirst, kExact},
    {"zeros", lower_zeros, "", kComposite, kExact},
    {"zeros_like", lower_zeros, "", kComposite, kExact},
    {"ones", lower_ones, "", kComposite, kExact},
    {"ones_like", lower_ones, "", kComposite, kExact},
    {"full", lower_full, "", kComposite, kExact},
    {"full_like", lower_full, "", kComposite, kExact},
    {"scalar_tensor", lower_scalar_tensor, "", kComposite, kExact},
    {"zero", lower_zero, "", Infer::kLikeFirst, kExact},
    {"fill.Scalar", lower_fill_scalar, "", Infer::kLikeFirst, kExact},
    {"fill.Tensor", lower_fill_tensor, "", Infer::kLikeFirst, kExact},
    {"arange", lower_arange<false, false>, "end", kLowering},
    {"arange.start", lower_arange<true, false>, "start,end", kLowering},
    {"arange.start_step", lower_arange<true, true>, "start,end,step", kLowering},
    {"range", lower_range<false>, "start,end", kLowering},
    {"range.step", lower_range<true>, "start,end,step", kLowering},
    {"linspace", lower_linspace},
    {"logspace", lower_logspace},
    {"eye", lower_eye, "", kLowering, kExact},
    {"eye.m", lower_eye_m, "", kLowering, kExact},
    {"tril_indices", lower_tril_indices, "", kLowering, kExact},
    {"triu_indices", lower_triu_indices, "", kLowering, kExact},
};
const size_t kCreationRowCount = std::size(kCreationRows);

}  // namespace torch_tpu::lowering
