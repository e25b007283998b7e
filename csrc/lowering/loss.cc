// Losses and their gradients. Reduction codes are PyTorch's: 0 none, 1 mean, 2 sum.
#include "lowering/axes.h"
#include "lowering/ctc_loss.h"
#include "lowering/families.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::opmath;
using stablehlo::Unary;

constexpr int64_t kMean = 1;
constexpr int64_t kNone = 0;

Value reduced(Builder& b, Value loss, int64_t reduction) {
  if (reduction == kNone) return loss;
  const std::vector<int64_t> axes = all_axes(loss.rank());
  return reduction == kMean ? mean_over(b, loss, axes) : sum_over(b, loss, axes);
}

// What each element's gradient is divided by.
Value scaled_gradient(Builder& b, Value grad, const Value& like, int64_t reduction) {
  return reduction == kMean ? b.div(grad, count(b, like, all_axes(like.rank()), grad.dtype()))
                            : grad;
}

// -- Pointwise losses -----------------------------------------------------------------------------------------------

struct Pair {
  Value x, t;
};

Pair operands(Call& c, DType type) {
  check_broadcast(c, c.tensor("self").dims(), c.tensor("target").dims());
  return {c.tensor("self", type), c.tensor("target", type)};
}

Values lower_mse_loss(Call& c) {
  Builder& b = c.b;
  const auto [x, t] = operands(c, opmath(c.promoted()));
  const Value d = b.sub(x, t);
  return {b.convert(reduced(b, b.mul(d, d), c.integer("reduction")), c.out().dtype)};
}

Values lower_mse_loss_backward(Call& c) {
  Builder& b = c.b;
  const DType out = c.promoted(), type = opmath(out);
  const auto [x, t] = operands(c, type);
  const Value grad = scaled_gradient(b, c.tensor("grad_output", type), x, c.integer("reduction"));
  return {b.convert(b.mul(b.mul(b.sub(x, t), b.constant(2, type)), grad), out)};
}

Values lower_smooth_l1_loss(Call& c) {
  Builder& b = c.b;
  const DType type = opmath(c.promoted());
  const auto [x, t] = operands(c, type);
  const Value beta = c.scalar("beta", type), half = b.constant(0.5, type);
  const Value z = b.abs(b.sub(x, t));
  const Value quadratic = b.div(b.mul(half, b.mul(z, z)), beta);
  const Value loss = b.select(b.lt(z, beta), quadratic, b.sub(z, b.mul(half, beta)));
  return {b.convert(reduced(b, loss, c.integer("reduction")), c.out().dtype)};
}

// grad * sign(d) outside of +-knee, grad * d / knee inside; `height` is the slope outside.
Value clipped_slope(Builder& b, Value difference, Value knee, Value height, Value grad) {
  const Value outside = b.mul(b.mul(b.unary(Unary::kSign, difference), height), grad);
  const Value inside = b.mul(b.div(b.mul(difference, height), knee), grad);
  return b.select(b.lt(b.abs(difference), knee), inside, outside);
}

Values lower_smooth_l1_loss_backward(Call& c) {
  Builder& b = c.b;
  const DType out = c.promoted(), type = opmath(out);
  const auto [x, t] = operands(c, type);
  const Value grad = scaled_gradient(b, c.tensor("grad_output", type), x, c.integer("reduction"));
  return {b.convert(
      clipped_slope(b, b.sub(x, t), c.scalar("beta", type), b.constant(1, type), grad), out)};
}

Values lower_huber_loss(Call& c) {
  Builder& b = c.b;
  const DType out = c.promoted(), type = opmath(out);
  const auto [x, t] = operands(c, type);
  const Value delta = c.scalar("delta", type), half = b.constant(0.5, type);
  const Value z = b.abs(b.sub(x, t));
  const Value linear = b.mul(delta, b.sub(z, b.mul(half, delta)));
  const Value loss = b.select(b.le(z, delta), b.mul(half, b.mul(z, z)), linear);
  return {b.convert(reduced(b, loss, c.integer("reduction")), out)};
}

Values lower_huber_loss_backward(Call& c) {
  Builder& b = c.b;
  const DType out = c.promoted(), type = opmath(out);
  const auto [x, t] = operands(c, type);
  const Value grad = scaled_gradient(b, c.tensor("grad_output", type), x, c.integer("reduction"));
  const Value delta = c.scalar("delta", type);
  return {b.convert(clipped_slope(b, b.sub(x, t), delta, delta, grad), out)};
}

