// Activation functions. Several steps are computed in f32 for short floats and rounded once.
#include <iterator>
#include <numbers>

#include "lowering/families.h"
#include "lowering/pointwise_math.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::opmath;

Value operand(Call& c) { return c.tensor("self", opmath(c.tensor("self").dtype())); }

Values lower_relu(Call& c) {
  Value x = c.tensor("self");
  c.check(x.dtype() != DType::kPred, "Boolean inputs not supported for relu");
  return {c.b.max(x, c.b.constant(0.0, x.dtype()))};
}

Values lower_hardtanh(Call& c) {
  Value x = c.tensor("self");
  c.check(x.dtype() != DType::kPred, "Bool inputs not supported for hardtanh");
  return {clamp_between(c.b, x, c.scalar("min_val", x.dtype()), c.scalar("max_val", x.dtype()))};
}

// min(max(x + 3, 0), 6)
Value relu6_shifted(Builder& b, Value x) {
  return clamp_between(b, b.add(x, b.like(x, 3.0)), b.like(x, 0.0), b.like(x, 6.0));
}

Values lower_hardsigmoid(Call& c) {
  Value x = operand(c);
  return {c.b.div(relu6_shifted(c.b, x), c.b.like(x, 6.0))};
}

Values lower_hardswish(Call& c) {
  Value x = operand(c);
  return {c.b.div(c.b.mul(x, relu6_shifted(c.b, x)), c.b.like(x, 6.0))};
}

Values lower_silu(Call& c) {
  Value x = operand(c);
  return {c.b.mul(x, sigmoid(c.b, x))};
}

Values lower_mish(Call& c) {
  Value x = operand(c);
  return {c.b.mul(x, c.b.tanh(log1p_exp(c.b, x)))};
}

Values lower_gelu(Call& c) {
  Builder& b = c.b;
  check_gelu(c);
  Value x = operand(c);
  Value half = b.mul(b.like(x, 0.5), x);
  Value one = b.like(x, 1.0);
  if (c.str("approximate") == "tanh") {
    Value cube = b.mul(b.mul(x, x), x);
    Value scale = b.like(x, std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
    Value inner = b.mul(scale, b.add(x, b.mul(b.like(x, 0.044715), cube)));
    return {b.mul(half, b.add(one, b.tanh(inner)))};
  }
  Value inner = b.mul(x, b.like(x, std::numbers::sqrt2 / 2));
  return {b.mul(half, b.add(one, b.unary(Unary::kErf, inner)))};
}

Values lower_softplus(Call& c) {
  Builder& b = c.b;
  Value x = operand(c);
  Value beta = c.scalar("beta", x.dtype());
  Value scaled = b.mul(x, beta);
  Value linear = b.gt(scaled, c.scalar("threshold", x.dtype()));
  return {b.select(linear, x, b.div(log1p_exp(b, scaled), beta))};
}

Values lower_elu(Call& c) {
  Builder& b = c.b;
  Value x = operand(c);
  DType t = x.dtype();
  Value scale = c.scalar("scale", t);
  Value curve = b.unary(Unary::kExpm1, b.mul(x, c.scalar("input_scale", t)));
  Value negative = b.mul(curve, b.mul(c.scalar("alpha", t), scale));
  return {b.select(b.le(x, b.like(x, 0.0)), negative, b.mul(x, scale))};
}

Values lower_celu(Call& c) {
  Builder& b = c.b;
  Value x = operand(c);
  Value alpha = c.scalar("alpha", x.dtype());
  Value curve = b.mul(alpha, b.unary(Unary::kExpm1, b.div(x, alpha)));
  return {b.select(b.le(x, b.like(x, 0.0)), curve, x)};
}

Values lower_leaky_relu(Call& c) {
  Value x = operand(c);
  Value slope = c.scalar("negative_slope", x.dtype());
  return {c.b.select(c.b.gt(x, c.b.like(x, 0.0)), x, c.b.mul(x, slope))};
}

Values lower_prelu(Call& c) {
  DType own = c.tensor("self").dtype();
  Value x = operand(c);
  Value weight = c.tensor("weight", opmath(own));
  return {c.b.select(c.b.gt(x, c.b.like(x, 0.0)), x, c.b.mul(weight, x))};
}

// The second result is a buffer that only the CPU's backward needs; it is empty, as on other devices.
Values lower_log_sigmoid(Call& c) {
  Builder& b = c.b;
  DType own = c.tensor("self").dtype();
  Value x = operand(c);
  Value rest = b.unary(Unary::kLog1p, b.exp(b.neg(b.abs(x))));
  Value result = b.sub(b.min(x, b.like(x, 0.0)), rest);
  return {b.convert(result, own), b.zeros({own, {0}})};
}

Values lower_threshold(Call& c) {
  Value x = c.tensor("self");
  Value below = c.b.le(x, c.scalar("threshold", x.dtype()));
  return {c.b.select(below, c.scalar("value", x.dtype()), x)};
}

Values lower_hardshrink(Call& c) {
  Builder& b = c.b;
  Value x = c.tensor("self");
  Value lambd = c.scalar("lambd", x.dtype());
  Value inside = b.logical_and(b.ge(x, b.neg(lambd)), b.le(x, lambd));
  return {b.select(inside, b.like(x, 0.0), x)};
}

Values lower_softshrink(Call& c) {
  Builder& b = c.b;
  Value x = operand(c);
  Value lambd = c.scalar("lambd", x.dtype());
  Value low = b.select(b.lt(x, b.neg(lambd)), b.add(x, lambd), b.mul(x, b.like(x, 0.0)));
  return {b.select(b.gt(x, lambd), b.sub(x, lambd), low)};
}

Values lower_glu(Call& c) {
  Builder& b = c.b;
  Value x = operand(c);
  int64_t dim = c.wrap_dim(c.integer("dim"), x.rank());
  int64_t half = x.dim(dim).fixed() / 2;
  Value first = b.slice_dim(x, dim, 0, half);
  Value second = b.slice_dim(x, dim, half, 2 * half);
  return {b.mul(first, sigmoid(b, second))};
}

constexpr Tolerance kExact = Tolerance::kExact;
constexpr Tolerance kFunction = Tolerance::kTranscendental;

}  // namespace

const OpRow kActivationRows[] = {
    {"relu", lower_relu, "", Infer::kLikeFirst, kExact},
    {"hardtanh", lower_hardtanh, "", Infer::kLikeFirst, kExact},
    {"hardsigmoid", lower_hardsigmoid},
    {"hardswish", lower_hardswish, "", Infer::kLikeFirst},
    {"silu", lower_silu, "", Infer::kComposite, kFunction},
    {"mish", lower_mish, "", Infer::kComposite, kFunction},
    {"gelu", lower_gelu, "", Infer::kComposite, kFunction},
    {"softplus", lower_softplus, "", Infer::kComposite, kFunction},
    {"elu", lower_elu, "", Infer::kComposite, kFunction},
    {"celu", lower_celu, "", Infer::kComposite, kFunction},
    {"leaky_relu", lower_leaky_relu},
    {"_prelu_kernel", lower_prelu, "", Infer::kPointwise},
    {"log_sigmoid_forward", lower_log_sigmoid, "", Infer::kLowering, kFunction},
    {"threshold", lower_threshold, "", Infer::kComposite, kExact},
    {"hardshrink", lower_hardshrink, "", Infer::kComposite, kExact},
    {"softshrink", lower_softshrink},
    {"glu", lower_glu, "", Infer::kComposite, kFunction},
};
const size_t kActivationRowCount = std::size(kActivationRows);

}  // namespace torch_tpu::lowering
