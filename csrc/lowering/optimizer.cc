// Fused optimizer steps. Arithmetic is at least f32; a step whose found_inf is set changes nothing, as on CUDA.
#include <cmath>
#include <iterator>

#include "lowering/families.h"
#include "lowering/pointwise_math.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::opmath;

enum class WeightDecay { kL2, kDecoupled };

// One optimizer call's shared arguments and the lists it returns.
class Step {
 public:
  Step(Call& c, const std::vector<const char*>& lists) : c_(c), b_(c.b) {
    for (const char* name : lists) lists_.push_back(c.tensors(name));
    new_ = lists_;
    maximize_ = c.boolean("maximize");
    if (c.has("found_inf")) skip_ = b_.reshape(b_.convert(c.tensor("found_inf"), DType::kPred), {});
  }

  size_t count() const { return lists_[0].size(); }
  DType type(size_t i) const { return opmath(lists_[0][i].dtype()); }
  Value get(size_t list, size_t i) { return b_.convert(lists_[list].at(i), type(i)); }
  bool has(size_t list) const { return !lists_[list].empty(); }

  void set(size_t list, size_t i, Value value) {
    const Value& old = lists_[list].at(i);
    value = b_.convert(value, old.dtype());
    new_[list][i] = skip_ ? b_.select(skip_, old, value) : value;
  }

  // The gradient to step along; list 1 holds the gradients and keeps the unscaled ones.
  Value gradient(size_t i) {
    Value grad = get(1, i);
    if (c_.has("grad_scale")) {
      grad = b_.div(grad, b_.reshape(c_.tensor("grad_scale", type(i)), {}));
      set(1, i, grad);
    }
    return maximize_ ? b_.neg(grad) : grad;
  }

  Value number(const char* name, size_t i) { return b_.reshape(c_.scalar(name, type(i)), {}); }
  Value learning_rate(size_t i) { return number("lr", i); }

  Values results() const {
    Values all;
    for (const Values& list : new_) all.insert(all.end(), list.begin(), list.end());
    return all;
  }

 private:
  Call& c_;
  Builder& b_;
  std::vector<Values> lists_, new_;
  bool maximize_ = false;
  Value skip_;
};

// 1 - beta ** step, without cancellation where beta is close to 1.
Value bias_correction(Builder& b, double beta, Value step) {
  return b.neg(b.unary(Unary::kExpm1, b.mul(step, b.like(step, std::log(beta)))));
}

template <WeightDecay decay>
Values lower_adam(Call& c) {
  Builder& b = c.b;
  Step step(c, {"self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"});
  Values steps = c.tensors("state_steps");
  double beta1 = c.number("beta1"), beta2 = c.number("beta2");
  bool amsgrad = c.boolean("amsgrad");
  for (size_t i = 0; i < step.count(); ++i) {
    DType t = step.type(i);
    Value parameter = step.get(0, i);
    Value grad = step.gradient(i);
    Value lr = step.learning_rate(i);
    Value weight_decay = step.number("weight_decay", i);
    if constexpr (decay == WeightDecay::kL2) {
      grad = b.add(grad, b.mul(parameter, weight_decay));
    } else {
      parameter = b.sub(parameter, b.mul(b.mul(lr, weight_decay), parameter));
    }
    auto blend = [&](size_t list, double beta, Value value) {
      return b.add(b.mul(b.constant(beta, t), step.get(list, i)),
                   b.mul(b.constant(1 - beta, t), value));
    };
    Value mean = blend(2, beta1, grad);
    Value square = blend(3, beta2, b.mul(grad, grad));
    step.set(2, i, mean);
    step.set(3, i, square);
    if (amsgrad) {
      square = b.max(step.get(4, i), square);
      step.set(4, i, square);
    }
    Value at = b.reshape(b.convert(steps.at(i), t), {});
    Value root = b.sqrt(bias_correction(b, beta2, at));
    Value denominator = b.add(b.div(b.sqrt(square), root), step.number("eps", i));
    Value size = b.div(lr, bias_correction(b, beta1, at));
    step.set(0, i, b.sub(parameter, b.div(b.mul(size, mean), denominator)));
  }
  return step.results();
}

Values lower_sgd(Call& c) {
  Builder& b = c.b;
  Step step(c, {"self", "grads", "momentum_buffer_list"});
  for (size_t i = 0; i < step.count(); ++i) {
    Value parameter = step.get(0, i);
    Value grad = b.add(step.gradient(i), b.mul(step.number("weight_decay", i), parameter));
    if (step.has(2)) {
      Value momentum = step.number("momentum", i);
      Value buffer = grad;
      if (!c.boolean("is_first_step")) {
        Value kept = b.sub(b.like(grad, 1.0), step.number("dampening", i));
        buffer = b.add(b.mul(momentum, step.get(2, i)), b.mul(kept, grad));
      }
      step.set(2, i, buffer);
      grad = c.boolean("nesterov") ? b.add(grad, b.mul(momentum, buffer)) : buffer;
    }
    step.set(0, i, b.sub(parameter, b.mul(step.learning_rate(i), grad)));
  }
  return step.results();
}

// `returns_steps`: the functional form of the overload with a number as rate also lists the step counters.
template <bool returns_steps>
Values lower_adagrad(Call& c) {
  Builder& b = c.b;
  Step step(c, {"self", "grads", "state_sums"});
  Values steps = c.tensors("state_steps");
  for (size_t i = 0; i < step.count(); ++i) {
    Value parameter = step.get(0, i);
    Value grad = b.add(step.gradient(i), b.mul(step.number("weight_decay", i), parameter));
    Value one = b.like(grad, 1.0);
    Value earlier = b.sub(b.reshape(b.convert(steps.at(i), step.type(i)), {}), one);
    Value rate =
        b.div(step.learning_rate(i), b.add(one, b.mul(earlier, step.number("lr_decay", i))));
    Value sum = b.add(step.get(2, i), b.mul(grad, grad));
    step.set(2, i, sum);
    Value denominator = b.add(b.sqrt(sum), step.number("eps", i));
    step.set(0, i, b.sub(parameter, b.div(b.mul(rate, grad), denominator)));
  }
  Values results = step.results();
  if constexpr (returns_steps) results.insert(results.end(), steps.begin(), steps.end());
  return results;
}

}  // namespace

// The betas are static: 1 - beta and log(beta) are then exact, and they hardly ever change.
const OpRow kOptimizerRows[] = {
    {"_fused_adam", lower_adam<WeightDecay::kL2>, "beta1,beta2", Infer::kLowering},
    {"_fused_adam.tensor_lr", lower_adam<WeightDecay::kL2>, "beta1,beta2", Infer::kLowering},
    {"_fused_adamw", lower_adam<WeightDecay::kDecoupled>, "beta1,beta2", Infer::kLowering},
    {"_fused_adamw.tensor_lr", lower_adam<WeightDecay::kDecoupled>, "beta1,beta2",
     Infer::kLowering},
    {"_fused_sgd", lower_sgd, "", Infer::kLowering},
    {"_fused_sgd.tensor_lr", lower_sgd, "", Infer::kLowering},
    {"_fused_adagrad", lower_adagrad<true>, "", Infer::kLowering},
    {"_fused_adagrad.tensor_lr", lower_adagrad<false>, "", Infer::kLowering},
};
const size_t kOptimizerRowCount = std::size(kOptimizerRows);

}  // namespace torch_tpu::lowering