Values lower_binary_cross_entropy(Call& c) {
  Builder& b = c.b;
  const DType out = c.tensor("self").dtype(), type = opmath(out);
  const auto [x, t] = operands(c, type);
  const Value floor = b.constant(-100, type), one = b.constant(1, type);
  const Value log_x = b.max(b.log(x), floor);
  const Value log_rest = b.max(b.unary(Unary::kLog1p, b.neg(x)), floor);
  Value loss = b.sub(b.mul(b.sub(t, one), log_rest), b.mul(t, log_x));
  if (c.has("weight")) loss = b.mul(loss, c.tensor("weight", type));
  return {b.convert(reduced(b, loss, c.integer("reduction")), out)};
}

Values lower_binary_cross_entropy_backward(Call& c) {
  Builder& b = c.b;
  const DType out = c.tensor("self").dtype(), type = opmath(out);
  const auto [x, t] = operands(c, type);
  const Value one = b.constant(1, type);
  const Value slope = b.max(b.mul(b.sub(one, x), x), b.constant(1e-12, type));
  Value grad = b.div(b.mul(c.tensor("grad_output", type), b.sub(x, t)), slope);
  if (c.has("weight")) grad = b.mul(grad, c.tensor("weight", type));
  return {b.convert(scaled_gradient(b, grad, x, c.integer("reduction")), out)};
}

Values lower_bce_with_logits(Call& c) {
  Builder& b = c.b;
  const DType out = c.promoted(), type = opmath(out);
  const auto [x, t] = operands(c, type);
  const Value one = b.constant(1, type), zero = b.constant(0, type);
  // -log(sigmoid(x)) - max(-x, 0), which never overflows.
  const Value tail = b.unary(Unary::kLog1p, b.exp(b.neg(b.abs(x))));
  Value softplus = b.add(tail, b.max(b.neg(x), zero));
  if (c.has("pos_weight")) {
    const Value weight = c.tensor("pos_weight", type);
    softplus = b.mul(softplus, b.add(b.mul(b.sub(weight, one), t), one));
  }
  Value loss = b.add(b.mul(b.sub(one, t), x), softplus);
  if (c.has("weight")) loss = b.mul(loss, c.tensor("weight", type));
  return {b.convert(reduced(b, loss, c.integer("reduction")), out)};
}

// -- Negative log likelihood ------------------------------------------------------------------------------------------

// Scores [N, C, ...] (or [C]) against targets without the class axis.
struct Picked {
  int64_t axis;
  Value is_target;  // one-hot, of the scores' shape
  Value valid;      // target is not ignored, class axis of one
  Value weight;     // of each target's class, zero where ignored, class axis of one
};

Picked pick_targets(Call& c, const Value& scores, DType type) {
  Builder& b = c.b;
  Picked p;
  p.axis = scores.rank() == 1 ? 0 : 1;
  Dims column = scores.dims();
  column.at(p.axis) = 1;
  const Value target = b.reshape(c.tensor("target", DType::kI64), column);
  p.valid = b.ne(target, b.constant_int(c.integer("ignore_index"), DType::kI64));
  const Value here = b.eq(b.iota(DType::kI64, scores.dims(), p.axis), target);
  p.is_target = b.logical_and(here, p.valid);
  const Value zero = b.constant(0, type);
  if (c.has("weight")) {
    const Value weights = along_axis(b, c.tensor("weight", type), scores.rank(), p.axis);
    p.weight = sum_over(b, b.select(p.is_target, weights, zero), {p.axis}, true);
  } else {
    p.weight = b.convert(p.valid, type);
  }
  return p;
}

Values nll_forward(Call& c, const Value& self) {
  Builder& b = c.b;
  const DType out = self.dtype(), type = opmath(out);
  const Value scores = b.convert(self, type);
  const Picked p = pick_targets(c, scores, type);
  if (c.checks_values()) {
    const Value target = b.reshape(c.tensor("target", DType::kI64), p.valid.dims());
    const Value known = b.reduce(stablehlo::Monoid::kOr, p.is_target, {p.axis}, true);
    c.check_values(b.logical_or(known, b.logical_not(p.valid)), target,
                   "Target {} is out of bounds.", ArgumentError::Kind::kIndex);
  }
  const Value score =
      sum_over(b, b.select(p.is_target, scores, b.constant(0, type)), {p.axis}, true);
  Dims dims = scores.dims();
  dims.erase(dims.begin() + p.axis);
  const Value weight = b.reshape(p.weight, dims);
  // Ignored targets contribute nothing, even where the score is infinite.
  const Value loss = b.neg(b.mul(b.reshape(score, dims), weight));
  const int64_t reduction = c.integer("reduction");
  if (reduction == kNone) return {b.convert(loss, out), b.constant(0, out)};
  const std::vector<int64_t> axes = all_axes(loss.rank());
  const Value total = sum_over(b, weight, axes);
  Value sum = sum_over(b, loss, axes);
  if (reduction == kMean) sum = b.div(sum, total);
  return {b.convert(sum, out), b.convert(total, out)};
}

