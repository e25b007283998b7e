// Layer, group, batch, RMS and weight normalisation with their gradients. Statistics of f16 and bf16 inputs are f32.
#include "lowering/axes.h"
#include "lowering/families.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::opmath;

Value maybe_times(Builder& b, Value x, const std::optional<Value>& factor) {
  return factor ? b.mul(x, *factor) : x;
}
Value maybe_plus(Builder& b, Value x, const std::optional<Value>& term) {
  return term ? b.add(x, *term) : x;
}

Value inverse_std(Builder& b, Value variance, Value eps) { return b.rsqrt(b.add(variance, eps)); }

struct Stats {
  Value mean, variance;  // axes kept; the variance is the biased one
};

Stats statistics(Builder& b, Value x, const std::vector<int64_t>& axes) {
  const Value mean = mean_over(b, x, axes, true);
  const Value centered = b.sub(x, mean);
  return {mean, mean_over(b, b.mul(centered, centered), axes, true)};
}

// The gradient of (x - mean) * rstd with both statistics taken over `axes`; `grad` is that of the normalised value.
Value normalized_gradient(Builder& b, Value grad, Value normalized, Value rstd,
                          const std::vector<int64_t>& axes) {
  const Value mean_grad = mean_over(b, grad, axes, true);
  const Value mean_product = mean_over(b, b.mul(grad, normalized), axes, true);
  return b.mul(b.sub(b.sub(grad, mean_grad), b.mul(normalized, mean_product)), rstd);
}

// -- Layer normalisation ------------------------------------------------------------------------------------------

void check_normalized_shape(const Call& c, const Value& x, bool with_bias) {
  const std::vector<int64_t> shape = c.ints("normalized_shape");
  const int64_t tail = static_cast<int64_t>(shape.size());
  const Dims wanted(shape.begin(), shape.end());
  c.check(tail >= 1,
          "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
          "element, "
          "but got normalized_shape = " +
              sizes_text(shape));
  auto same_shape = [&](const char* name) {
    const auto t = c.optional_tensor(name);
    c.check(!t || t->dims() == wanted, std::string("Expected ") + name +
                                           " to be of same shape as normalized_shape, but got " +
                                           name + " of shape " + (t ? sizes_text(t->dims()) : "") +
                                           " and normalized_shape = " + sizes_text(shape));
  };
  same_shape("weight");
  if (with_bias) same_shape("bias");
  bool fits = x.rank() >= tail;
  for (int64_t i = 0; fits && i < tail; ++i) {
    fits = !x.dim(x.rank() - tail + i).is_static() || x.dim(x.rank() - tail + i) == wanted[i];
  }
  std::string text =
      "Given normalized_shape=" + sizes_text(shape) + ", expected input with shape [*";
  for (int64_t size : shape) text += ", " + std::to_string(size);
  c.check(fits, text + "], but got input of size" + sizes_text(x.dims()));
}

std::vector<int64_t> normalized_axes(const Call& c, const Value& x) {
  return axes_from(x.rank() - static_cast<int64_t>(c.ints("normalized_shape").size()), x.rank());
}

Values lower_layer_norm(Call& c) {
  Builder& b = c.b;
  const Value input = c.tensor("input");
  check_normalized_shape(c, input, true);
  const Value x = wide(b, input);
  const Stats s = statistics(b, x, normalized_axes(c, x));
  const Value rstd = inverse_std(b, s.variance, c.scalar("eps", x.dtype()));
  Value y = b.mul(b.sub(x, s.mean), rstd);
  if (c.has("weight")) y = b.mul(y, c.tensor("weight", x.dtype()));
  if (c.has("bias")) y = b.add(y, c.tensor("bias", x.dtype()));
  return {b.convert(y, input.dtype()), s.mean, rstd};
}

