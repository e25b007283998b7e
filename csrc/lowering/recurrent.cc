// One step of LSTM and GRU cells with all their gates at once, and their gradients.
// `workspace` holds the activated gates: LSTM [n, 4h] of i, f, g, o; GRU [n, 5h] of r, z, n, h, and the hidden part of n.
#include "lowering/axes.h"
#include "lowering/families.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::opmath;

// Equal parts of the last dimension.
Values parts(Builder& b, Value x, int64_t n) {
  const int64_t axis = x.rank() - 1, width = x.dim(axis).fixed() / n;
  Values r;
  for (int64_t i = 0; i < n; ++i) r.push_back(b.slice_dim(x, axis, i * width, (i + 1) * width));
  return r;
}

Value with_bias(Call& c, const char* gates, const char* bias, DType type) {
  const Value x = c.tensor(gates, type);
  return c.has(bias) ? c.b.add(x, c.tensor(bias, type)) : x;
}

void check_gates(const Call& c, int64_t gates, const char* state) {
  const Value input = c.tensor("input_gates"), hidden = c.tensor("hidden_gates"),
              s = c.tensor(state);
  const bool fits = input.rank() == 2 && input.dims() == hidden.dims() && s.rank() == 2 &&
                    s.dim(0) == input.dim(0) && s.dim(1) * Size(gates) == input.dim(1);
  c.check(fits, c.op() + ": gates " + sizes_text(input.dims()) + " and " +
                    sizes_text(hidden.dims()) + " do not fit a state of " + sizes_text(s.dims()));
}

Values lower_lstm_cell(Call& c) {
  Builder& b = c.b;
  check_gates(c, 4, "cx");
  const DType out = c.tensor("cx").dtype(), type = opmath(out);
  const Value gates = b.add(with_bias(c, "input_gates", "input_bias", type),
                            with_bias(c, "hidden_gates", "hidden_bias", type));
  const Values g = parts(b, gates, 4);
  const Value i = b.logistic(g[0]), f = b.logistic(g[1]), cell = b.tanh(g[2]), o = b.logistic(g[3]);
  const Value cy = b.add(b.mul(f, c.tensor("cx", type)), b.mul(i, cell));
  const Value hy = b.mul(o, b.tanh(cy));
  const Value workspace = b.concatenate({i, f, cell, o}, 1);
  return {b.convert(hy, out), b.convert(cy, out),
          b.convert(workspace, c.tensor("input_gates").dtype())};
}

Values lower_lstm_cell_backward(Call& c) {
  Builder& b = c.b;
  const Value cx = c.tensor("cx");
  const DType out = cx.dtype(), type = opmath(out);
  const Values g = parts(b, c.tensor("workspace", type), 4);
  const Value &i = g[0], &f = g[1], &cell = g[2], &o = g[3];
  const Value one = b.constant(1, type), zero = b.zeros({type, cx.dims()});
  const Value grad_hy = c.has("grad_hy") ? c.tensor("grad_hy", type) : zero;
  const Value grad_cy = c.has("grad_cy") ? c.tensor("grad_cy", type) : zero;
  auto sigmoid_slope = [&](const Value& v) { return b.mul(v, b.sub(one, v)); };
  auto tanh_slope = [&](const Value& v) { return b.sub(one, b.mul(v, v)); };
  const Value squashed = b.tanh(c.tensor("cy", type));
  const Value grad_cell = b.add(b.mul(b.mul(grad_hy, o), tanh_slope(squashed)), grad_cy);
  const Value gates = b.concatenate({b.mul(b.mul(grad_cell, cell), sigmoid_slope(i)),
                                     b.mul(b.mul(grad_cell, b.convert(cx, type)), sigmoid_slope(f)),
                                     b.mul(b.mul(grad_cell, i), tanh_slope(cell)),
                                     b.mul(b.mul(grad_hy, squashed), sigmoid_slope(o))},
                                    1);
  Values r = {b.convert(gates, c.tensor("workspace").dtype()), b.convert(b.mul(grad_cell, f), out),
              Value()};
  if (c.boolean("has_bias"))
    r[2] = b.convert(sum_over(b, gates, {0}), c.tensor("workspace").dtype());
  return r;
}

Values lower_gru_cell(Call& c) {
  Builder& b = c.b;
  check_gates(c, 3, "hx");
  const DType out = c.tensor("hx").dtype(), type = opmath(out);
  const Values x = parts(b, with_bias(c, "input_gates", "input_bias", type), 3);
  const Values h = parts(b, with_bias(c, "hidden_gates", "hidden_bias", type), 3);
  const Value hx = c.tensor("hx", type);
  const Value reset = b.logistic(b.add(x[0], h[0])), update = b.logistic(b.add(x[1], h[1]));
  const Value fresh = b.tanh(b.add(x[2], b.mul(reset, h[2])));
  const Value hy = b.add(fresh, b.mul(update, b.sub(hx, fresh)));
  const Value workspace = b.concatenate({reset, update, fresh, hx, h[2]}, 1);
  return {b.convert(hy, out), b.convert(workspace, out)};
}

Values lower_gru_cell_backward(Call& c) {
  Builder& b = c.b;
  const DType out = c.tensor("grad_hy").dtype(), type = opmath(out);
  const Value grad = c.tensor("grad_hy", type), one = b.constant(1, type);
  const Values w = parts(b, c.tensor("workspace", type), 5);
  const Value &reset = w[0], &update = w[1], &fresh = w[2], &hx = w[3], &hidden = w[4];
  const Value grad_update = b.mul(b.mul(grad, b.sub(hx, fresh)), b.mul(update, b.sub(one, update)));
  const Value grad_fresh = b.mul(b.mul(grad, b.sub(one, update)), b.sub(one, b.mul(fresh, fresh)));
  const Value grad_reset = b.mul(b.mul(grad_fresh, hidden), b.mul(reset, b.sub(one, reset)));
  const Value input = b.concatenate({grad_reset, grad_update, grad_fresh}, 1);
  const Value recurrent = b.concatenate({grad_reset, grad_update, b.mul(grad_fresh, reset)}, 1);
  Values r = {b.convert(input, out), b.convert(recurrent, out), b.convert(b.mul(grad, update), out),
              Value(), Value()};
  if (c.boolean("has_bias")) {
    r[3] = b.convert(sum_over(b, input, {0}), out);
    r[4] = b.convert(sum_over(b, recurrent, {0}), out);
  }
  return r;
}

}  // namespace

const OpRow kRecurrentRows[] = {
    {"_thnn_fused_lstm_cell", lower_lstm_cell, "", Infer::kLowering, Tolerance::kTranscendental},
    {"_thnn_fused_lstm_cell_backward_impl", lower_lstm_cell_backward, "", Infer::kLowering,
     Tolerance::kReduction},
    {"_thnn_fused_gru_cell", lower_gru_cell, "", Infer::kLowering, Tolerance::kTranscendental},
    {"_thnn_fused_gru_cell_backward", lower_gru_cell_backward, "", Infer::kLowering,
     Tolerance::kReduction},
};
const size_t kRecurrentRowCount = std::size(kRecurrentRows);

}  // namespace torch_tpu::lowering