Values nll_backward(Call& c, const Value& self) {
  Builder& b = c.b;
  const DType out = self.dtype(), type = opmath(out);
  const Picked p = pick_targets(c, self, type);
  const int64_t reduction = c.integer("reduction");
  Value grad = c.tensor("grad_output", type);
  if (reduction == kNone) {
    Dims column = self.dims();
    column.at(p.axis) = 1;
    grad = b.reshape(grad, column);
  } else if (reduction == kMean) {
    grad = b.div(grad, c.tensor("total_weight", type));
  }
  const Value slope = b.neg(b.mul(p.weight, grad));
  return {b.convert(b.select(p.is_target, slope, b.constant(0, type)), out)};
}

Values lower_nll_loss_forward(Call& c) { return nll_forward(c, c.tensor("self")); }
Values lower_nll_loss_backward(Call& c) { return nll_backward(c, c.tensor("self")); }

void check_nll_loss2d(Call& c, const Value& x) {
  const Value target = c.tensor("target");
  c.check(target.rank() == 3,
          "only batches of spatial targets supported (3D tensors) but got targets of dimension: " +
              std::to_string(target.rank()));
  c.check(x.rank() == 4,
          "only batches of spatial inputs supported (4D tensors), but got input of dimension: " +
              std::to_string(x.rank()));
  if (c.has("weight")) {
    c.check(c.tensor("weight").numel() == x.dim(1),
            "weight tensor should be defined either for all or no classes");
  }
  c.check(x.dim(0) == target.dim(0) && x.dim(2) == target.dim(1) && x.dim(3) == target.dim(2),
          "size mismatch (got input: " + sizes_text(x.dims()) +
              " , target: " + sizes_text(target.dims()));
}

Values lower_nll_loss2d_forward(Call& c) {
  const Value x = c.tensor("self");
  check_nll_loss2d(c, x);
  return nll_forward(c, x);
}

Values lower_nll_loss2d_backward(Call& c) {
  const Value x = c.tensor("self");
  check_nll_loss2d(c, x);
  return nll_backward(c, x);
}

}  // namespace

const OpRow kLossRows[] = {
    {"mse_loss", lower_mse_loss, "", Infer::kComposite, Tolerance::kReduction},
    // Of this class because PyTorch makes its result contiguous, whatever the operands are.
    {"mse_loss_backward", lower_mse_loss_backward, "", Infer::kLowering, Tolerance::kReduction},
    {"smooth_l1_loss", lower_smooth_l1_loss, "", Infer::kComposite, Tolerance::kReduction},
    {"smooth_l1_loss_backward", lower_smooth_l1_loss_backward, "", Infer::kLowering,
     Tolerance::kElementwise},
    {"huber_loss", lower_huber_loss, "", Infer::kLowering, Tolerance::kReduction},
    {"huber_loss_backward", lower_huber_loss_backward, "", Infer::kLowering,
     Tolerance::kElementwise},
    {"binary_cross_entropy", lower_binary_cross_entropy, "", Infer::kLowering,
     Tolerance::kReduction},
    {"binary_cross_entropy_backward", lower_binary_cross_entropy_backward, "", Infer::kLowering,
     Tolerance::kElementwise},
    {"binary_cross_entropy_with_logits", lower_bce_with_logits, "", Infer::kLowering,
     Tolerance::kReduction},
    {"nll_loss_forward", lower_nll_loss_forward, "", Infer::kComposite, Tolerance::kReduction},
    {"nll_loss_backward", lower_nll_loss_backward, "", Infer::kComposite, Tolerance::kElementwise},
    {"nll_loss2d_forward", lower_nll_loss2d_forward, "", Infer::kLowering, Tolerance::kReduction},
    {"nll_loss2d_backward", lower_nll_loss2d_backward, "", Infer::kLowering,
     Tolerance::kElementwise},
    {"_ctc_loss", lower_ctc_loss, "", Infer::kLowering, Tolerance::kReduction},
    {"_ctc_loss.Tensor", lower_ctc_loss, "", Infer::kLowering, Tolerance::kReduction},
    {"_ctc_loss_backward", lower_ctc_loss_backward, "", Infer::kLowering, Tolerance::kReduction},
    {"_ctc_loss_backward.Tensor", lower_ctc_loss_backward, "", Infer::kLowering,
     Tolerance::kReduction},
};
const size_t kLossRowCount = std::size(kLossRows);

}  // namespace torch_tpu::lowering
