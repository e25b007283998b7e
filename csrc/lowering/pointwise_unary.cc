// Elementwise functions of one operand.
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

#include "lowering/families.h"
#include "lowering/pointwise_math.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::is_complex;
using stablehlo::is_float;
using stablehlo::is_int;
using stablehlo::opmath;

using UnaryFn = Value (*)(Builder& b, Value x);

// Integers become floating point; short floats are computed in f32.
template <UnaryFn function>
Values in_float(Call& c) {
  return {function(c.b, c.tensor("self", compute_type(c.out().dtype)))};
}

template <Unary op>
Values in_float(Call& c) {
  return {c.b.unary(op, c.tensor("self", compute_type(c.out().dtype)))};
}

// The operand's own type, exact.
template <UnaryFn function>
Values in_own_type(Call& c) {
  return {function(c.b, c.tensor("self"))};
}

// Rounding: integers are themselves.
template <UnaryFn function>
Values rounding(Call& c) {
  Value x = c.tensor("self");
  return {is_float(x.dtype()) ? function(c.b, x) : x};
}

Value floor(Builder& b, Value x) { return b.unary(Unary::kFloor, x); }
Value ceil(Builder& b, Value x) { return b.unary(Unary::kCeil, x); }
Value round_to_even(Builder& b, Value x) { return b.unary(Unary::kRoundNearestEven, x); }

Values lower_round_decimals(Call& c) {
  Value x = c.tensor("self");
  if (!is_float(x.dtype())) return {x};
  int64_t decimals = c.integer("decimals");
  x = c.tensor("self", opmath(x.dtype()));
  Value scale = c.b.like(x, std::pow(10.0, static_cast<double>(std::abs(decimals))));
  if (decimals < 0) return {c.b.mul(round_to_even(c.b, c.b.div(x, scale)), scale)};
  return {c.b.div(round_to_even(c.b, c.b.mul(x, scale)), scale)};
}

Value sgn(Builder& b, Value x) {
  if (!is_complex(x.dtype())) return sign(b, x);
  Value length = b.abs(x);
  Value one = b.like(length, 1.0);
  Value zero = b.eq(length, b.like(length, 0.0));
  Value divisor = b.convert(b.select(zero, one, length), x.dtype());
  return b.div(x, divisor);
}

Values lower_angle(Call& c) {
  Value x = c.tensor("self");
  if (is_complex(x.dtype())) {
    return {c.b.binary(Binary::kAtan2, c.b.unary(Unary::kImag, x), c.b.unary(Unary::kReal, x))};
  }
  if (!is_float(x.dtype())) x = c.tensor("self", DType::kF32);
  Value zero = c.b.like(x, 0.0);
  Value angle = c.b.select(c.b.lt(x, zero), c.b.like(x, std::numbers::pi), zero);
  return {c.b.select(c.b.is_nan(x), x, angle)};
}

Value bitwise_not(Builder& b, Value x) { return b.logical_not(x); }

Value is_nan(Builder& b, Value x) {
  bool never = is_int(x.dtype()) || x.dtype() == DType::kPred;
  return never ? b.constant_bool(false, x.dims()) : b.is_nan(x);
}

template <bool negative>
Value is_signed_infinity(Builder& b, Value x) {
  if (!is_float(x.dtype())) return b.constant_bool(false, x.dims());
  double infinity = std::numeric_limits<double>::infinity();
  return b.eq(x, b.like(x, negative ? -infinity : infinity));
}

Values lower_logical_not(Call& c) { return {c.b.logical_not(c.tensor("self", DType::kPred))}; }

double largest_finite(DType t) {
  switch (t) {
    case DType::kF16:
      return 65504.0;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kF64:
      return std::numeric_limits<double>::max();
    case DType::kF8E4M3FN:
      return 448.0;
    case DType::kF8E5M2:
      return 57344.0;
    default:
      return std::numeric_limits<float>::max();
  }
}

Value replace_special(Call& c, Value x) {
  DType t = x.dtype();
  double largest = largest_finite(t);
  Builder& b = c.b;
  auto replacement = [&](const char* name, double fallback) {
    return c.has(name) ? c.scalar(name, t) : b.constant(fallback, t);
  };
  Value result = b.select(is_signed_infinity<false>(b, x), replacement("posinf", largest), x);
  result = b.select(is_signed_infinity<true>(b, x), replacement("neginf", -largest), result);
  return b.select(b.is_nan(x), replacement("nan", 0.0), result);
}

Values lower_nan_to_num(Call& c) {
  Value x = c.tensor("self");
  if (is_complex(x.dtype())) {
    Value real = replace_special(c, c.b.unary(Unary::kReal, x));
    Value imaginary = replace_special(c, c.b.unary(Unary::kImag, x));
    return {c.b.binary(Binary::kComplex, real, imaginary)};
  }
  return {is_float(x.dtype()) ? replace_special(c, x) : x};
}

// -- Functions -------------------------------------------------------------------------------------------------------

Value exp2(Builder& b, Value x) { return b.pow(b.like(x, 2.0), x); }

Value sinc(Builder& b, Value x) {
  Value scaled = b.mul(x, b.like(x, std::numbers::pi));
  Value zero = b.eq(x, b.like(x, 0.0));
  return b.select(zero, b.like(x, 1.0), b.div(b.unary(Unary::kSin, scaled), scaled));
}

