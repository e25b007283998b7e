// Gradients of activation functions. Several steps are computed in f32 for short floats and rounded once.
#include <iterator>
#include <limits>
#include <numbers>

#include "lowering/families.h"
#include "lowering/pointwise_math.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::opmath;

struct Operands {
  Value grad, x;
};

Operands operands(Call& c, const char* grad = "grad_output", const char* x = "self") {
  DType t = opmath(c.promoted());
  return {c.tensor(grad, t), c.tensor(x, t)};
}

Values lower_sigmoid_backward(Call& c) {
  Builder& b = c.b;
  auto [grad, y] = operands(c, "grad_output", "output");
  Value slope = b.mul(b.sub(b.like(y, 1.0), y), y);
  return {b.mul(grad, conjugate(b, slope))};
}

Values lower_tanh_backward(Call& c) {
  Builder& b = c.b;
  auto [grad, y] = operands(c, "grad_output", "output");
  Value slope = b.sub(b.like(y, 1.0), b.mul(y, y));
  return {b.mul(grad, conjugate(b, slope))};
}

Values lower_threshold_backward(Call& c) {
  DType t = c.out().dtype;
  Value grad = c.tensor("grad_output", t);
  DType own = c.tensor("self").dtype();
  Value below = c.b.le(c.tensor("self"), c.scalar("threshold", own));
  return {c.b.select(below, c.b.constant(0.0, t), grad)};
}

Values lower_gelu_backward(Call& c) {
  Builder& b = c.b;
  check_gelu(c);
  auto [grad, x] = operands(c);
  Value one = b.like(x, 1.0);
  Value half = b.like(x, 0.5);
  if (c.str("approximate") == "tanh") {
    double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    double kappa = 0.044715;
    Value square = b.mul(x, x);
    Value inner = b.mul(b.like(x, beta), b.add(x, b.mul(b.like(x, kappa), b.mul(square, x))));
    Value t = b.tanh(inner);
    Value inner_slope = b.mul(b.like(x, beta), b.add(one, b.mul(b.like(x, 3 * kappa), square)));
    Value tanh_slope = b.mul(b.sub(one, b.mul(t, t)), inner_slope);
    Value slope = b.mul(half, b.add(b.add(one, t), b.mul(x, tanh_slope)));
    return {b.mul(grad, slope)};
  }
  Value distribution =
      b.mul(half, b.add(one, b.unary(Unary::kErf, b.mul(x, b.like(x, std::numbers::sqrt2 / 2)))));
  Value density = b.mul(b.exp(b.mul(b.like(x, -0.5), b.mul(x, x))),
                        b.like(x, std::numbers::inv_sqrtpi / std::numbers::sqrt2));
  return {b.mul(grad, b.add(distribution, b.mul(x, density)))};
}

Values lower_silu_backward(Call& c) {
  Builder& b = c.b;
  auto [grad, x] = operands(c);
  Value s = sigmoid(b, x);
  Value one = b.like(x, 1.0);
  return {b.mul(grad, b.mul(s, b.add(one, b.mul(x, b.sub(one, s)))))};
}

Values lower_mish_backward(Call& c) {
  Builder& b = c.b;
  auto [grad, x] = operands(c);
  Value t = b.tanh(log1p_exp(b, x));
  Value slope = b.mul(b.mul(x, sigmoid(b, x)), b.sub(b.like(x, 1.0), b.mul(t, t)));
  return {b.mul(grad, b.add(t, slope))};
}

Values lower_softplus_backward(Call& c) {
  Builder& b = c.b;
  auto [grad, x] = operands(c);
  Value scaled = b.mul(x, c.scalar("beta", x.dtype()));
  Value linear = b.gt(scaled, c.scalar("threshold", x.dtype()));
  return {b.select(linear, grad, b.mul(grad, sigmoid(b, scaled)))};
}

Values lower_elu_backward(Call& c) {
  Builder& b = c.b;
  auto [grad, x] = operands(c, "grad_output", "self_or_result");
  DType t = x.dtype();
  Value scale = c.scalar("scale", t);
  Value input_scale = c.scalar("input_scale", t);
  Value factor = b.mul(c.scalar("alpha", t), scale);
  Value curve =
      c.boolean("is_result") ? b.add(x, factor) : b.mul(factor, b.exp(b.mul(x, input_scale)));
  Value negative = b.mul(b.mul(grad, input_scale), curve);
  return {b.select(b.le(x, b.like(x, 0.0)), negative, b.mul(grad, scale))};
}

Values lower_leaky_relu_backward(Call& c) {
  Builder& b = c.b;
  auto [grad, x] = operands(c);
  Value slope = c.scalar("negative_slope", x.dtype());
  return {b.select(b.gt(x, b.like(x, 0.0)), grad, b.mul(grad, slope))};
}

Values lower_hardtanh_backward(Call& c) {
  Builder& b = c.b;
  auto [grad, x] = operands(c);
  Value outside = b.logical_or(b.le(x, c.scalar("min_val", x.dtype())),
                               b.ge(x, c.scalar("max_val", x.dtype())));
  return {b.select(outside, b.like(x, 0.0), grad)};
}

Values lower_hardsigmoid_backward(Call& c) {
  Builder& b = c.b;
  auto [grad, x] = operands(c);
  Value inside = b.logical_and(b.gt(x, b.like(x, -3.0)), b.lt(x, b.like(x, 3.0)));
  return {b.select(inside, b.div(grad, b.like(x, 6.0)), b.like(x, 0.0))};
}

