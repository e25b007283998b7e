// Reductions: sums, products, extremes and their positions, truth values, moments, norms, medians, distances.
#include <algorithm>
#include <cmath>

#include "lowering/axes.h"
#include "lowering/families.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::Binary;
using stablehlo::Monoid;
using stablehlo::opmath;
using stablehlo::real_of;
using stablehlo::Unary;
using Kind = ArgumentError::Kind;

std::vector<int64_t> axes_of(const Call& c, const Value& x) {
  return c.wrap_dims(c.ints("dim"), x.rank());
}

bool keepdim_of(const Call& c) { return c.has("keepdim") && c.boolean("keepdim"); }

// x in the result's dtype (PyTorch casts first), then in the type sums are accumulated in.
Value accumulator(Builder& b, Value x, DType out) {
  return b.convert(b.convert(x, out), opmath(out));
}

DType sum_dtype(const Call& c, const Value& x) {
  if (auto dtype = c.dtype("dtype")) return *dtype;
  return stablehlo::is_int(x.dtype()) || x.dtype() == DType::kPred ? DType::kI64 : x.dtype();
}

// -- Sums and products ------------------------------------------------------------------------------------------

Values lower_sum(Call& c) {
  const DType out = c.out().dtype;
  const Value x = accumulator(c.b, c.tensor("self"), out);
  return {c.b.convert(sum_over(c.b, x, axes_of(c, x), keepdim_of(c)), out)};
}

Values lower_mean(Call& c) {
  const DType out = c.out().dtype;
  const Value x = accumulator(c.b, c.tensor("self"), out);
  return {c.b.convert(mean_over(c.b, x, axes_of(c, x), keepdim_of(c)), out)};
}

Values lower_nansum(Call& c) {
  Value x = c.tensor("self");
  c.check(!stablehlo::is_complex(x.dtype()), "nansum does not support complex inputs");
  const DType out = sum_dtype(c, x);
  if (stablehlo::is_float(x.dtype())) x = c.b.select(c.b.is_nan(x), c.b.like(x, 0), x);
  x = accumulator(c.b, x, out);
  return {c.b.convert(sum_over(c.b, x, axes_of(c, x), keepdim_of(c)), out)};
}

Values lower_prod_all(Call& c) {
  const DType out = sum_dtype(c, c.tensor("self"));
  const Value x = accumulator(c.b, c.tensor("self"), out);
  return {c.b.convert(reduce_over(c.b, Monoid::kMultiply, x, all_axes(x.rank())), out)};
}

Values lower_prod(Call& c) {
  const DType out = c.out().dtype;
  const Value x = accumulator(c.b, c.tensor("self"), out);
  return {c.b.convert(reduce_over(c.b, Monoid::kMultiply, x, axes_of(c, x), keepdim_of(c)), out)};
}

Values lower_count_nonzero(Call& c) {
  const Value x = c.tensor("self");
  const Value hits = c.b.convert(c.b.convert(x, DType::kPred), DType::kI64);
  return {sum_over(c.b, hits, axes_of(c, x))};
}

// -- Extremes ---------------------------------------------------------------------------------------------------

Value extreme(Builder& b, Value x, const std::vector<int64_t>& axes, bool largest, bool keepdim) {
  if (x.dtype() == DType::kPred)
    return reduce_over(b, largest ? Monoid::kOr : Monoid::kAnd, x, axes, keepdim);
  return reduce_over(b, largest ? Monoid::kMaximum : Monoid::kMinimum, x, axes, keepdim);
}

Values lower_amax(Call& c) {
  const Value x = c.tensor("self");
  return {extreme(c.b, x, axes_of(c, x), true, keepdim_of(c))};
}

Values lower_amin(Call& c) {
  const Value x = c.tensor("self");
  return {extreme(c.b, x, axes_of(c, x), false, keepdim_of(c))};
}

