// Writes at computed positions: scatter, index_add, index_put and their kin. Repeated positions add up where the
// operator accumulates; where it assigns, the last one stays.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lowering/axes.h"
#include "lowering/families.h"
#include "lowering/indexing.h"
#include "lowering/scan.h"

namespace torch_tpu::lowering {

using stablehlo::Binary;
using stablehlo::Monoid;
using stablehlo::ScatterDims;
using stablehlo::Unary;

namespace {

bool is_empty(const Dims& dims) {
  return std::any_of(dims.begin(), dims.end(),
                     [](const Size& s) { return s.is_static() && s.bound() == 0; });
}

Dims with_vector(Dims dims) {
  dims.push_back(1);
  return dims;
}

// Sums and products of short floats are made in f32.
Value scatter(Builder& b, Value x, Value places, Value updates, const ScatterDims& s, Merge how) {
  const DType type = x.dtype();
  if (how == Merge::kAdd || how == Merge::kMultiply) {
    x = wide(b, x);
    updates = wide(b, updates);
  }
  return b.convert(b.scatter(x, places, updates, s, merge_body(b, how)), type);
}

}  // namespace

Value merge(Builder& b, Merge how, Value current, Value update) {
  const bool flags = current.dtype() == DType::kPred;
  switch (how) {
    case Merge::kAssign:
      return update;
    case Merge::kAdd:
      return flags ? b.logical_or(current, update) : b.add(current, update);
    case Merge::kMultiply:
      return flags ? b.logical_and(current, update) : b.mul(current, update);
    case Merge::kMaximum:
      return flags ? b.logical_or(current, update) : b.max(current, update);
    case Merge::kMinimum:
      return flags ? b.logical_and(current, update) : b.min(current, update);
  }
  return update;
}

Builder::Body merge_body(Builder& b, Merge how) {
  return [&b, how](const Values& v) -> Values {
    const bool extreme = how == Merge::kMaximum || how == Merge::kMinimum;
    if (!extreme || !stablehlo::is_float(v[0].dtype())) return {merge(b, how, v[0], v[1])};
    // XLA's CPU scatter drops NaNs from a plain maximum or minimum (seen with xla-cpu-pjrt 0.0.1).
    Value kept = how == Merge::kMaximum ? b.ge(v[0], v[1]) : b.le(v[0], v[1]);
    return {b.select(b.logical_or(kept, b.is_nan(v[0])), v[0], v[1])};
  };
}

Value put_rows(Builder& b, Value x, int64_t dim, Value index, Value updates, Merge how) {
  if (is_empty(x.dims()) || is_empty(updates.dims())) return x;
  ScatterDims s;
  for (int64_t i = 0; i < updates.rank(); ++i) {
    if (i < dim || i >= dim + index.rank()) s.update_window_dims.push_back(i);
  }
  s.inserted_window_dims = {dim};
  s.scatter_dims_to_operand_dims = {dim};
  s.index_vector_dim = index.rank();
  return scatter(b, x, b.reshape(index, with_vector(index.dims())), updates, s, how);
}

Value scatter_along(Builder& b, Value x, int64_t dim, Value index, Value updates, Merge how) {
  if (is_empty(x.dims()) || is_empty(index.dims())) return x;
  ScatterDims s;
  std::vector<int64_t> none(x.rank(), 0), high(x.rank(), 0);
  bool smaller = false;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (updates.dim(i) != index.dim(i)) {
      updates = b.slice_dim(updates, i, 0, index.dim(i).fixed());
    }
    if (i == dim) continue;
    s.input_batching_dims.push_back(i);
    s.scatter_indices_batching_dims.push_back(i);
    if (x.dim(i) == index.dim(i)) continue;
    high[i] = x.dim(i).fixed() - index.dim(i).fixed();
    smaller = true;
  }
  if (smaller) {  // the rest goes nowhere
    index = b.pad(index, b.constant_int(-1, index.dtype()), none, high);
    updates = b.pad(updates, b.zeros({updates.dtype(), {}}), none, high);
  }
  s.inserted_window_dims = {dim};
  s.scatter_dims_to_operand_dims = {dim};
  s.index_vector_dim = index.rank();
  return scatter(b, x, b.reshape(index, with_vector(index.dims())), updates, s, how);
}

