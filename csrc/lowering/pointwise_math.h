// Elementwise formulas that several operator families share: PyTorch's arithmetic where it differs from StableHLO's.
#pragma once

#include "lowering/call.h"

namespace torch_tpu::lowering {

using stablehlo::Binary;
using stablehlo::Compare;
using stablehlo::Monoid;
using stablehlo::Unary;

// The type a formula of several steps is computed in, for a result of type `out`: floating point, at least f32.
DType compute_type(DType out);

// Sums, products, maxima and minima, bool included (or, and). NaN wins in maximum and minimum.
Value plus(Builder& b, Value x, Value y);
Value times(Builder& b, Value x, Value y);
Value maximum(Builder& b, Value x, Value y);
Value minimum(Builder& b, Value x, Value y);

Value trunc(Builder& b, Value x);
Value is_inf(Builder& b, Value x);
Value is_finite(Builder& b, Value x);
Value sign_bit(Builder& b, Value x);  // bool; the sign of zeros and NaN too
Value copysign(Builder& b, Value x, Value y);
Value absolute(Builder& b, Value x);   // unsigned and bool are themselves
Value sign(Builder& b, Value x);       // 0 for NaN, as PyTorch's
Value negate(Builder& b, Value x);     // unsigned too
Value conjugate(Builder& b, Value x);  // real numbers are themselves
Value reciprocal(Builder& b, Value x);
Value frac(Builder& b, Value x);
Value log2(Builder& b, Value x);
Value log10(Builder& b, Value x);

// Division by zero gives no error: integers have an unspecified result.
Value floor_divide(Builder& b, Value x, Value y);
Value trunc_divide(Builder& b, Value x, Value y);
Value remainder(Builder& b, Value x, Value y);  // sign of the divisor

// x ** y in x's type, integers included (negative exponents give 0 but for bases 1 and -1).
Value power(Builder& b, Value x, Value y);
// x ** exponent for a known small exponent: products, square roots and reciprocals where they suffice.
Value power_static(Builder& b, Value x, double exponent);

// min(max(x, low), high); NaN anywhere gives NaN. Absent bounds are empty.
Value clamp_between(Builder& b, Value x, Value low, Value high);

void check_gelu(const Call& c);  // its `approximate` argument
Value sigmoid(Builder& b, Value x);
Value log1p_exp(Builder& b, Value x);  // log(1 + exp(x)) without overflow
Value lerp(Builder& b, Value start, Value end, Value weight);

// A value converted as PyTorch's `to` does on x86: NaN and out-of-range floats become the lowest i32 or i64, narrower
// integers wrap, bool is != 0.
Value convert_like_torch(Builder& b, Value x, DType dtype);

}  // namespace torch_tpu::lowering