Values extreme_of_all(Call& c, bool largest) {
  const Value x = c.tensor("self");
  c.check(x.numel() != Size(0), std::string(largest ? "max()" : "min()") +
                                    ": Expected reduction dim to be specified for input.numel() == "
                                    "0. Specify the reduction dim with the "
                                    "'dim' argument.");
  c.check(!stablehlo::is_complex(x.dtype()),
          std::string("\"") + (largest ? "max" : "min") + "_all\" not implemented for '" +
              scalar_type_name(x.dtype()) + "'",
          Kind::kNotImplemented);
  return {extreme(c.b, x, all_axes(x.rank()), largest, false)};
}

Values lower_max_all(Call& c) { return extreme_of_all(c, true); }
Values lower_min_all(Call& c) { return extreme_of_all(c, false); }

Values extreme_along(Call& c, bool largest) {
  const Value x = c.tensor("self");
  const int64_t axis = c.wrap_dim(c.integer("dim"), x.rank());
  auto [values, indices] = arg_reduce(c.b, x, axis, largest);
  if (!keepdim_of(c)) return {values, indices};
  return {keep_axis(c.b, values, x, axis), keep_axis(c.b, indices, x, axis)};
}

Values lower_max_dim(Call& c) { return extreme_along(c, true); }
Values lower_min_dim(Call& c) { return extreme_along(c, false); }

Values arg_extreme(Call& c, bool largest) {
  Value x = c.tensor("self");
  if (!c.has("dim")) {
    const Value index = arg_reduce(c.b, c.b.flatten(x), 0, largest).second;
    return {keepdim_of(c) ? c.b.reshape(index, Dims(x.rank(), Size(1))) : index};
  }
  const int64_t axis = c.wrap_dim(c.integer("dim"), x.rank());
  const Value index = arg_reduce(c.b, x, axis, largest).second;
  return {keepdim_of(c) ? keep_axis(c.b, index, x, axis) : index};
}

Values lower_argmax(Call& c) { return arg_extreme(c, true); }
Values lower_argmin(Call& c) { return arg_extreme(c, false); }

Values lower_aminmax(Call& c) {
  const Value x = c.tensor("self");
  std::vector<int64_t> axes = axes_of(c, x);
  return {extreme(c.b, x, axes, false, keepdim_of(c)), extreme(c.b, x, axes, true, keepdim_of(c))};
}

// -- Truth ------------------------------------------------------------------------------------------------------

Values truth(Call& c, Monoid op) {
  const Value x = c.tensor("self");
  // dim=() of the .dims overload reduces nothing, unlike dim=None.
  const bool none = c.op().ends_with(".dims") && c.has("dim") && c.ints("dim").empty();
  const Value r = reduce_over(c.b, op, c.b.convert(x, DType::kPred),
                              none ? std::vector<int64_t>() : axes_of(c, x), keepdim_of(c));
  return {c.b.convert(r, c.out().dtype)};
}

Values lower_any(Call& c) { return truth(c, Monoid::kOr); }
Values lower_all(Call& c) { return truth(c, Monoid::kAnd); }

Values truth_of_all(Call& c, Monoid op) {
  const Value x = c.tensor("self");
  c.check(x.dtype() == DType::kPred,
          c.op() + ": expected a bool tensor, but got " + scalar_type_name(x.dtype()));
  return {reduce_over(c.b, op, x, all_axes(x.rank()))};
}

Values lower_is_all_true(Call& c) { return truth_of_all(c, Monoid::kAnd); }
Values lower_is_any_true(Call& c) { return truth_of_all(c, Monoid::kOr); }

// -- Moments ----------------------------------------------------------------------------------------------------

struct Moments {
  Value variance, mean;
};