Values lower_layer_norm_backward(Call& c) {
  Builder& b = c.b;
  const Value input = c.tensor("input");
  const Value x = wide(b, input), grad = c.tensor("grad_out", x.dtype());
  const Value mean = c.tensor("mean", x.dtype()), rstd = c.tensor("rstd", x.dtype());
  const std::vector<bool> mask = c.bools("output_mask");
  const std::vector<int64_t> axes = normalized_axes(c, x);
  const std::vector<int64_t> rows = all_axes(x.rank() - static_cast<int64_t>(axes.size()));
  const Value normalized = b.mul(b.sub(x, mean), rstd);
  Values r(3);
  if (mask[0]) {
    const Value g = c.has("weight") ? b.mul(grad, c.tensor("weight", x.dtype())) : grad;
    r[0] = b.convert(normalized_gradient(b, g, normalized, rstd, axes), input.dtype());
  }
  const DType parameter = c.has("weight") ? c.tensor("weight").dtype() : input.dtype();
  if (mask[1]) r[1] = b.convert(sum_over(b, b.mul(grad, normalized), rows), parameter);
  if (mask[2]) r[2] = b.convert(sum_over(b, grad, rows), parameter);
  return r;
}

// -- RMS normalisation --------------------------------------------------------------------------------------------

// The machine epsilon, which stands for eps=None.
double epsilon_of(DType dtype) { return dtype == DType::kF64 ? 0x1p-52 : 0x1p-23; }

Values lower_rms_norm(Call& c) {
  Builder& b = c.b;
  const Value input = c.tensor("input");
  check_normalized_shape(c, input, false);
  const Value x = wide(b, input);
  const Value eps =
      c.optional_scalar("eps", x.dtype()).value_or(b.constant(epsilon_of(x.dtype()), x.dtype()));
  const Value rstd = inverse_std(b, mean_over(b, b.mul(x, x), normalized_axes(c, x), true), eps);
  Value y = b.mul(x, rstd);
  if (c.has("weight")) y = b.mul(y, c.tensor("weight", x.dtype()));
  return {b.convert(y, input.dtype()), rstd};
}

Values lower_rms_norm_backward(Call& c) {
  Builder& b = c.b;
  const Value input = c.tensor("input");
  const Value x = wide(b, input), grad = c.tensor("grad_out", x.dtype()),
              rstd = c.tensor("rstd", x.dtype());
  const std::vector<bool> mask = c.bools("output_mask");
  const std::vector<int64_t> axes = normalized_axes(c, x);
  const Value normalized = b.mul(x, rstd);
  Values r(2);
  if (mask[0]) {
    const Value g = c.has("weight") ? b.mul(grad, c.tensor("weight", x.dtype())) : grad;
    const Value projection = mean_over(b, b.mul(g, normalized), axes, true);
    r[0] = b.convert(b.mul(b.sub(g, b.mul(normalized, projection)), rstd), input.dtype());
  }
  if (mask[1] && c.has("weight")) {
    const std::vector<int64_t> rows = all_axes(x.rank() - static_cast<int64_t>(axes.size()));
    r[1] = b.convert(sum_over(b, b.mul(grad, normalized), rows), c.tensor("weight").dtype());
  }
  return r;
}

// -- Group normalisation ------------------------------------------------------------------------------------------

struct Groups {
  int64_t channels, groups;
  Dims grouped;  // [N, groups, channels / groups, the rest]
};

Groups groups_of(const Call& c, const Value& x) {
  Groups g{c.integer("C"), c.integer("group"), {}};
  c.check(g.groups > 0,
          "Expected num groups to be greater than 0, got " + std::to_string(g.groups));
  c.check(g.channels % g.groups == 0,
          "Expected number of channels in input to be divisible by num_groups, but got input of "
          "shape " +
              sizes_text(x.dims()) + " and num_groups=" + std::to_string(g.groups));
  for (const char* name : {"weight", "bias"}) {
    const auto t = c.optional_tensor(name);
    c.check(!t || (t->rank() == 1 && t->numel() == Size(g.channels)),
            std::string("Expected ") + name +
                " to be a vector of size equal to the number of channels in input, but "
                "got " +
                name + " of shape " + (t ? sizes_text(t->dims()) : "") + " and input of shape " +
                sizes_text(x.dims()));
  }
  Size rest = 1;
  for (int64_t i = 2; i < x.rank(); ++i) rest = rest * x.dim(i);
  g.grouped = {x.dim(0), g.groups, g.channels / g.groups, rest};
  return g;
}