// The lowering defines the type: PyTorch has no shape rule in C++ for this operator.
Values lower_logit(Call& c) {
  Builder& b = c.b;
  DType own = c.tensor("self").dtype();
  DType t = compute_type(own);
  Value x = c.tensor("self", t);
  Value one = b.like(x, 1.0);
  if (c.has("eps")) {
    Value eps = c.scalar("eps", t);
    x = clamp_between(b, x, eps, b.sub(one, eps));
  }
  Value result = b.log(b.div(x, b.sub(one, x)));
  return {b.convert(result, is_float(own) ? own : t)};
}

// The operand is complex or real; a complex one's result is real.
Values lower_abs(Call& c) {
  Value x = c.tensor("self");
  c.check(x.dtype() != DType::kPred, "\"abs_cpu\" not implemented for 'Bool'",
          ArgumentError::Kind::kNotImplemented);
  return {absolute(c.b, x)};
}

Value sqrt(Builder& b, Value x) { return b.sqrt(x); }

constexpr Tolerance kExact = Tolerance::kExact;
constexpr Tolerance kFunction = Tolerance::kTranscendental;

}  // namespace

const OpRow kPointwiseUnaryRows[] = {
    {"abs", lower_abs, "", Infer::kLoweringLikeFirst, kExact},
    {"neg", in_own_type<negate>, "", Infer::kComposite, kExact},
    {"sign", in_own_type<sign>, "", Infer::kComposite, kExact},
    {"sgn", in_own_type<sgn>},
    {"signbit", in_own_type<sign_bit>, "", Infer::kComposite, kExact},
    {"angle", lower_angle, "", Infer::kLowering, kFunction},
    {"_conj_physical", in_own_type<conjugate>, "", Infer::kLikeFirst, kExact},
    {"floor", rounding<floor>, "", Infer::kComposite, kExact},
    {"ceil", rounding<ceil>, "", Infer::kComposite, kExact},
    {"trunc", rounding<trunc>, "", Infer::kComposite, kExact},
    {"round", rounding<round_to_even>, "", Infer::kComposite, kExact},
    {"round.decimals", lower_round_decimals},
    {"frac", rounding<frac>},
    {"bitwise_not", in_own_type<bitwise_not>, "", Infer::kComposite, kExact},
    {"logical_not", lower_logical_not, "", Infer::kCompare, kExact},
    {"isnan", in_own_type<is_nan>, "", Infer::kCompare, kExact},
    {"isinf", in_own_type<is_inf>, "", Infer::kCompare, kExact},
    {"isposinf", in_own_type<is_signed_infinity<false>>, "", Infer::kComposite, kExact},
    {"isneginf", in_own_type<is_signed_infinity<true>>, "", Infer::kComposite, kExact},
    {"nan_to_num", lower_nan_to_num, "", Infer::kLikeFirst, kExact},

    {"sqrt", in_float<sqrt>},
    {"rsqrt", in_float<Unary::kRsqrt>},
    {"reciprocal", in_float<reciprocal>},
    {"exp", in_float<Unary::kExp>, "", Infer::kComposite, kFunction},
    {"exp2", in_float<exp2>, "", Infer::kComposite, kFunction},
    {"expm1", in_float<Unary::kExpm1>, "", Infer::kComposite, kFunction},
    {"log", in_float<Unary::kLog>, "", Infer::kComposite, kFunction},
    {"log2", in_float<log2>, "", Infer::kComposite, kFunction},
    {"log10", in_float<log10>, "", Infer::kComposite, kFunction},
    {"log1p", in_float<Unary::kLog1p>, "", Infer::kComposite, kFunction},
    {"sin", in_float<Unary::kSin>, "", Infer::kComposite, kFunction},
    {"cos", in_float<Unary::kCos>, "", Infer::kComposite, kFunction},
    {"tan", in_float<Unary::kTan>, "", Infer::kComposite, kFunction},
    {"asin", in_float<Unary::kAsin>, "", Infer::kComposite, kFunction},
    {"acos", in_float<Unary::kAcos>, "", Infer::kComposite, kFunction},
    {"atan", in_float<Unary::kAtan>, "", Infer::kComposite, kFunction},
    {"sinh", in_float<Unary::kSinh>, "", Infer::kComposite, kFunction},
    {"cosh", in_float<Unary::kCosh>, "", Infer::kComposite, kFunction},
    {"tanh", in_float<Unary::kTanh>, "", Infer::kComposite, kFunction},
    {"asinh", in_float<Unary::kAsinh>, "", Infer::kComposite, kFunction},
    {"acosh", in_float<Unary::kAcosh>, "", Infer::kComposite, kFunction},
    {"atanh", in_float<Unary::kAtanh>, "", Infer::kComposite, kFunction},
    {"sigmoid", in_float<Unary::kLogistic>, "", Infer::kComposite, kFunction},
    {"logit", lower_logit, "", Infer::kLowering, kFunction},
    {"sinc", in_float<sinc>, "", Infer::kComposite, kFunction},
};
const size_t kPointwiseUnaryRowCount = std::size(kPointwiseUnaryRows);

}  // namespace torch_tpu::lowering