Moments moments(Call& c, const char* name) {
  Builder& b = c.b;
  Value x = c.tensor("self");
  c.check(stablehlo::is_float(x.dtype()) || stablehlo::is_complex(x.dtype()),
          std::string(name) + " only support floating point and complex dtypes");
  const DType out = x.dtype();
  x = wide(b, x);
  const DType real = real_of(x.dtype());
  const std::vector<int64_t> axes = axes_of(c, x);
  const Value mean = mean_over(b, x, axes, true);
  Value square = b.sub(x, mean);
  if (stablehlo::is_complex(x.dtype())) {
    const Value re = b.unary(Unary::kReal, square), im = b.unary(Unary::kImag, square);
    square = b.add(b.mul(re, re), b.mul(im, im));
  } else {
    square = b.mul(square, square);
  }
  const Value correction = c.optional_scalar("correction", real).value_or(b.constant(1, real));
  const Size count = extent(x, axes);
  const bool none = count.is_static() && count.bound() == 0;  // then 0 / 0, whatever the correction
  const Value freedom = none ? b.constant(0, real)
                             : b.max(b.sub(b.size(count, real), correction), b.constant(0, real));
  const bool keepdim = keepdim_of(c);
  Moments m;
  m.variance = b.convert(b.div(sum_over(b, square, axes, keepdim), freedom), real);
  m.mean = b.convert(keepdim ? mean : mean_over(b, x, axes, false), out);
  return m;
}

Values lower_var(Call& c) {
  const DType out = real_of(c.tensor("self").dtype());
  return {c.b.convert(moments(c, "std and var").variance, out)};
}

Values lower_std(Call& c) {
  const DType out = real_of(c.tensor("self").dtype());
  return {c.b.convert(c.b.sqrt(moments(c, "std and var").variance), out)};
}

Values lower_var_mean(Call& c) {
  const DType out = real_of(c.tensor("self").dtype());
  const Moments m = moments(c, "var_mean");
  return {c.b.convert(m.variance, out), m.mean};
}

Values lower_std_mean(Call& c) {
  const DType out = real_of(c.tensor("self").dtype());
  const Moments m = moments(c, "std_mean");
  return {c.b.convert(c.b.sqrt(m.variance), out), m.mean};
}

// -- Norms ------------------------------------------------------------------------------------------------------

Value vector_norm(Builder& b, Value x, double ord, const std::vector<int64_t>& axes, bool keepdim) {
  const Value magnitude = stablehlo::is_unsigned_int(x.dtype()) ? x : b.abs(x);
  const DType real = magnitude.dtype();
  if (ord == 0)
    return sum_over(b, b.convert(b.ne(magnitude, b.like(magnitude, 0)), real), axes, keepdim);
  if (std::isinf(ord)) return extreme(b, magnitude, axes, ord > 0, keepdim);
  if (ord == 1) return sum_over(b, magnitude, axes, keepdim);
  if (ord == 2) return b.sqrt(sum_over(b, b.mul(magnitude, magnitude), axes, keepdim));
  const Value total = sum_over(b, b.pow(magnitude, b.like(magnitude, ord)), axes, keepdim);
  return b.pow(total, b.like(magnitude, 1 / ord));
}

Values norm(Call& c, double ord) {
  Value x = c.tensor("self");
  if (auto dtype = c.dtype("dtype")) x = c.b.convert(x, *dtype);
  x = wide(c.b, x);
  const Value r = vector_norm(c.b, x, ord, axes_of(c, x), keepdim_of(c));
  return {c.b.convert(r, c.out().dtype)};
}

Values lower_vector_norm(Call& c) { return norm(c, c.number("ord")); }
Values lower_norm(Call& c) { return norm(c, c.optional_number("p").value_or(2)); }

Values lower_logsumexp(Call& c) {
  Builder& b = c.b;
  Value x = c.tensor("self");
  if (!stablehlo::is_float(x.dtype()) && !stablehlo::is_complex(x.dtype()))
    x = b.convert(x, DType::kF32);
  c.check(stablehlo::is_float(x.dtype()),
          "logsumexp(): Expected floating point type for result tensor, but got: " +
              std::string(scalar_type_name(x.dtype())));
  const DType out = x.dtype();
  x = wide(b, x);
  const std::vector<int64_t> axes = axes_of(c, x);
  Value top = max_over(b, x, axes, true);
  const Value infinite = b.eq(b.abs(top), b.like(top, HUGE_VAL));
  top = b.select(infinite, b.like(top, 0), top);
  Value r = b.add(b.log(sum_over(b, b.exp(b.sub(x, top)), axes, true)), top);
  if (!keepdim_of(c) && !axes.empty()) {
    Dims dims;
    for (int64_t i = 0; i < x.rank(); ++i) {
      if (std::find(axes.begin(), axes.end(), i) == axes.end()) dims.push_back(x.dim(i));
    }
    r = b.reshape(r, dims);
  }
  return {b.convert(r, out)};
}