Value hits(Builder& b, Value index, const Size& n) {
  Value flat = b.flatten(index);
  return put_rows(b, b.zeros({DType::kI32, {n}}), 0, flat,
                  b.constant_int(1, DType::kI32, flat.dims()), Merge::kAdd);
}

namespace {

// -- scatter ------------------------------------------------------------------------------------

// The operands of a scatter in at least one dimension, and the way back.
struct Along {
  Value self, index;
  int64_t dim;
  Dims result;

  explicit Along(Call& c) : self(c.tensor("self")), index(c.tensor("index")) {
    dim = c.wrap_dim(c.integer("dim"), self.rank());
    result = self.dims();
    if (self.rank() == 0) self = c.b.reshape(self, {1});
    if (index.rank() == 0) index = c.b.reshape(index, {1});
    if (is_empty(self.dims())) check_places(c);
  }
  bool empty() const { return is_empty(index.dims()) || is_empty(self.dims()); }
  void check_places(Call& c) const {
    check_index(c, index, self.dim(dim), false, out_of_bounds(dim, self.dim(dim)),
                ArgumentError::Kind::kValue);
  }
  Value places(Call& c) const {
    check_places(c);
    return positions(c.b, index, self.dim(dim), false);
  }
  Value source(Call& c) const {
    Value src = c.tensor("src", self.dtype());
    return src.rank() == 0 ? c.b.reshape(src, {1}) : src;
  }
  Value filled(Call& c) const {
    return c.b.broadcast_to(c.scalar("value", self.dtype()), index.dims());
  }
};

Values scatter_with(Call& c, const Along& a, Value updates, Merge how) {
  Builder& b = c.b;
  if (a.empty()) return {c.tensor("self")};
  return {b.reshape(scatter_along(b, a.self, a.dim, a.places(c), updates, how), a.result)};
}

Values lower_scatter_src(Call& c) {
  Along a(c);
  return a.empty() ? Values{c.tensor("self")} : scatter_with(c, a, a.source(c), Merge::kAssign);
}

Values lower_scatter_value(Call& c) {
  Along a(c);
  return scatter_with(c, a, a.filled(c), Merge::kAssign);
}

Values lower_scatter_add(Call& c) {
  Along a(c);
  return a.empty() ? Values{c.tensor("self")} : scatter_with(c, a, a.source(c), Merge::kAdd);
}

Merge reduction(const Call& c) {
  const std::string name = c.str("reduce");
  if (name == "add" || name == "sum" || name == "mean") return Merge::kAdd;
  if (name == "multiply" || name == "prod") return Merge::kMultiply;
  if (name == "amax") return Merge::kMaximum;
  c.check(name == "amin",
          "reduce argument must be either sum, prod, mean, amax or amin, got " + name);
  return Merge::kMinimum;
}

Values lower_scatter_reduce_src(Call& c) {
  Along a(c);
  return a.empty() ? Values{c.tensor("self")} : scatter_with(c, a, a.source(c), reduction(c));
}

Values lower_scatter_reduce_value(Call& c) {
  Along a(c);
  return scatter_with(c, a, a.filled(c), reduction(c));
}

Value identity(Builder& b, Merge how, DType dtype) {
  switch (how) {
    case Merge::kMultiply:
      return b.constant_int(1, dtype);
    case Merge::kMaximum:
      return b.lowest(dtype);
    case Merge::kMinimum:
      return b.highest(dtype);
    default:
      return b.zeros({dtype, {}});
  }
}

// Floor division for integers, as div_(rounding_mode="floor") does.
Value divide_by_count(Builder& b, Value sum, Value count) {
  const DType type = sum.dtype();
  Value divisor = b.convert(count, type);
  Value quotient = b.div(sum, divisor);
  if (!stablehlo::is_signed_int(type)) return quotient;
  Value zero = b.constant_int(0, type);
  Value inexact = b.ne(b.rem(sum, divisor), zero);
  Value down = b.logical_and(inexact, b.lt(sum, zero));
  return b.select(down, b.sub(quotient, b.constant_int(1, type)), quotient);
}

// A reduction into positions. `scatter` adds one update for each index; `ones` counts them the same way.
Value reduce_into(Call& c, Value self, const std::function<Value(Value, Merge)>& scatter,
                  const std::function<Value(Value)>& count_hits) {
  Builder& b = c.b;
  const Merge how = reduction(c);
  const bool include_self = c.boolean("include_self");
  const bool mean = c.str("reduce") == "mean";
  Value count;
  if (mean || !include_self) count = count_hits(b.zeros({DType::kI32, self.dims()}));
  Value base = self;
  if (!include_self) {
    Value untouched = b.eq(count, b.constant_int(0, DType::kI32));
    base = b.select(untouched, self, identity(b, how, self.dtype()));
  }
  Value result = scatter(base, how);
  if (!mean) return result;
  Value one = b.constant_int(1, DType::kI32);
  return divide_by_count(b, result, include_self ? b.add(count, one) : b.max(count, one));
}

Values lower_scatter_reduce(Call& c) {
  Builder& b = c.b;
  Along a(c);
  if (a.empty()) return {c.tensor("self")};
  Value places = a.places(c), src = a.source(c);
  Value result = reduce_into(
      c, a.self,
      [&](Value base, Merge how) { return scatter_along(b, base, a.dim, places, src, how); },
      [&](Value zeros) {
        Value ones = b.constant_int(1, DType::kI32, places.dims());
        return scatter_along(b, zeros, a.dim, places, ones, Merge::kAdd);
      });
  return {b.reshape(result, a.result)};
}

// -- index_add, index_copy, index_reduce, index_fill ------------------------------------------------

// Whole rows: the index as a vector, the source with that many rows.
struct Rows {
  Value self, index, source;
  int64_t dim;
  Dims result;

