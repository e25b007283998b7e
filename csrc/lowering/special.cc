// Special functions of one operand.
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>
#include <vector>

#include "lowering/families.h"
#include "lowering/pointwise_math.h"

namespace torch_tpu::lowering {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kChebyshevNodes = 40;

using UnaryFn = Value (*)(Builder& b, Value x);

template <UnaryFn function>
Values in_float(Call& c) {
  return {function(c.b, c.tensor("self", compute_type(c.out().dtype)))};
}

template <Unary op>
Values in_float(Call& c) {
  return {c.b.unary(op, c.tensor("self", compute_type(c.out().dtype)))};
}

// -- Gamma functions -----------------------------------------------------------------------------------------------

Value digamma(Builder& b, Value x) {
  Value pole = copysign(b, b.like(x, kInfinity), b.neg(x));
  return b.select(b.eq(x, b.like(x, 0.0)), pole, b.unary(Unary::kDigamma, x));
}

Values lower_polygamma(Call& c) {
  Value x = c.tensor("self", compute_type(c.out().dtype));
  int64_t n = c.integer("n");
  if (n == 0) return {digamma(c.b, x)};
  Value order = c.b.broadcast_to(c.b.like(x, static_cast<double>(n)), x.dims());
  return {c.b.binary(Binary::kPolygamma, order, x)};
}

// -- Error functions -----------------------------------------------------------------------------------------------

// exp(x * x) * erfc(x): directly where erfc has not underflowed, else its asymptotic series in 1 / (2 x^2).
Value erfcx(Builder& b, Value x) {
  bool wide = x.dtype() == DType::kF64;
  Value far = b.gt(x, b.like(x, wide ? 20.0 : 8.0));
  Value square = b.mul(x, x);
  Value direct = b.mul(b.exp(square), b.unary(Unary::kErfc, x));
  Value term = b.div(b.like(x, -0.5), square);
  Value one = b.like(x, 1.0);
  Value series = one;
  for (int k = wide ? 8 : 5; k >= 1; --k) {
    series = b.add(one, b.mul(b.mul(term, b.like(x, 2.0 * k - 1.0)), series));
  }
  Value asymptotic = b.div(b.mul(series, b.like(x, std::numbers::inv_sqrtpi)), x);
  return b.select(far, asymptotic, direct);
}

Value log_ndtr(Builder& b, Value x) {
  Value scaled = b.mul(x, b.like(x, std::numbers::sqrt2 / 2));
  Value half = b.like(x, 0.5);
  Value tail = b.sub(b.log(b.mul(half, erfcx(b, b.neg(scaled)))), b.mul(half, b.mul(x, x)));
  Value body = b.unary(Unary::kLog1p, b.neg(b.mul(half, b.unary(Unary::kErfc, scaled))));
  return b.select(b.lt(x, b.like(x, -1.0)), tail, body);
}

// The normal distribution's quantile: a rational start (Abramowitz and Stegun, 26.2.23) and steps of Halley's method.
Value ndtri(Builder& b, Value p) {
  Value half = b.like(p, 0.5);
  Value upper = b.gt(p, half);
  Value one = b.like(p, 1.0);
  Value q = b.select(upper, b.sub(one, p), p);
  auto polynomial = [&](Value t, const std::vector<double>& coefficients) {
    Value result = b.like(t, coefficients.back());
    for (size_t i = coefficients.size() - 1; i-- > 0;)
      result = b.add(b.mul(result, t), b.like(t, coefficients[i]));
    return result;
  };
  Value t = b.sqrt(b.mul(b.like(p, -2.0), b.log(q)));
  Value start = b.div(polynomial(t, {2.515517, 0.802853, 0.010328}),
                      polynomial(t, {1.0, 1.432788, 0.189269, 0.001308}));
  Value y = b.sub(start, t);
  int steps = p.dtype() == DType::kF64 ? 3 : 2;
  for (int i = 0; i < steps; ++i) {
    Value tail = b.mul(half, b.unary(Unary::kErfc, b.mul(y, b.like(p, -std::numbers::sqrt2 / 2))));
    Value density = b.exp(b.mul(half, b.mul(y, y)));
    Value u = b.mul(b.mul(b.sub(tail, q), density), b.like(p, std::sqrt(2 * std::numbers::pi)));
    Value change = b.div(u, b.add(one, b.mul(half, b.mul(y, u))));
    y = b.select(is_finite(b, change), b.sub(y, change), y);
  }
  y = b.select(b.eq(q, b.like(p, 0.0)), b.like(p, -kInfinity), y);
  y = b.select(upper, b.neg(y), y);
  Value outside = b.logical_or(b.lt(p, b.like(p, 0.0)), b.gt(p, one));
  return b.select(outside, b.like(p, std::numeric_limits<double>::quiet_NaN()), y);
}

Value entr(Builder& b, Value x) {
  Value zero = b.like(x, 0.0);
  Value result = b.select(b.eq(x, zero), zero, b.neg(b.mul(x, b.log(x))));
  return b.select(b.lt(x, zero), b.like(x, -kInfinity), result);
}

// -- Modified Bessel functions of the first kind -------------------------------------------------------------------

// exp(-x) I_order(x) for x >= 0.
double scaled_bessel(int order, double x) {
  if (x < 300.0) return std::exp(-x) * std::cyl_bessel_i(static_cast<double>(order), x);
  double mu = 4.0 * order * order;
  double term = 1.0, sum = 1.0;
  for (int k = 1; k <= 10; ++k) {
    term *= -(mu - (2.0 * k - 1.0) * (2.0 * k - 1.0)) / (8.0 * k * x);
    sum += term;
  }
  return sum / std::sqrt(2 * std::numbers::pi * x);
}

// Chebyshev coefficients of `function` over [-1, 1], from its values at the nodes.
template <typename Function>
std::vector<double> chebyshev(int count, const Function& function) {
  std::vector<double> coefficients(count, 0.0);
  for (int j = 0; j < kChebyshevNodes; ++j) {
    double angle = std::numbers::pi * (j + 0.5) / kChebyshevNodes;
    double value = function(std::cos(angle));
    for (int k = 0; k < count; ++k)
      coefficients[k] += 2.0 / kChebyshevNodes * value * std::cos(k * angle);
  }
  coefficients[0] /= 2;
  return coefficients;
}

// Clenshaw's recurrence.
Value chebyshev_sum(Builder& b, const std::vector<double>& coefficients, Value x) {
  Value twice = b.add(x, x);
  Value next = b.like(x, 0.0), after = b.like(x, 0.0);
  for (size_t k = coefficients.size() - 1; k >= 1; --k) {
    Value current = b.add(b.sub(b.mul(twice, next), after), b.like(x, coefficients[k]));
    after = next;
    next = current;
  }
  return b.add(b.sub(b.mul(x, next), after), b.like(x, coefficients[0]));
}

// Over [0, 8] in x / 4 - 1, above in 16 / x - 1 and times 1 / sqrt(x).
template <int order>
Value bessel_ie(Builder& b, Value x) {
  bool wide = x.dtype() == DType::kF64;
  static const std::vector<double> near32 =
      chebyshev(20, [](double t) { return scaled_bessel(order, 4 * (t + 1)); });
  static const std::vector<double> near64 =
      chebyshev(32, [](double t) { return scaled_bessel(order, 4 * (t + 1)); });
  auto scaled = [](double t) {
    double at = 16.0 / (t + 1);
    return scaled_bessel(order, at) * std::sqrt(at);
  };
  static const std::vector<double> far32 = chebyshev(10, scaled);
  static const std::vector<double> far64 = chebyshev(28, scaled);
  Value size = b.abs(x);
  Value eight = b.like(x, 8.0);
  Value one = b.like(x, 1.0);
  Value inner = b.sub(b.mul(b.min(size, eight), b.like(x, 0.25)), one);
  Value outside = b.max(size, eight);
  Value outer = b.sub(b.div(b.like(x, 16.0), outside), one);
  Value near = chebyshev_sum(b, wide ? near64 : near32, inner);
  Value far = b.div(chebyshev_sum(b, wide ? far64 : far32, outer), b.sqrt(outside));
  Value result = b.select(b.le(size, eight), near, far);
  return order % 2 == 0 ? result : b.mul(sign(b, x), result);
}

template <int order>
Value bessel_i(Builder& b, Value x) {
  return b.mul(b.exp(b.abs(x)), bessel_ie<order>(b, x));
}

constexpr Tolerance kFunction = Tolerance::kTranscendental;

}  // namespace