// -- Order statistics -------------------------------------------------------------------------------------------

// The element of sorted rank `rank` (per row, with the axis kept) of each row.
Value pick(Builder& b, Value sorted, Value rank, int64_t axis) {
  const Value here = b.eq(b.iota(DType::kI32, sorted.dims(), axis), rank);
  return sum_over(
      b, b.select(here, sorted, b.convert(b.constant_int(0, DType::kI32), sorted.dtype())), {axis});
}

std::pair<Value, Value> median_along(Builder& b, Value x, int64_t axis, bool skip_nan) {
  if (x.rank() == 0) return {x, b.constant_int(0, DType::kI64)};
  const bool real = stablehlo::is_float(x.dtype());
  auto less = [&b, real](const std::vector<Value>& v) -> std::vector<Value> {
    const Value below = b.lt(v[0], v[1]);
    if (!real) return {below};
    return {b.logical_or(below, b.logical_and(b.is_nan(v[1]), b.logical_not(b.is_nan(v[0]))))};
  };
  const Values sorted = b.sort({x, b.iota(DType::kI32, x.dims(), axis)}, axis, true, less);
  const Value two = b.constant_int(2, DType::kI32), one = b.constant_int(1, DType::kI32);
  const Value zero = b.constant_int(0, DType::kI32);
  Value valid = b.size(x.dim(axis), DType::kI32);
  Value rank = b.div(b.max(b.sub(valid, one), zero), two);
  if (real) {
    const Value numbers =
        sum_over(b, b.convert(b.logical_not(b.is_nan(x)), DType::kI32), {axis}, true);
    rank = skip_nan ? b.div(b.max(b.sub(numbers, one), zero), two)
                    : b.select(b.lt(numbers, valid), numbers, rank);
  }
  return {pick(b, sorted[0], rank, axis), b.convert(pick(b, sorted[1], rank, axis), DType::kI64)};
}

Values median_of_all(Call& c, bool skip_nan) {
  const Value x = c.tensor("self");
  if (x.numel() == Size(0)) {
    const bool real = stablehlo::is_float(x.dtype());
    return {real ? c.b.constant(NAN, x.dtype()) : c.b.lowest(x.dtype())};
  }
  return {median_along(c.b, c.b.flatten(x), 0, skip_nan).first};
}

Values lower_median_all(Call& c) { return median_of_all(c, false); }
Values lower_nanmedian_all(Call& c) { return median_of_all(c, true); }

Values median_dim(Call& c, bool skip_nan) {
  const Value x = c.tensor("self");
  const int64_t axis = c.wrap_dim(c.integer("dim"), x.rank());
  c.check(x.rank() == 0 || x.dim(axis) != Size(0),
          "median(): Expected reduction dim " + std::to_string(axis) + " to have non-zero size.",
          Kind::kIndex);
  auto [values, indices] = median_along(c.b, x, axis, skip_nan);
  if (!keepdim_of(c)) return {values, indices};
  return {keep_axis(c.b, values, x, axis), keep_axis(c.b, indices, x, axis)};
}

Values lower_median_dim(Call& c) { return median_dim(c, false); }
Values lower_nanmedian_dim(Call& c) { return median_dim(c, true); }

// -- Distances --------------------------------------------------------------------------------------------------