// A per-channel vector over the grouped shape.
std::optional<Value> grouped_vector(Call& c, const Groups& g, const char* name, DType dtype) {
  if (!c.has(name)) return std::nullopt;
  return c.b.reshape(c.tensor(name, dtype), {1, g.groups, g.channels / g.groups, 1});
}

Values lower_group_norm(Call& c) {
  Builder& b = c.b;
  const Value input = c.tensor("input");
  const Groups g = groups_of(c, input);
  const Value x = b.reshape(wide(b, input), g.grouped);
  const Stats s = statistics(b, x, {2, 3});
  const Value rstd = inverse_std(b, s.variance, c.scalar("eps", x.dtype()));
  Value y = b.mul(b.sub(x, s.mean), rstd);
  y = maybe_times(b, y, grouped_vector(c, g, "weight", x.dtype()));
  y = maybe_plus(b, y, grouped_vector(c, g, "bias", x.dtype()));
  const Dims stats = {input.dim(0), g.groups};
  return {b.convert(b.reshape(y, input.dims()), input.dtype()), b.reshape(s.mean, stats),
          b.reshape(rstd, stats)};
}

Values lower_group_norm_backward(Call& c) {
  Builder& b = c.b;
  const Value input = c.tensor("input");
  const Groups g = groups_of(c, input);
  const Value x = b.reshape(wide(b, input), g.grouped);
  const Value grad = b.reshape(c.tensor("grad_out", x.dtype()), g.grouped);
  const Dims stats = {input.dim(0), g.groups, 1, 1};
  const Value mean = b.reshape(c.tensor("mean", x.dtype()), stats);
  const Value rstd = b.reshape(c.tensor("rstd", x.dtype()), stats);
  const std::vector<bool> mask = c.bools("output_mask");
  const Value normalized = b.mul(b.sub(x, mean), rstd);
  Values r(3);
  if (mask[0]) {
    const Value scaled = maybe_times(b, grad, grouped_vector(c, g, "weight", x.dtype()));
    const Value dx = normalized_gradient(b, scaled, normalized, rstd, {2, 3});
    r[0] = b.convert(b.reshape(dx, input.dims()), input.dtype());
  }
  const DType parameter = c.has("weight") ? c.tensor("weight").dtype() : input.dtype();
  auto per_channel = [&](Value v) {
    return b.convert(b.reshape(sum_over(b, v, {0, 3}), {g.channels}), parameter);
  };
  if (mask[1]) r[1] = per_channel(b.mul(grad, normalized));
  if (mask[2]) r[2] = per_channel(grad);
  return r;
}

// -- Batch normalisation ------------------------------------------------------------------------------------------

struct BatchNorm {
  Value output, mean, rstd;         // mean and rstd: [C], of the batch when training
  Value running_mean, running_var;  // the new values; empty where the caller passed none
};

void check_channels(const Call& c, const Value& input, const char* name) {
  const auto t = c.optional_tensor(name);
  c.check(!t || t->numel() == input.dim(1), std::string(name) + " should contain " +
                                                input.dim(1).str() + " elements not " +
                                                (t ? t->numel().str() : ""));
}

BatchNorm batch_norm(Call& c, bool training) {
  Builder& b = c.b;
  const Value input = c.tensor("input");
  c.check(input.rank() >= 2,
          "Expected input to have at least 2 dimensions, but got input of size " +
              sizes_text(input.dims()));
  for (const char* name : {"weight", "bias", "running_mean", "running_var"})
    check_channels(c, input, name);
  c.check(training || (c.has("running_mean") && c.has("running_var")),
          "Expected running_mean and running_var to be defined when training=False");
  const Value x = wide(b, input);
  const DType type = x.dtype();
  const int64_t rank = x.rank();
  const std::vector<int64_t> axes = axes_except(rank, 1);
  const Dims channels = {x.dim(1)};
  BatchNorm r;
  Value variance;
  if (training) {
    const Stats s = statistics(b, x, axes);
    r.mean = b.reshape(s.mean, channels);
    variance = b.reshape(s.variance, channels);
  } else {
    r.mean = c.tensor("running_mean", type);
    variance = c.tensor("running_var", type);
  }
  r.rstd = inverse_std(b, variance, c.scalar("eps", type));
  Value y = b.mul(b.sub(x, along_axis(b, r.mean, rank, 1)), along_axis(b, r.rstd, rank, 1));
  if (c.has("weight")) y = b.mul(y, along_axis(b, c.tensor("weight", type), rank, 1));
  if (c.has("bias")) y = b.add(y, along_axis(b, c.tensor("bias", type), rank, 1));
  r.output = b.convert(y, input.dtype());

  auto blend = [&](const char* name, Value batch) -> Value {
    if (!c.has(name)) return {};
    const Value old = c.tensor(name);
    if (!training) return old;
    const Value momentum = c.scalar("momentum", type);
    const Value kept = b.mul(b.convert(old, type), b.sub(b.like(momentum, 1), momentum));
    return b.convert(b.add(kept, b.mul(momentum, batch)), old.dtype());
  };
  r.running_mean = blend("running_mean", r.mean);
  if (c.has("running_var")) {
    const Value n = count(b, x, axes, type);
    const Value unbiased = b.mul(variance, b.div(n, b.sub(n, b.like(n, 1))));
    r.running_var = blend("running_var", unbiased);
  }
  return r;
}

