// Elementwise formulas that several operator families share.
#include "lowering/pointwise_math.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace torch_tpu::lowering {

using stablehlo::byte_size;
using stablehlo::is_complex;
using stablehlo::is_float;
using stablehlo::is_int;
using stablehlo::is_signed_int;
using stablehlo::is_unsigned_int;
using stablehlo::opmath;

DType compute_type(DType out) {
  if (is_int(out) || out == DType::kPred) return DType::kF32;
  return opmath(out);
}

Value plus(Builder& b, Value x, Value y) {
  return x.dtype() == DType::kPred ? b.logical_or(x, y) : b.add(x, y);
}

Value times(Builder& b, Value x, Value y) {
  return x.dtype() == DType::kPred ? b.logical_and(x, y) : b.mul(x, y);
}

Value maximum(Builder& b, Value x, Value y) {
  return x.dtype() == DType::kPred ? b.logical_or(x, y) : b.max(x, y);
}

Value minimum(Builder& b, Value x, Value y) {
  return x.dtype() == DType::kPred ? b.logical_and(x, y) : b.min(x, y);
}

Value trunc(Builder& b, Value x) {
  return b.select(b.lt(x, b.like(x, 0.0)), b.unary(Unary::kCeil, x), b.unary(Unary::kFloor, x));
}

Value is_inf(Builder& b, Value x) {
  if (is_complex(x.dtype())) {
    return b.logical_or(is_inf(b, b.unary(Unary::kReal, x)), is_inf(b, b.unary(Unary::kImag, x)));
  }
  if (!is_float(x.dtype())) return b.constant_bool(false, x.dims());
  return b.eq(b.abs(x), b.like(x, std::numeric_limits<double>::infinity()));
}

Value is_finite(Builder& b, Value x) {
  if (is_complex(x.dtype())) {
    return b.logical_and(is_finite(b, b.unary(Unary::kReal, x)),
                         is_finite(b, b.unary(Unary::kImag, x)));
  }
  if (!is_float(x.dtype())) return b.constant_bool(true, x.dims());
  return b.unary(Unary::kIsFinite, x);
}

Value sign_bit(Builder& b, Value x) {
  DType t = x.dtype();
  if (is_unsigned_int(t) || t == DType::kPred) return b.constant_bool(false, x.dims());
  if (is_signed_int(t)) return b.lt(x, b.constant_int(0, t));
  DType bits = DType::kI8;
  switch (byte_size(t)) {
    case 2:
      bits = DType::kI16;
      break;
    case 4:
      bits = DType::kI32;
      break;
    case 8:
      bits = DType::kI64;
      break;
    default:
      break;
  }
  return b.lt(b.bitcast_convert(x, bits), b.constant_int(0, bits));
}

Value copysign(Builder& b, Value x, Value y) {
  Value magnitude = b.abs(x);
  return b.select(sign_bit(b, y), b.neg(magnitude), magnitude);
}

Value absolute(Builder& b, Value x) {
  bool itself = is_unsigned_int(x.dtype()) || x.dtype() == DType::kPred;
  return itself ? x : b.abs(x);
}

Value sign(Builder& b, Value x) {
  DType t = x.dtype();
  if (t == DType::kPred) return x;
  if (is_unsigned_int(t)) return b.min(x, b.constant_int(1, t));
  if (!is_float(t)) return b.unary(Unary::kSign, x);
  return b.select(b.is_nan(x), b.like(x, 0.0), b.unary(Unary::kSign, x));
}

Value negate(Builder& b, Value x) {
  return is_unsigned_int(x.dtype()) ? b.sub(b.constant_int(0, x.dtype()), x) : b.neg(x);
}

Value conjugate(Builder& b, Value x) {
  if (!is_complex(x.dtype())) return x;
  return b.binary(Binary::kComplex, b.unary(Unary::kReal, x), b.neg(b.unary(Unary::kImag, x)));
}

Value reciprocal(Builder& b, Value x) { return b.div(b.like(x, 1.0), x); }
Value frac(Builder& b, Value x) { return b.sub(x, trunc(b, x)); }
Value log2(Builder& b, Value x) { return b.div(b.log(x), b.like(x, std::numbers::ln2)); }
Value log10(Builder& b, Value x) { return b.div(b.log(x), b.like(x, std::numbers::ln10)); }

