// Connectionist temporal classification (Graves et al., 2006): the forward and backward recursions over time in log space.
// The label sequence of each item is extended with blanks: blank, l0, blank, l1, ..., blank.
#include "lowering/ctc_loss.h"

#include <algorithm>
#include <cmath>

#include "lowering/axes.h"

namespace torch_tpu::lowering {
namespace {

constexpr DType kIndex = DType::kI32;

struct Ctc {
  int64_t time, batch, classes, labels;  // labels: positions of the extended sequence
  DType type;
  Value log_probs;                      // [time, batch, classes]
  Value input_lengths, target_lengths;  // i32 [batch, 1]
  Value sequence;                       // i32 [batch, labels]
  Value emission;  // [time, batch, labels]: log probability of each label at each time
  Value skips;     // bool [batch, labels]: may be entered from two positions before
};

// Sequence lengths as i32 [batch, 1], given as a tensor or as a list.
Value lengths(Call& c, const char* name, int64_t batch) {
  if (c.op().ends_with(".Tensor")) return c.b.reshape(c.tensor(name, kIndex), {batch, 1});
  const std::vector<int64_t> list = c.ints(name);
  c.check(static_cast<int64_t>(list.size()) == batch,
          std::string(name) + " must be of size batch_size");
  return c.b.dense(list, kIndex, {batch, 1});
}

int64_t longest_target(Call& c, const Value& targets) {
  if (!c.op().ends_with(".Tensor")) {
    const std::vector<int64_t> list = c.ints("target_lengths");
    return list.empty() ? 0 : *std::max_element(list.begin(), list.end());
  }
  return targets.dim(-1).fixed();
}

// Targets as [batch, width]: padded rows, or pieces of one concatenated vector. Past an item's length: anything valid.
Value target_rows(Builder& b, Value targets, Value target_lengths, int64_t batch, int64_t width) {
  const Value column = b.iota(kIndex, {batch, width}, 1);
  const Value row = b.iota(kIndex, {batch, 1}, 0);
  Value start;
  if (targets.rank() == 2) {
    start = b.mul(row, b.constant_int(targets.dim(1).fixed(), kIndex));
  } else {
    const Value earlier =
        b.lt(b.iota(kIndex, {batch, batch}, 1), b.iota(kIndex, {batch, batch}, 0));
    const Value sizes = b.reshape(target_lengths, {1, batch});
    start = sum_over(b, b.select(earlier, sizes, b.constant_int(0, kIndex)), {1}, true);
  }
  const Value flat = b.flatten(targets);
  const Value last = b.constant_int(std::max<int64_t>(flat.dim(0).fixed() - 1, 0), kIndex);
  const Value position = b.min(b.add(start, column), last);
  stablehlo::GatherDims dims;
  dims.collapsed_slice_dims = {0};
  dims.start_index_map = {0};
  dims.index_vector_dim = 2;
  dims.slice_sizes = {1};
  return b.gather(flat, b.reshape(position, {batch, width, 1}), dims);
}

// Blanks at the even positions, the targets at the odd ones.
Value extended(Builder& b, Value targets, Value blank, int64_t batch, int64_t width) {
  if (width == 0) return b.broadcast_to(blank, {batch, 1});
  Value labels = b.pad(b.reshape(targets, {batch, width, 1}), blank, {0, 0, 1}, {0, 0, 0});
  return b.pad(b.reshape(labels, {batch, 2 * width}), blank, {0, 0}, {0, 1});
}

// v moved by `by` positions along the labels; what comes in is `fill`.
Value moved(Builder& b, Value v, int64_t by, Value fill) {
  const int64_t axis = v.rank() - 1;
  std::vector<int64_t> low(v.rank(), 0), high(v.rank(), 0);
  low[axis] = by;
  high[axis] = -by;
  const int64_t size = v.dim(axis).fixed();
  if (std::abs(by) < size) return b.pad(v, fill, low, high);
  return b.broadcast_to(fill, v.dims());
}

Ctc read_ctc(Call& c) {
  Builder& b = c.b;
  Ctc s;
  const Value probs = c.tensor("log_probs"), targets = c.tensor("targets");
  c.check(probs.rank() == 3,
          "Expected log_probs to have 3 dimensions, but got " + std::to_string(probs.rank()));
  c.check(targets.rank() == 1 || targets.rank() == 2,
          "Expected targets to have 1 or 2 dimensions, but got " + std::to_string(targets.rank()));
  s.log_probs = wide(b, probs);
  s.type = s.log_probs.dtype();
  s.time = probs.dim(0).fixed();
  s.batch = probs.dim(1).fixed();
  s.classes = probs.dim(2).fixed();
  const int64_t blank = c.integer("blank");
  c.check(blank >= 0 && blank < s.classes, "blank must be in label range");
  if (!c.op().ends_with(".Tensor")) {
    for (int64_t length : c.ints("input_lengths")) {
      c.check(length <= s.time, "Expected input_lengths to have value at most " +
                                    std::to_string(s.time) + ", but got value " +
                                    std::to_string(length));
    }
  }
  s.input_lengths = lengths(c, "input_lengths", s.batch);
  s.target_lengths = lengths(c, "target_lengths", s.batch);
  const int64_t width = longest_target(c, targets);
  s.labels = 2 * width + 1;
  Value rows;
  if (width > 0)
    rows = target_rows(b, b.convert(targets, kIndex), s.target_lengths, s.batch, width);
  s.sequence = extended(b, rows, b.constant_int(blank, kIndex), s.batch, width);

  const Value odd = b.eq(b.rem(b.iota(kIndex, {s.batch, s.labels}, 1), b.constant_int(2, kIndex)),
                         b.constant_int(1, kIndex));
  const Value before = moved(b, s.sequence, 2, b.constant_int(-1, kIndex));
  s.skips = b.logical_and(odd, b.ne(s.sequence, before));

  stablehlo::GatherDims dims;
  dims.offset_dims = {0};
  dims.collapsed_slice_dims = {2};
  dims.operand_batching_dims = {1};
  dims.start_indices_batching_dims = {0};
  dims.start_index_map = {2};
  dims.index_vector_dim = 2;
  dims.slice_sizes = {s.time, 1, 1};
  s.emission = b.gather(s.log_probs, b.reshape(s.sequence, {s.batch, s.labels, 1}), dims);
  return s;
}

// log(exp(x) + exp(y) + exp(z)), -inf where all three are.
Value log_sum(Builder& b, Value x, Value y, Value z) {
  Value top = b.max(b.max(x, y), z);
  top = b.select(b.eq(top, b.like(top, -HUGE_VAL)), b.like(top, 0), top);
  const Value sum = b.add(b.add(b.exp(b.sub(x, top)), b.exp(b.sub(y, top))), b.exp(b.sub(z, top)));
  return b.add(b.log(sum), top);
}

// One recursion over time, [time, batch, labels]. `direction` 1 runs forward from the start, -1 backward from each
// item's end. `entry` marks the labels a path may begin with, `start` the time [batch, 1] it begins at.
Value recursion(Builder& b, const Ctc& s, int64_t direction, Value entry, Value start,
                Value skips) {
  const Value nothing = b.constant(-HUGE_VAL, s.type);
  const Dims plane = {s.batch, s.labels};
  const Value first_time = b.constant_int(direction > 0 ? 0 : s.time - 1, kIndex);
  const Value blank_plane = b.broadcast_to(nothing, plane);
  const Values state = {
      first_time, blank_plane, b.broadcast_to(nothing, {s.time, s.batch, s.labels}),
      s.emission, entry,       start,
      skips};
  auto condition = [&](const Values& v) -> Values {
    if (direction > 0) return {b.lt(v[0], b.constant_int(s.time, kIndex))};
    return {b.ge(v[0], b.constant_int(0, kIndex))};
  };
  auto body = [&](const Values& v) -> Values {
    const Value t = v[0], none = b.constant(-HUGE_VAL, s.type), origin = b.constant_int(0, kIndex);
    const Value emission =
        b.reshape(b.dynamic_slice(v[3], {t, origin, origin}, {1, s.batch, s.labels}), plane);
    const Value near = moved(b, v[1], direction, none);
    const Value far = b.select(v[6], moved(b, v[1], 2 * direction, none), none);
    const Value here = b.eq(v[5], t);
    const Value reached =
        b.select(b.broadcast_to(here, plane),
                 b.select(v[4], b.constant(0, s.type), b.broadcast_to(none, plane)),
                 log_sum(b, v[1], near, far));
    const Value now = b.add(emission, reached);
    Values next = v;
    next[0] = b.add(t, b.constant_int(direction, kIndex));
    next[1] = now;
    next[2] =
        b.dynamic_update_slice(v[2], b.reshape(now, {1, s.batch, s.labels}), {t, origin, origin});
    return next;
  };
  return b.while_loop(state, condition, body)[2];
}

// Labels 2 * length and 2 * length - 1: a path ends in one of them.
Value final_labels(Builder& b, const Ctc& s) {
  const Value label = b.iota(kIndex, {s.batch, s.labels}, 1);
  const Value end = b.mul(s.target_lengths, b.constant_int(2, kIndex));
  return b.logical_or(b.eq(label, end), b.eq(label, b.sub(end, b.constant_int(1, kIndex))));
}

Value last_time(Builder& b, const Ctc& s) {
  return b.sub(s.input_lengths, b.constant_int(1, kIndex));
}

}  // namespace

Values lower_ctc_loss(Call& c) {
  Builder& b = c.b;
  const Ctc s = read_ctc(c);
  const Dims plane = {s.batch, s.labels};
  const Value label = b.iota(kIndex, plane, 1);
  const Value entry = b.le(label, b.min(s.target_lengths, b.constant_int(1, kIndex)));
  const Value start = b.constant_int(0, kIndex, {s.batch, 1});
  const Value alpha = recursion(b, s, 1, entry, start, s.skips);

  const Value nothing = b.constant(-HUGE_VAL, s.type);
  const Dims volume = {s.time, s.batch, s.labels};
  const Value is_last = b.eq(b.iota(kIndex, volume, 0), b.broadcast_to(last_time(b, s), volume));
  const Value ends = b.logical_and(is_last, b.broadcast_to(final_labels(b, s), volume));
  const Value scores = b.select(ends, alpha, nothing);
  Value top = max_over(b, scores, {0, 2}, true);
  top = b.select(b.eq(top, nothing), b.constant(0, s.type), top);
  const Value sum = sum_over(b, b.exp(b.sub(scores, top)), {0, 2}, true);
  Value loss = b.neg(b.reshape(b.add(b.log(sum), top), {s.batch}));
  // No input at all: certain when there is no target either.
  const Value no_input = b.reshape(b.eq(s.input_lengths, b.constant_int(0, kIndex)), {s.batch});
  const Value no_target = b.reshape(b.eq(s.target_lengths, b.constant_int(0, kIndex)), {s.batch});
  const Value zero = b.constant(0, s.type);
  loss = b.select(
      no_input, b.select(no_target, zero, b.broadcast_to(b.constant(HUGE_VAL, s.type), {s.batch})),
      loss);
  return {b.convert(loss, c.tensor("log_probs").dtype()), b.transpose(alpha, {1, 0, 2})};
}

Values lower_ctc_loss_backward(Call& c) {
  Builder& b = c.b;
  const Ctc s = read_ctc(c);
  const Value never = b.constant_bool(false);
  const Value beta =
      recursion(b, s, -1, final_labels(b, s), last_time(b, s), moved(b, s.skips, -2, never));
  const Value alpha = b.transpose(c.tensor("log_alpha", s.type), {1, 0, 2});
  const Value loss = b.reshape(c.tensor("neg_log_likelihood", s.type), {1, s.batch, 1});
  // The probability of being at each label at each time, given the targets.
  const Value path = b.add(alpha, beta), nothing = b.constant(-HUGE_VAL, s.type),
              zero = b.constant(0, s.type);
  const Value posterior =
      b.select(b.eq(path, nothing), zero, b.exp(b.add(b.sub(path, s.emission), loss)));
  const Value one_hot = b.convert(b.eq(b.iota(kIndex, {s.batch, s.labels, s.classes}, 2),
                                       b.reshape(s.sequence, {s.batch, s.labels, 1})),
                                  s.type);
  const Value by_class = b.dot_general(posterior, one_hot, {1}, {0}, {2}, {1});
  const Value expected = b.transpose(by_class, {1, 0, 2});
  const Value grad_out = b.reshape(c.tensor("grad", s.type), {1, s.batch, 1});
  Value grad = b.mul(b.sub(b.exp(s.log_probs), expected), grad_out);
  const Value inside =
      b.lt(b.iota(kIndex, {s.time, s.batch, 1}, 0), b.reshape(s.input_lengths, {1, s.batch, 1}));
  grad = b.select(inside, grad, zero);
  if (c.boolean("zero_infinity"))
    grad = b.select(b.eq(loss, b.constant(HUGE_VAL, s.type)), zero, grad);
  return {b.convert(grad, c.tensor("log_probs").dtype())};
}

}  // namespace torch_tpu::lowering