// The statistics results: empty tensors outside training, as on CPU.
Values batch_norm_results(Builder& b, const BatchNorm& r, bool training) {
  if (training) return {r.output, r.mean, r.rstd};
  const Value none = b.zeros({r.mean.dtype(), {0}});
  return {r.output, none, none};
}

// The written arguments come last; those that the caller did not pass have no entry.
void append_running(Values& values, const BatchNorm& r) {
  if (r.running_mean) values.push_back(r.running_mean);
  if (r.running_var) values.push_back(r.running_var);
}

Values lower_batch_norm(Call& c) {
  const bool training = c.boolean("training");
  const BatchNorm r = batch_norm(c, training);
  Values values = batch_norm_results(c.b, r, training);
  append_running(values, r);
  return values;
}

Values lower_batch_norm_no_stats(Call& c) {
  return batch_norm_results(c.b, batch_norm(c, c.boolean("training")), c.boolean("training"));
}

Value empty_reserve(Builder& b) { return b.zeros({DType::kU8, {0}}); }

Values lower_batch_norm_with_update(Call& c) {
  const BatchNorm r = batch_norm(c, true);
  Values values = batch_norm_results(c.b, r, true);
  values.push_back(empty_reserve(c.b));
  append_running(values, r);
  return values;
}

Values lower_batch_norm_no_update(Call& c) {
  Values values = batch_norm_results(c.b, batch_norm(c, false), false);
  values.push_back(empty_reserve(c.b));
  return values;
}

Values batch_norm_gradient(Call& c, bool training, const char* saved_rstd) {
  Builder& b = c.b;
  const Value input = c.tensor("input");
  const Value x = wide(b, input), grad = c.tensor("grad_out", x.dtype());
  const DType type = x.dtype();
  const int64_t rank = x.rank();
  const std::vector<int64_t> axes = axes_except(rank, 1);
  const std::vector<bool> mask = c.bools("output_mask");
  Value mean, rstd;
  if (training) {
    mean = c.tensor("save_mean", type);
    rstd = c.tensor(saved_rstd, type);
  } else {
    mean = c.tensor("running_mean", type);
    rstd = inverse_std(b, c.tensor("running_var", type), c.scalar("eps", type));
  }
  mean = along_axis(b, mean, rank, 1);
  rstd = along_axis(b, rstd, rank, 1);
  const Value normalized = b.mul(b.sub(x, mean), rstd);
  Values r(3);
  if (mask[0]) {
    const Value scaled =
        c.has("weight") ? b.mul(grad, along_axis(b, c.tensor("weight", type), rank, 1)) : grad;
    const Value dx =
        training ? normalized_gradient(b, scaled, normalized, rstd, axes) : b.mul(scaled, rstd);
    r[0] = b.convert(dx, input.dtype());
  }
  const DType parameter = c.has("weight") ? c.tensor("weight").dtype() : type;
  if (mask[1]) r[1] = b.convert(sum_over(b, b.mul(grad, normalized), axes), parameter);
  if (mask[2]) r[2] = b.convert(sum_over(b, grad, axes), parameter);
  return r;
}

