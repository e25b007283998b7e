// Scaled dot product attention as one operator. Scores and softmax are f32 for f16 and bf16 operands, as in flash
// attention kernels; fully masked rows give zeros. The dropout mask is kept for the gradient in the philox_seed result.
#include <cmath>

#include "lowering/axes.h"
#include "lowering/families.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::opmath;

// Query [b, h, l, e], key [b, h, s, e], value [b, h, s, ev].
struct Attention {
  Value query, key, value;
  DType type;  // of scores
  Value scale;
};

Attention read_attention(Call& c) {
  Attention a;
  a.query = c.tensor("query");
  a.key = c.tensor("key");
  a.value = c.tensor("value");
  a.type = opmath(a.query.dtype());
  const double scale =
      c.optional_number("scale").value_or(1 / std::sqrt(double(a.query.dim(-1).fixed())));
  a.scale = c.b.constant(scale, a.type);
  return a;
}

Value scores_of(Call& c, const Attention& a) {
  Builder& b = c.b;
  Value scores = b.dot_general(a.query, a.key, {0, 1}, {0, 1}, {3}, {3}, a.type);
  scores = b.mul(scores, a.scale);
  const Value hidden = b.constant(-HUGE_VAL, a.type);
  if (c.has("attn_bias")) {
    const Value bias = c.tensor("attn_bias");
    scores = bias.dtype() == DType::kPred ? b.select(bias, scores, hidden)
                                          : b.add(scores, b.convert(bias, a.type));
  }
  if (c.boolean("is_causal")) {
    const Dims plane = {scores.dim(2), scores.dim(3)};
    const Value past = b.ge(b.iota(DType::kI32, plane, 0), b.iota(DType::kI32, plane, 1));
    scores = b.select(past, scores, hidden);
  }
  return scores;
}

// A row's largest score (or log-sum), with 0 for rows in which everything is hidden.
Value finite_or_zero(Builder& b, Value v) {
  return b.select(b.eq(v, b.like(v, -HUGE_VAL)), b.like(v, 0), v);
}

// What is multiplied with the values: kept probabilities are scaled up.
Value with_dropout(Call& c, Value probabilities, Value kept) {
  Builder& b = c.b;
  const double p = c.number("dropout_p");
  const double factor = p < 1 ? 1 / (1 - p) : 0;
  return b.select(kept, b.mul(probabilities, b.like(probabilities, factor)),
                  b.like(probabilities, 0));
}

void check_attention(const Call& c, const Attention& a) {
  c.check(a.query.rank() == 4 && a.key.rank() == 4 && a.value.rank() == 4,
          "scaled_dot_product_attention: expected query, key and value of 4 dimensions, but got " +
              sizes_text(a.query.dims()) + ", " + sizes_text(a.key.dims()) + " and " +
              sizes_text(a.value.dims()));
  const bool fits = a.query.dim(3) == a.key.dim(3) && a.key.dim(2) == a.value.dim(2) &&
                    a.query.dim(0) == a.key.dim(0) && a.query.dim(1) == a.key.dim(1) &&
                    a.key.dim(0) == a.value.dim(0) && a.key.dim(1) == a.value.dim(1);
  c.check(fits, "scaled_dot_product_attention: query " + sizes_text(a.query.dims()) + ", key " +
                    sizes_text(a.key.dims()) + " and value " + sizes_text(a.value.dims()) +
                    " do not fit together");
}

// Results: output, logsumexp, cum_seq_q, cum_seq_k, philox_seed, philox_offset, debug_attn_mask. The two SymInt
// results of the schema, max_q and max_k, are no tensors and not among them.
Values lower_attention(Call& c) {
  Builder& b = c.b;
  const Attention a = read_attention(c);
  check_attention(c, a);
  const Value scores = scores_of(c, a);
  const Value top = finite_or_zero(b, max_over(b, scores, {3}, true));
  const Value e = b.exp(b.sub(scores, top));
  const Value total = sum_over(b, e, {3}, true);
  const Value zero = b.constant(0, a.type);
  Value probabilities = b.div(e, b.select(b.eq(total, zero), b.constant(1, a.type), total));
  const Dims rows = {scores.dim(0), scores.dim(1), scores.dim(2)};
  const Value log_sum = b.reshape(b.add(b.log(total), top), rows);
  const Value unused = b.constant_int(0, DType::kI64);
  Value kept = unused;
  if (c.number("dropout_p") > 0) {
    const Value p = b.constant(c.number("dropout_p"), DType::kF32);
    kept = b.ge(c.random_uniform(scores.dims(), DType::kF32), p);
    probabilities = with_dropout(c, probabilities, kept);
  }
  const Value output = b.dot_general(b.convert(probabilities, a.value.dtype()), a.value, {0, 1},
                                     {0, 1}, {3}, {2}, a.type);
  return {b.convert(output, a.query.dtype()), log_sum, unused, unused, kept, unused,
          b.constant(0, a.query.dtype())};
}

Values lower_attention_backward(Call& c) {
  Builder& b = c.b;
  const Attention a = read_attention(c);
  const DType narrow = a.query.dtype();
  const std::vector<bool> mask = c.bools("grad_input_mask");
  const Value grad = c.tensor("grad_out"), output = c.tensor("out", a.type);
  const Value scores = scores_of(c, a);
  Dims column = scores.dims();
  column[3] = 1;
  const Value log_sum = finite_or_zero(b, b.reshape(c.tensor("logsumexp", a.type), column));
  const Value probabilities = b.exp(b.sub(scores, log_sum));
  const bool dropout = c.number("dropout_p") > 0;
  const Value kept = dropout ? c.tensor("philox_seed") : Value();
  Values r(4);
  if (mask[2]) {
    const Value p =
        b.convert(dropout ? with_dropout(c, probabilities, kept) : probabilities, narrow);
    r[2] = b.convert(b.dot_general(p, grad, {0, 1}, {0, 1}, {2}, {2}, a.type), a.value.dtype());
  }
  Value slope = b.dot_general(grad, a.value, {0, 1}, {0, 1}, {3}, {3}, a.type);
  if (dropout) slope = with_dropout(c, slope, kept);
  const Value delta = sum_over(b, b.mul(b.convert(grad, a.type), output), {3}, true);
  const Value grad_scores = b.mul(probabilities, b.sub(slope, delta));
  const Value scaled = b.convert(b.mul(grad_scores, a.scale), narrow);
  if (mask[0])
    r[0] = b.convert(b.dot_general(scaled, a.key, {0, 1}, {0, 1}, {3}, {2}, a.type), narrow);
  if (mask[1]) {
    r[1] =
        b.convert(b.dot_general(scaled, a.query, {0, 1}, {0, 1}, {2}, {2}, a.type), a.key.dtype());
  }
  if (mask[3] && c.has("attn_bias")) {
    const Value bias = c.tensor("attn_bias");
    r[3] = b.convert(sum_to(b, grad_scores, bias.dims()), bias.dtype());
  }
  return r;
}

constexpr std::string_view kStatics = "dropout_p,scale";

}  // namespace

const OpRow kAttentionRows[] = {
    {"_scaled_dot_product_fused_attention_overrideable", lower_attention, kStatics,
     Infer::kLowering, Tolerance::kContraction, "", true},
    {"_scaled_dot_product_fused_attention_overrideable_backward", lower_attention_backward,
     kStatics, Infer::kLowering, Tolerance::kContraction},
};
const size_t kAttentionRowCount = std::size(kAttentionRows);

}  // namespace torch_tpu::lowering