  // `outside` gives what PyTorch says of an index outside self's dimension.
  Rows(Call& c, std::string (*outside)(int64_t dim, const Size& n), ArgumentError::Kind kind)
      : self(c.tensor("self")) {
    Builder& b = c.b;
    dim = c.wrap_dim(c.integer("dim"), self.rank());
    result = self.dims();
    index = b.flatten(c.tensor("index"));
    source = c.tensor("source", self.dtype());
    if (self.rank() == 0) self = b.reshape(self, {1});
    const Size n = self.dim(dim);
    if (!is_empty(self.dims())) check_index(c, index, n, false, outside(dim, n), kind);
    index = positions(b, index, n, false);
    Dims rows = self.dims();
    rows[dim] = index.dim(0);
    source = b.reshape(source, rows);
  }
};

Values lower_index_add(Call& c) {
  Builder& b = c.b;
  const bool vector = c.tensor("self").rank() <= 1;  // PyTorch says it in two ways
  Rows r(c, vector ? [](int64_t, const Size& n) { return out_of_range_in_self(n); } : out_of_bounds,
         vector ? ArgumentError::Kind::kIndex : ArgumentError::Kind::kValue);
  Value updates = r.source;
  if (!c.is_one("alpha")) {
    Value alpha = c.scalar("alpha", r.self.dtype());
    updates = merge(b, Merge::kMultiply, updates, b.broadcast_to(alpha, updates.dims()));
  }
  return {b.reshape(put_rows(b, r.self, r.dim, r.index, updates, Merge::kAdd), r.result)};
}

Values lower_index_copy(Call& c) {
  Builder& b = c.b;
  Rows r(
      c, [](int64_t, const Size& n) { return "index_copy_(): " + out_of_bounds(0, n); },
      ArgumentError::Kind::kIndex);
  return {b.reshape(put_rows(b, r.self, r.dim, r.index, r.source, Merge::kAssign), r.result)};
}

Values lower_index_reduce(Call& c) {
  Builder& b = c.b;
  Rows r(
      c, [](int64_t, const Size& n) { return out_of_range_in_self(n); },
      ArgumentError::Kind::kIndex);
  if (is_empty(r.self.dims()) || is_empty(r.source.dims())) return {c.tensor("self")};
  Value result = reduce_into(
      c, r.self,
      [&](Value base, Merge how) { return put_rows(b, base, r.dim, r.index, r.source, how); },
      [&](Value zeros) {
        Value ones = b.constant_int(1, DType::kI32, r.source.dims());
        return put_rows(b, zeros, r.dim, r.index, ones, Merge::kAdd);
      });
  return {b.reshape(result, r.result)};
}

Values index_fill(Call& c, Value value) {
  Builder& b = c.b;
  Value self = c.tensor("self"), index = c.tensor("index");
  const int64_t dim = c.wrap_dim(c.integer("dim"), self.rank());
  c.check(index.dtype() == DType::kI64, "index_fill_(): Expected dtype int64 for index.",
          ArgumentError::Kind::kIndex);
  c.check(index.rank() <= 1, "Index has to be a vector/scalar");
  const Size n = self.rank() == 0 ? Size(1) : self.dim(dim);
  check_index(c, index, n, true, out_of_bounds(dim, n));
  index = positions(b, b.flatten(index), n, true);
  Value chosen = put_rows(b, b.constant_bool(false, {n}), 0, index,
                          b.constant_bool(true, index.dims()), Merge::kAssign);
  chosen = self.rank() == 0 ? b.reshape(chosen, {}) : along_axis(b, chosen, self.rank(), dim);
  return {b.select(b.broadcast_to(chosen, self.dims()), value, self)};
}

Values lower_index_fill_scalar(Call& c) {
  return index_fill(c, c.scalar("value", c.tensor("self").dtype()));
}

Values lower_index_fill_tensor(Call& c) {
  Value value = c.tensor("value", c.tensor("self").dtype());
  c.check(value.rank() == 0,
          "index_fill_ only supports a 0-dimensional value tensor, but got tensor with " +
              std::to_string(value.rank()) + " dimension(s).");
  return index_fill(c, value);
}

// -- index_put and put --------------------------------------------------------------------------

[[noreturn]] void fail_value_shape(const Value& values, const std::string& result) {
  throw ArgumentError(ArgumentError::Kind::kValue,
                      "shape mismatch: value tensor of shape " + sizes_text(values.dims()) +
                          " cannot be broadcast to indexing result of shape " + result);
}

// A mask as the only index, over self's dimensions from `at` on: a select. The n-th true element takes the n-th row of
// values, so nothing here needs to know how many there are.
Value put_masked(Call& c, Value self, Value mask, int64_t at, Value values, bool accumulate) {
  Builder& b = c.b;
  mask = b.convert(mask, DType::kPred);
  const int64_t span = mask.rank(), tail = self.rank() - at - span;
  const bool fits =
      tail >= 0 && std::equal(mask.dims().begin(), mask.dims().end(), self.dims().begin() + at);
  c.check(fits,
          "The shape of the mask " + sizes_text(mask.dims()) + " at index " + std::to_string(at) +
              " does not match the shape of the indexed tensor " + sizes_text(self.dims()) +
              " at index " + std::to_string(at),
          ArgumentError::Kind::kIndex);
  const int64_t row = values.rank() - 1 - tail;  // values' dimension that counts true elements
  if (row >= 0) {
    const bool single = values.dim(row) == Size(1);
    if (!single) {
      values =
          take_rows(b, values, row, positions(b, places_of_true(b, mask), values.dim(row), false));
    } else {
      Dims spread = values.dims();
      spread.erase(spread.begin() + row);
      spread.insert(spread.begin() + row, span, Size(1));
      values = b.reshape(values, spread);
    }
  }
  if (!expandable(values.dims(), self.dims())) {
    Dims selected = self.dims();
    selected.erase(selected.begin() + at, selected.begin() + at + span);
    std::string text = sizes_text(selected);
    fail_value_shape(c.tensor("values"), text.insert(1, selected.empty() ? "?" : "?, "));
  }
  Dims aligned(at, Size(1));
  aligned.insert(aligned.end(), mask.dims().begin(), mask.dims().end());
  aligned.insert(aligned.end(), tail, Size(1));
  mask = b.broadcast_to(b.reshape(mask, aligned), self.dims());
  values = b.broadcast_to(values, self.dims());
  return b.select(mask, accumulate ? merge(b, Merge::kAdd, self, values) : values, self);
}

Values lower_index_put(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self"), values = c.tensor("values");
  const Values indices = c.tensors("indices");
  const Merge how = c.boolean("accumulate") ? Merge::kAdd : Merge::kAssign;
  c.check(self.dtype() == values.dtype(),
          std::string("Index put requires the source and destination dtypes match, got ") +
              scalar_type_name(self.dtype()) + " for the destination and " +
              scalar_type_name(values.dtype()) + " for the source.");
  c.check(static_cast<int64_t>(indices.size()) <= self.rank(),
          "too many indices for tensor of dimension " + std::to_string(self.rank()) + " (got " +
              std::to_string(indices.size()) + ")",
          ArgumentError::Kind::kIndex);
  const int64_t given = std::count_if(indices.begin(), indices.end(),
                                      [](const Value& v) { return static_cast<bool>(v); });
  const auto only = std::find_if(indices.begin(), indices.end(),
                                 [](const Value& v) { return static_cast<bool>(v); });
  if (given == 1 && (only->dtype() == DType::kPred || only->dtype() == DType::kU8)) {
    return {put_masked(c, self, *only, only - indices.begin(), values, how == Merge::kAdd)};
  }
  IndexPlan plan = plan_index(c, self, indices);
  if (!expandable(values.dims(), plan.result)) fail_value_shape(values, sizes_text(plan.result));
  if (is_empty(plan.result)) return {self};
  values = b.broadcast_to(values, plan.result);
  if (plan.dims.empty()) return {merge(b, how, self, values)};
  for (int64_t d : plan.dims) {
    c.check(self.dim(d) != Size(0), "index is out of bounds for dimension with size 0",
            ArgumentError::Kind::kIndex);
  }
  ScatterDims s;
  s.update_window_dims = plan.window;
  s.inserted_window_dims = plan.dims;
  s.scatter_dims_to_operand_dims = plan.dims;
  s.index_vector_dim = static_cast<int64_t>(plan.shape.size());
  return {scatter(b, self, plan.vector, values, s, how)};
}

Values lower_put(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self"), index = c.tensor("index"), source = c.tensor("source");
  c.check(index.dtype() == DType::kI64,
          std::string("put_(): Expected a long tensor for index, but got ") +
              scalar_type_name(index.dtype()));
  c.check(self.dtype() == source.dtype(),
          std::string("put_(): self and source expected to have the same dtype, but got "
                      "self.dtype = ") +
              scalar_type_name(self.dtype()) +
              " and source.dtype = " + scalar_type_name(source.dtype()));
  c.check(index.numel() == source.numel(),
          "put_(): Expected source and index to have the same number of elements, but got "
          "source.numel() = " +
              source.numel().str() + ", index.numel() = " + index.numel().str(),
          ArgumentError::Kind::kIndex);
  if (is_empty(index.dims())) return {self};
  c.check(!is_empty(self.dims()), "put_(): Tried to put elements into an empty tensor",
          ArgumentError::Kind::kIndex);
  check_index(c, index, self.numel(), true, out_of_elements(self));
  Value places = positions(b, b.flatten(index), self.numel(), true);
  const Merge how = c.boolean("accumulate") ? Merge::kAdd : Merge::kAssign;
  Value flat = put_rows(b, b.flatten(self), 0, places, b.flatten(source), how);
  return {b.reshape(flat, self.dims())};
}

// -- Masks --------------------------------------------------------------------------------------

Values lower_masked_scatter(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self"), mask = c.tensor("mask"), source = c.tensor("source");
  c.check(self.dtype() == source.dtype(),
          std::string("masked_scatter: expected self and source to have same dtypes but got") +
              scalar_type_name(self.dtype()) + " and " + scalar_type_name(source.dtype()));
  c.check(mask.dtype() == DType::kPred,
          std::string("masked_scatter_ only supports boolean masks, but got mask with dtype ") +
              scalar_type_name(mask.dtype()));
  Dims result;
  c.check(broadcast_shapes(mask.dims(), self.dims(), &result),
          "The size of tensor a " + sizes_text(mask.dims()) + " must match the size of tensor b " +
              sizes_text(self.dims()) + " at every non-singleton dimension");
  self = b.broadcast_to(self, result);
  mask = b.broadcast_to(mask, result);
  if (is_empty(result)) return {self};
  const Value order = places_of_true(b, mask);
  if (c.checks_values()) {
    c.check_values(b.lt(order, b.size(source.numel(), order.dtype())), {},
                   "Number of elements of source < number of ones in mask");
  }
  Value places = positions(b, order, source.numel(), false);
  return {b.select(mask, take_rows(b, b.flatten(source), 0, places), self)};
}

Values lower_masked_scatter_backward(Call& c) {
  Builder& b = c.b;
  Value grad = c.tensor("grad_output"), mask = c.tensor("mask", DType::kPred);
  const std::vector<int64_t> sizes = c.ints("sizes");
  const Dims result(sizes.begin(), sizes.end());
  const Size n = product(result);
  check_broadcast(c, grad.dims(), mask.dims());
  c.check(mask.rank() <= grad.rank(),
          "masked_scatter_backward: the mask has more dimensions than the gradient");
  mask = b.broadcast_to(mask, grad.dims());
  if (is_empty(grad.dims()) || n == Size(0)) return {b.zeros({grad.dtype(), result})};
  Value places = positions(b, b.flatten(places_of_true(b, mask)), n, false);
  Value flat =
      put_rows(b, b.zeros({grad.dtype(), {n}}), 0, places, b.flatten(grad), Merge::kAssign);
  return {b.reshape(flat, result)};
}

// -- Embeddings ---------------------------------------------------------------------------------

Values lower_embedding_dense_backward(Call& c) {
  Builder& b = c.b;
  Value grad = c.tensor("grad_output"), indices = c.tensor("indices");
  const int64_t rows = c.integer("num_weights"), padding = c.integer("padding_idx");
  c.check(grad.rank() > 0, "Dimension specified as -1 but tensor has no dimensions",
          ArgumentError::Kind::kIndex);
  c.check(indices.dtype() == DType::kI64 || indices.dtype() == DType::kI32,
          std::string("Expected tensor for argument #2 'indices' to have one of the following "
                      "scalar types: Long, Int; but got tpu") +
              scalar_type_name(indices.dtype()) +
              "Tensor instead (while checking arguments for embedding_backward)");
  const Size width = grad.dim(-1);
  Value places = positions(b, indices, rows, false);
  if (padding >= 0) {
    Value skipped = b.eq(places, b.constant_int(padding, places.dtype()));
    places = b.select(skipped, b.constant_int(-1, places.dtype()), places);
  }
  const DType type = stablehlo::opmath(grad.dtype());
  Value updates = b.convert(grad, type);
  if (c.boolean("scale_grad_by_freq") && !is_empty(indices.dims())) {
    Value each = take_rows(b, hits(b, places, rows), 0, places);
    each = b.convert(b.max(each, b.constant_int(1, DType::kI32)), type);
    updates = b.div(updates, b.reshape(each, with_vector(each.dims())));
  }
  Value sum = put_rows(b, b.zeros({type, {Size(rows), width}}), 0, places, updates, Merge::kAdd);
  return {b.convert(sum, grad.dtype())};
}

// Rows that are looked up and longer than max_norm are scaled down to it.
Values lower_embedding_renorm(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self"), indices = c.tensor("indices");
  c.check(self.rank() == 2, "Expected 2-dimensional tensor, but got " +
                                std::to_string(self.rank()) +
                                "-dimensional tensor for argument #1 'self' (while checking "
                                "arguments for embedding_renorm_)");
  if (is_empty(self.dims()) || is_empty(indices.dims())) return {self};
  const double p = c.number("norm_type");
  Value x = wide(b, self);
  Value size = b.abs(x), norm;
  if (std::isinf(p)) {
    norm = b.reduce(Monoid::kMaximum, size, {1}, true);
  } else if (p == 2) {
    norm = b.sqrt(b.reduce(Monoid::kAdd, b.mul(x, x), {1}, true));
  } else if (p == 1) {
    norm = b.reduce(Monoid::kAdd, size, {1}, true);
  } else {
    norm = b.pow(b.reduce(Monoid::kAdd, b.pow(size, b.like(x, p)), {1}, true), b.like(x, 1 / p));
  }
  check_index(c, indices, self.dim(0), false, out_of_range_in_self(self.dim(0)));
  Value limit = c.scalar("max_norm", x.dtype());
  Value used = hits(b, positions(b, indices, self.dim(0), false), self.dim(0));
  used = along_axis(b, b.gt(used, b.constant_int(0, DType::kI32)), 2, 0);
  Value scaled = b.mul(x, b.div(limit, b.add(norm, b.like(x, 1e-7))));
  Value chosen = b.broadcast_to(b.logical_and(used, b.gt(norm, limit)), x.dims());
  return {b.select(chosen, b.convert(scaled, self.dtype()), self)};
}

}  // namespace