Values lower_native_batch_norm_backward(Call& c) {
  return batch_norm_gradient(c, c.boolean("train"), "save_invstd");
}
Values lower_batch_norm_backward(Call& c) {
  return batch_norm_gradient(c, c.boolean("update"), "save_var");
}

// -- Weight normalisation -----------------------------------------------------------------------------------------

Values lower_weight_norm(Call& c) {
  Builder& b = c.b;
  const Value v = c.tensor("v"), g = c.tensor("g");
  const int64_t dim = c.wrap_dim(c.integer("dim"), v.rank());
  c.check(dim == 0 || dim == v.rank() - 1,
          "fused kernels can only be applied for first or last dim");
  const Value x = wide(b, v);
  const Value norm = b.sqrt(sum_over(b, b.mul(x, x), axes_except(x.rank(), dim), true));
  const Value w = b.mul(x, b.div(b.convert(g, x.dtype()), norm));
  return {b.convert(w, v.dtype()), norm};
}

Values lower_weight_norm_backward(Call& c) {
  Builder& b = c.b;
  const Value v = c.tensor("saved_v"), g = c.tensor("saved_g");
  const Value x = wide(b, v);
  const DType type = x.dtype();
  const int64_t dim = c.wrap_dim(c.integer("dim"), v.rank());
  const Value grad = c.tensor("grad_w", type), norm = c.tensor("saved_norms", type);
  const Value projection =
      b.div(sum_over(b, b.mul(grad, x), axes_except(x.rank(), dim), true), norm);
  const Value direction = b.sub(grad, b.mul(x, b.div(projection, norm)));
  const Value grad_v = b.mul(direction, b.div(b.convert(g, type), norm));
  return {b.convert(grad_v, v.dtype()), b.convert(projection, g.dtype())};
}

constexpr std::string_view kRunning = "running_mean,running_var";

}  // namespace

const OpRow kNormalizationRows[] = {
    {"native_layer_norm", lower_layer_norm, "", Infer::kLowering, Tolerance::kReduction},
    {"native_layer_norm_backward", lower_layer_norm_backward, "", Infer::kLowering,
     Tolerance::kReduction},
    {"_fused_rms_norm", lower_rms_norm, "", Infer::kLowering, Tolerance::kReduction},
    {"_fused_rms_norm_backward", lower_rms_norm_backward, "", Infer::kLowering,
     Tolerance::kReduction},
    {"native_group_norm", lower_group_norm, "", Infer::kLowering, Tolerance::kReduction},
    {"native_group_norm_backward", lower_group_norm_backward, "", Infer::kLowering,
     Tolerance::kReduction},
    {"native_batch_norm", lower_batch_norm, "", Infer::kLowering, Tolerance::kReduction, kRunning},
    {"_native_batch_norm_legit", lower_batch_norm, "", Infer::kLowering, Tolerance::kReduction,
     kRunning},
    {"_native_batch_norm_legit.no_stats", lower_batch_norm_no_stats, "", Infer::kLowering,
     Tolerance::kReduction},
    {"_native_batch_norm_legit_functional", lower_batch_norm, "", Infer::kLowering,
     Tolerance::kReduction},
    {"_batch_norm_with_update", lower_batch_norm_with_update, "", Infer::kLowering,
     Tolerance::kReduction, kRunning},
    {"_batch_norm_with_update_functional", lower_batch_norm_with_update, "", Infer::kLowering,
     Tolerance::kReduction},
    {"_batch_norm_no_update", lower_batch_norm_no_update, "", Infer::kLowering,
     Tolerance::kReduction},
    {"native_batch_norm_backward", lower_native_batch_norm_backward, "", Infer::kLowering,
     Tolerance::kReduction},
    {"batch_norm_backward", lower_batch_norm_backward, "", Infer::kLowering, Tolerance::kReduction},
    {"_weight_norm_interface", lower_weight_norm, "", Infer::kLowering, Tolerance::kReduction},
    {"_weight_norm_interface_backward", lower_weight_norm_backward, "", Infer::kLowering,
     Tolerance::kReduction},
};
const size_t kNormalizationRowCount = std::size(kNormalizationRows);

}  // namespace torch_tpu::lowering