const OpRow kSpecialRows[] = {
    {"lgamma", in_float<Unary::kLgamma>, "", Infer::kComposite, kFunction},
    {"digamma", in_float<digamma>, "", Infer::kComposite, kFunction},
    {"polygamma", lower_polygamma, "", Infer::kComposite, kFunction},
    {"erf", in_float<Unary::kErf>, "", Infer::kComposite, kFunction},
    {"erfc", in_float<Unary::kErfc>, "", Infer::kComposite, kFunction},
    {"erfinv", in_float<Unary::kErfInv>, "", Infer::kComposite, kFunction},
    {"special_erfcx", in_float<erfcx>, "", Infer::kComposite, kFunction},
    {"special_log_ndtr", in_float<log_ndtr>, "", Infer::kComposite, kFunction},
    {"special_ndtri", in_float<ndtri>, "", Infer::kComposite, kFunction},
    {"special_entr", in_float<entr>, "", Infer::kComposite, kFunction},
    {"i0", in_float<bessel_i<0>>, "", Infer::kComposite, kFunction},
    {"special_i0e", in_float<bessel_ie<0>>, "", Infer::kComposite, kFunction},
    {"special_i1", in_float<bessel_i<1>>, "", Infer::kComposite, kFunction},
    {"special_i1e", in_float<bessel_ie<1>>, "", Infer::kComposite, kFunction},
    {"special_modified_bessel_i0", in_float<bessel_i<0>>, "", Infer::kComposite, kFunction},
    {"special_modified_bessel_i1", in_float<bessel_i<1>>, "", Infer::kComposite, kFunction},
};
const size_t kSpecialRowCount = std::size(kSpecialRows);

}  // namespace torch_tpu::lowering