// [..., p, m] and [..., r, m] as [..., p, 1, m] and [..., 1, r, m].
std::pair<Value, Value> paired_rows(Builder& b, Value x, Value y) {
  Dims left = x.dims(), right = y.dims();
  left.insert(left.end() - 1, Size(1));
  right.insert(right.end() - 2, Size(1));
  return {b.reshape(x, left), b.reshape(y, right)};
}

Values lower_euclidean_dist(Call& c) {
  Builder& b = c.b;
  const Value x = c.tensor("x1"), y = c.tensor("x2");
  const int64_t rank = x.rank();
  c.check(rank >= 2 && y.rank() == rank,
          "cdist only supports at least 2D tensors, X1 got: " + std::to_string(rank) +
              "D, X2 got: " + std::to_string(y.rank()) + "D");
  c.check(x.dim(-1) == y.dim(-1), "X1 and X2 must have the same number of columns. X1: " +
                                      x.dim(-1).str() + " X2: " + y.dim(-1).str());
  const std::vector<int64_t> batch = all_axes(rank - 2);
  const DType real = opmath(x.dtype());
  const Value wx = wide(b, x), wy = wide(b, y);
  const Value product = b.dot_general(x, y, batch, batch, {rank - 1}, {rank - 1}, real);
  Dims row = wy.dims();
  row.erase(row.end() - 1);
  row.insert(row.end() - 1, Size(1));
  const Value norms = b.add(sum_over(b, b.mul(wx, wx), {rank - 1}, true),
                            b.reshape(sum_over(b, b.mul(wy, wy), {rank - 1}), row));
  const Value square = b.sub(norms, b.mul(product, b.like(product, 2)));
  return {b.convert(b.sqrt(b.max(square, b.like(square, 0))), x.dtype())};
}

Values lower_cdist(Call& c) {
  Builder& b = c.b;
  Value x = c.tensor("x1"), y = c.tensor("x2");
  c.check(x.rank() >= 2,
          "cdist only supports at least 2D tensors, X1 got: " + std::to_string(x.rank()) + "D");
  c.check(y.rank() >= 2,
          "cdist only supports at least 2D tensors, X2 got: " + std::to_string(y.rank()) + "D");
  c.check(x.dim(-1) == y.dim(-1), "X1 and X2 must have the same number of columns. X1: " +
                                      x.dim(-1).str() + " X2: " + y.dim(-1).str());
  const double p = c.number("p");
  c.check(p >= 0, "cdist only supports non-negative p values");
  const DType out = x.dtype();
  auto [left, right] = paired_rows(b, wide(b, x), wide(b, y));
  const Value difference = b.sub(left, right);
  return {b.convert(vector_norm(b, difference, p, {difference.rank() - 1}, false), out)};
}

Values lower_cdist_backward(Call& c) {
  Builder& b = c.b;
  const Value x = c.tensor("x1");
  const double p = c.number("p");
  const DType out = x.dtype();
  auto [left, right] = paired_rows(b, wide(b, x), wide(b, c.tensor("x2")));
  const Value difference = b.sub(left, right);
  auto last_one = [&](Value v) {
    Dims dims = v.dims();
    dims.push_back(1);
    return b.reshape(wide(b, v), dims);
  };
  const Value grad = last_one(c.tensor("grad")), dist = last_one(c.tensor("cdist"));
  const Value size = b.abs(difference), zero = b.like(difference, 0);
  const Value sign = b.unary(Unary::kSign, difference);
  Value slope;
  if (p == 0) {
    slope = b.broadcast_to(zero, difference.dims());
  } else if (p == 1) {
    slope = b.mul(grad, sign);
  } else if (std::isinf(p)) {
    slope = b.select(b.eq(size, dist), b.mul(grad, sign), zero);
  } else {
    const Value power = b.pow(size, b.like(size, p - 1));
    slope = b.div(b.mul(b.mul(grad, sign), power), b.pow(dist, b.like(dist, p - 1)));
    slope = b.select(b.logical_or(b.eq(dist, zero), b.eq(difference, zero)), zero, slope);
  }
  const Value summed = sum_over(b, slope, {slope.rank() - 2});
  return {b.convert(sum_to(b, summed, x.dims()), out)};
}

}  // namespace