Values lower_hardswish_backward(Call& c) {
  Builder& b = c.b;
  auto [grad, x] = operands(c);
  Value middle = b.mul(grad, b.add(b.div(x, b.like(x, 3.0)), b.like(x, 0.5)));
  Value upper = b.select(b.ge(x, b.like(x, 3.0)), grad, middle);
  return {b.select(b.le(x, b.like(x, -3.0)), b.like(x, 0.0), upper)};
}

Values shrink_backward(Call& c, const char* grad_name) {
  Builder& b = c.b;
  auto [grad, x] = operands(c, grad_name);
  Value lambd = c.scalar("lambd", x.dtype());
  Value inside = b.logical_and(b.ge(x, b.neg(lambd)), b.le(x, lambd));
  return {b.select(inside, b.like(x, 0.0), grad)};
}

Values lower_hardshrink_backward(Call& c) { return shrink_backward(c, "grad_out"); }
Values lower_softshrink_backward(Call& c) { return shrink_backward(c, "grad_output"); }

// The forward's buffer is not needed: log_sigmoid' (x) = sigmoid(-x).
Values lower_log_sigmoid_backward(Call& c) {
  Builder& b = c.b;
  auto [grad, x] = operands(c);
  return {b.convert(b.mul(grad, sigmoid(b, b.neg(x))), c.tensor("self").dtype())};
}

Values lower_logit_backward(Call& c) {
  Builder& b = c.b;
  auto [grad, x] = operands(c);
  Value one = b.like(x, 1.0);
  Value zero = b.like(x, 0.0);
  Value inner = b.div(grad, b.mul(x, b.sub(one, x)));
  if (c.has("eps")) {
    Value eps = c.scalar("eps", x.dtype());
    Value outside = b.logical_or(b.lt(x, eps), b.gt(x, b.sub(one, eps)));
    return {b.select(outside, zero, inner)};
  }
  Value at_edge = b.logical_or(b.eq(x, zero), b.eq(x, one));
  Value outside = b.logical_or(b.lt(x, zero), b.gt(x, one));
  inner = b.select(at_edge, b.mul(grad, b.like(x, std::numeric_limits<double>::infinity())), inner);
  return {b.select(outside, b.like(x, std::numeric_limits<double>::quiet_NaN()), inner)};
}

Values lower_glu_backward(Call& c) {
  Builder& b = c.b;
  auto [grad, x] = operands(c);
  c.check(x.rank() > 0, "glu does not support 0-dimensional tensors");
  int64_t dim = c.wrap_dim(c.integer("dim"), x.rank());
  int64_t size = x.dim(dim).fixed();
  c.check(size % 2 == 0, "Halving dimension must be even, but dimension " + std::to_string(dim) +
                             " is size " + std::to_string(size));
  Value first = b.slice_dim(x, dim, 0, size / 2);
  Value s = sigmoid(b, b.slice_dim(x, dim, size / 2, size));
  Value grad_first = b.mul(grad, s);
  Value grad_second = b.mul(b.mul(b.sub(b.like(x, 1.0), s), first), grad_first);
  return {b.convert(b.concatenate({grad_first, grad_second}, dim), c.tensor("self").dtype())};
}

Values lower_prelu_backward(Call& c) {
  Builder& b = c.b;
  auto [grad, x] = operands(c);
  Value weight = c.tensor("weight", x.dtype());
  Value zero = b.like(x, 0.0);
  Value positive = b.gt(x, zero);
  DType own = c.tensor("self").dtype();
  Value grad_weight = b.select(positive, zero, b.mul(x, grad));
  return {b.convert(b.select(positive, grad, b.mul(weight, grad)), own),
          b.convert(grad_weight, own)};
}

constexpr Tolerance kExact = Tolerance::kExact;
constexpr Tolerance kFunction = Tolerance::kTranscendental;

}  // namespace

const OpRow kPointwiseBackwardRows[] = {
    {"sigmoid_backward", lower_sigmoid_backward},
    {"tanh_backward", lower_tanh_backward},
    {"threshold_backward", lower_threshold_backward, "", Infer::kComposite, kExact},
    {"gelu_backward", lower_gelu_backward, "", Infer::kComposite, kFunction},
    {"silu_backward", lower_silu_backward, "", Infer::kComposite, kFunction},
    {"mish_backward", lower_mish_backward, "", Infer::kPointwise, kFunction},
    {"softplus_backward", lower_softplus_backward, "", Infer::kComposite, kFunction},
    {"elu_backward", lower_elu_backward, "", Infer::kComposite, kFunction},
    {"leaky_relu_backward", lower_leaky_relu_backward},
    {"hardtanh_backward", lower_hardtanh_backward, "", Infer::kPointwise, kExact},
    {"hardsigmoid_backward", lower_hardsigmoid_backward},
    {"hardswish_backward", lower_hardswish_backward, "", Infer::kPointwise},
    {"hardshrink_backward", lower_hardshrink_backward, "", Infer::kComposite, kExact},
    {"softshrink_backward", lower_softshrink_backward, "", Infer::kComposite, kExact},
    {"log_sigmoid_backward", lower_log_sigmoid_backward, "", Infer::kLowering, kFunction},
    {"logit_backward", lower_logit_backward},
    {"glu_backward", lower_glu_backward, "", Infer::kLowering, kFunction},
    {"_prelu_kernel_backward", lower_prelu_backward, "", Infer::kLowering},
};
const size_t kPointwiseBackwardRowCount = std::size(kPointwiseBackwardRows);

}  // namespace torch_tpu::lowering