const OpRow kScatterRows[] = {
    {"scatter.src", lower_scatter_src, "", Infer::kComposite, Tolerance::kExact},
    {"scatter.value", lower_scatter_value, "", Infer::kComposite, Tolerance::kExact},
    {"scatter.reduce", lower_scatter_reduce_src, "", Infer::kComposite, Tolerance::kReduction},
    {"scatter.value_reduce", lower_scatter_reduce_value, "", Infer::kComposite,
     Tolerance::kReduction},
    {"scatter_add", lower_scatter_add, "", Infer::kComposite, Tolerance::kReduction},
    {"scatter_reduce.two", lower_scatter_reduce, "", Infer::kComposite, Tolerance::kReduction},
    {"index_add", lower_index_add, "alpha=1", Infer::kComposite, Tolerance::kReduction},
    {"index_copy", lower_index_copy, "", Infer::kComposite, Tolerance::kExact},
    {"index_reduce", lower_index_reduce, "", Infer::kComposite, Tolerance::kReduction},
    {"index_fill.int_Scalar", lower_index_fill_scalar, "", Infer::kLowering, Tolerance::kExact},
    {"index_fill.int_Tensor", lower_index_fill_tensor, "", Infer::kLowering, Tolerance::kExact},
    {"index_put", lower_index_put, "", Infer::kLikeFirst, Tolerance::kReduction},
    {"_index_put_impl", lower_index_put, "", Infer::kLowering, Tolerance::kReduction},
    {"_unsafe_index_put", lower_index_put, "", Infer::kLikeFirst, Tolerance::kReduction},
    {"put", lower_put, "", Infer::kLowering, Tolerance::kReduction},
    {"masked_scatter", lower_masked_scatter, "", Infer::kLowering, Tolerance::kExact},
    {"masked_scatter_backward", lower_masked_scatter_backward, "", Infer::kLowering,
     Tolerance::kExact},
    {"embedding_dense_backward", lower_embedding_dense_backward, "", Infer::kLowering,
     Tolerance::kReduction},
    {"embedding_renorm", lower_embedding_renorm, "norm_type", Infer::kLowering,
     Tolerance::kReduction},
};
const size_t kScatterRowCount = std::size(kScatterRows);

}  // namespace torch_tpu::lowering