const OpRow kReductionRows[] = {
    {"sum.dim_IntList", lower_sum, "", Infer::kComposite, Tolerance::kReduction},
    {"mean.dim", lower_mean, "", Infer::kComposite, Tolerance::kReduction},
    {"nansum", lower_nansum, "", Infer::kLowering, Tolerance::kReduction},
    {"prod", lower_prod_all, "", Infer::kLowering, Tolerance::kReduction},
    {"prod.dim_int", lower_prod, "", Infer::kComposite, Tolerance::kReduction},
    {"count_nonzero.dim_IntList", lower_count_nonzero, "", Infer::kLowering, Tolerance::kExact},
    {"amax", lower_amax, "", Infer::kComposite, Tolerance::kExact},
    {"amin", lower_amin, "", Infer::kComposite, Tolerance::kExact},
    {"max", lower_max_all, "", Infer::kLowering, Tolerance::kExact},
    {"min", lower_min_all, "", Infer::kLowering, Tolerance::kExact},
    {"max.dim", lower_max_dim, "", Infer::kComposite, Tolerance::kExact},
    {"min.dim", lower_min_dim, "", Infer::kComposite, Tolerance::kExact},
    {"argmax", lower_argmax, "", Infer::kComposite, Tolerance::kExact},
    {"argmin", lower_argmin, "", Infer::kComposite, Tolerance::kExact},
    {"aminmax", lower_aminmax, "", Infer::kComposite, Tolerance::kExact},
    {"any", lower_any, "", Infer::kComposite, Tolerance::kExact},
    {"any.dim", lower_any, "", Infer::kComposite, Tolerance::kExact},
    {"any.dims", lower_any, "", Infer::kComposite, Tolerance::kExact},
    {"all", lower_all, "", Infer::kComposite, Tolerance::kExact},
    {"all.dim", lower_all, "", Infer::kComposite, Tolerance::kExact},
    {"all.dims", lower_all, "", Infer::kComposite, Tolerance::kExact},
    {"_is_all_true", lower_is_all_true, "", Infer::kLowering, Tolerance::kExact},
    {"_is_any_true", lower_is_any_true, "", Infer::kLowering, Tolerance::kExact},
    {"var.correction", lower_var, "", Infer::kLowering, Tolerance::kReduction},
    {"std.correction", lower_std, "", Infer::kLowering, Tolerance::kReduction},
    {"var_mean.correction", lower_var_mean, "", Infer::kLowering, Tolerance::kReduction},
    {"std_mean.correction", lower_std_mean, "", Infer::kLowering, Tolerance::kReduction},
    {"linalg_vector_norm", lower_vector_norm, "ord", Infer::kComposite, Tolerance::kReduction},
    {"norm.ScalarOpt_dim", lower_norm, "p", Infer::kComposite, Tolerance::kReduction},
    {"norm.ScalarOpt_dim_dtype", lower_norm, "p", Infer::kComposite, Tolerance::kReduction},
    {"logsumexp", lower_logsumexp, "", Infer::kLowering, Tolerance::kReduction},
    {"median", lower_median_all, "", Infer::kLowering, Tolerance::kExact},
    {"nanmedian", lower_nanmedian_all, "", Infer::kLowering, Tolerance::kExact},
    {"median.dim", lower_median_dim, "", Infer::kLowering, Tolerance::kExact},
    {"nanmedian.dim", lower_nanmedian_dim, "", Infer::kLowering, Tolerance::kExact},
    {"_euclidean_dist", lower_euclidean_dist, "", Infer::kLowering, Tolerance::kContraction},
    {"_cdist_forward", lower_cdist, "p", Infer::kLowering, Tolerance::kReduction},
    {"_cdist_backward", lower_cdist_backward, "p", Infer::kLowering, Tolerance::kReduction},
};
const size_t kReductionRowCount = std::size(kReductionRows);

}  // namespace torch_tpu::lowering