Value floor_divide(Builder& b, Value x, Value y) {
  DType t = x.dtype();
  if (is_unsigned_int(t)) return b.div(x, y);
  if (is_int(t)) {
    Value quotient = b.div(x, y);
    Value rest = b.sub(x, b.mul(quotient, y));
    Value zero = b.constant_int(0, t);
    Value signs_differ = b.ne(b.lt(rest, zero), b.lt(y, zero));
    Value adjust = b.logical_and(b.ne(rest, zero), signs_differ);
    return b.sub(quotient, b.convert(adjust, t));
  }
  Value zero = b.like(x, 0.0);
  Value one = b.like(x, 1.0);
  Value exact = b.div(x, y);
  Value mod = b.rem(x, y);
  Value quotient = b.div(b.sub(x, mod), y);
  Value signs_differ = b.ne(b.lt(y, zero), b.lt(mod, zero));
  quotient = b.select(b.logical_and(b.ne(mod, zero), signs_differ), b.sub(quotient, one), quotient);
  Value floored = b.unary(Unary::kFloor, quotient);
  Value too_low = b.gt(b.sub(quotient, floored), b.like(x, 0.5));
  floored = b.select(too_low, b.add(floored, one), floored);
  Value result = b.select(b.ne(quotient, zero), floored, copysign(b, zero, exact));
  return b.select(b.eq(y, zero), exact, result);
}

Value trunc_divide(Builder& b, Value x, Value y) {
  Value quotient = b.div(x, y);
  return is_int(x.dtype()) ? quotient : trunc(b, quotient);
}

Value remainder(Builder& b, Value x, Value y) {
  DType t = x.dtype();
  Value rest = b.rem(x, y);
  if (is_unsigned_int(t)) return rest;
  Value zero = b.constant(0.0, t);
  Value adjust = b.logical_and(b.ne(rest, zero), b.ne(b.lt(y, zero), b.lt(rest, zero)));
  return b.select(adjust, b.add(rest, y), rest);
}

Value power(Builder& b, Value x, Value y) {
  if (x.dtype() != DType::kPred) return b.pow(x, y);
  return b.logical_or(x, b.logical_not(y));
}

Value power_static(Builder& b, Value x, double exponent) {
  Value one = b.like(x, 1.0);
  if (exponent == 0.0) return b.broadcast_to(one, x.dims());
  if (exponent == 1.0) return x;
  if (x.dtype() == DType::kPred) return x;
  if (exponent == 2.0) return b.mul(x, x);
  if (exponent == 3.0) return b.mul(b.mul(x, x), x);
  if (is_int(x.dtype())) return b.pow(x, b.constant(exponent, x.dtype()));
  if (exponent == 0.5) return b.sqrt(x);
  if (is_float(x.dtype())) {
    if (exponent == -0.5) return b.rsqrt(x);
    if (exponent == -1.0) return b.div(one, x);
    if (exponent == -2.0) return b.div(one, b.mul(x, x));
  }
  return b.pow(x, b.constant(exponent, x.dtype()));
}

Value clamp_between(Builder& b, Value x, Value low, Value high) {
  if (low) x = maximum(b, x, low);
  if (high) x = minimum(b, x, high);
  return x;
}

void check_gelu(const Call& c) {
  const std::string approximate = c.str("approximate");
  c.check(approximate == "none" || approximate == "tanh",
          "approximate argument must be either none or tanh.");
}

Value sigmoid(Builder& b, Value x) { return b.logistic(x); }

Value log1p_exp(Builder& b, Value x) {
  Value rest = b.unary(Unary::kLog1p, b.exp(b.neg(b.abs(x))));
  return b.add(b.max(x, b.like(x, 0.0)), rest);
}

Value lerp(Builder& b, Value start, Value end, Value weight) {
  Value difference = b.sub(end, start);
  Value magnitude = is_complex(weight.dtype()) ? b.abs(weight) : weight;
  // PyTorch compares |weight| for complex numbers and the weight itself for real ones.
  Value small = b.lt(magnitude, b.constant(0.5, magnitude.dtype()));
  Value from_start = b.add(start, b.mul(weight, difference));
  Value from_end = b.sub(end, b.mul(difference, b.sub(b.like(weight, 1.0), weight)));
  return b.select(small, from_start, from_end);
}

Value convert_like_torch(Builder& b, Value x, DType dtype) {
  DType from = x.dtype();
  if (from == dtype) return x;
  if (is_complex(from) && !is_complex(dtype) && dtype != DType::kPred) {
    return convert_like_torch(b, b.unary(Unary::kReal, x), dtype);
  }
  if (!is_float(from) || !is_int(dtype)) return b.convert(x, dtype);
  if (byte_size(from) < 4) x = b.convert(x, DType::kF32);
  bool wide = byte_size(dtype) == 8 || dtype == DType::kU32;
  DType through = wide ? DType::kI64 : DType::kI32;
  Value limit = b.constant(std::ldexp(1.0, wide ? 63 : 31), x.dtype());
  Value converted = b.select(b.lt(b.abs(x), limit), b.convert(x, through), b.lowest(through));
  if (dtype == DType::kU64)
    converted = b.select(b.ge(x, limit), b.convert(x, dtype), b.convert(converted, dtype));
  return b.convert(converted, dtype);
}

}  // namespace torch_tpu::lowering
