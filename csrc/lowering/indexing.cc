// Reads at computed positions: index, index_select, gather, take, embedding; and positions computed by search.
#include "lowering/indexing.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "lowering/axes.h"
#include "lowering/families.h"
#include "lowering/scan.h"
#include "lowering/sort.h"

namespace torch_tpu::lowering {

using stablehlo::GatherDims;
using stablehlo::Monoid;
using stablehlo::ScatterDims;

// -- Positions ----------------------------------------------------------------------------------

namespace {

// Boundaries up to this many are compared with every value; more are searched.
constexpr int64_t kDenseSearch = 32;

bool is_zero(const Size& s) { return s.is_static() && s.bound() == 0; }

bool any_zero(const Dims& dims) { return std::any_of(dims.begin(), dims.end(), is_zero); }

Dims with_vector(Dims dims, int64_t n) {
  dims.push_back(n);
  return dims;
}

}  // namespace

Value positions(Builder& b, Value index, const Size& n, bool wrap) {
  const bool narrow = n.bound() < std::numeric_limits<int32_t>::max() - 1;
  const DType type = narrow ? DType::kI32 : DType::kI64;
  if (narrow && index.dtype() == DType::kI64) {
    Value size = b.size(n, DType::kI64);
    Value below = b.constant_int(-1, DType::kI64);
    if (wrap) below = b.sub(below, size);
    index = b.clamp(below, index, size);
  }
  index = b.convert(index, type);
  if (!wrap) return index;
  return b.select(b.lt(index, b.constant_int(0, type)), b.add(index, b.size(n, type)), index);
}

void check_index(Call& c, Value index, const Size& n, bool wrap, const std::string& message,
                 ArgumentError::Kind kind) {
  if (is_zero(n) && !any_zero(index.dims())) {  // whatever the values are
    std::string text = message;
    if (const size_t place = text.find(" {}"); place != std::string::npos) text.erase(place, 3);
    c.check(false, text, kind);
  }
  if (!c.checks_values()) return;
  Builder& b = c.b;
  index = b.convert(index, DType::kI64);
  const Value size = b.size(n, DType::kI64);
  const Value least = wrap ? b.neg(size) : b.constant_int(0, DType::kI64);
  c.check_values(b.logical_and(b.ge(index, least), b.lt(index, size)), index, message, kind);
}

std::string out_of_bounds(int64_t dim, const Size& n) {
  return "index {} is out of bounds for dimension " + std::to_string(dim) + " with size " + n.str();
}

std::string out_of_range_in_self(const Size& n) {
  return "index out of range in self\n  index {} in a dimension of size " + n.str();
}

std::string out_of_elements(const Value& self) {
  return "out of range: tried to access index {} on a tensor of " + self.numel().str() +
         " elements.";
}

Value in_range(Builder& b, Value position, const Size& n) {
  const DType type = position.dtype();
  return b.logical_and(b.ge(position, b.constant_int(0, type)), b.lt(position, b.size(n, type)));
}

Value unreadable(Builder& b, DType dtype, const Dims& dims) {
  const bool nan = stablehlo::is_float(dtype) || stablehlo::is_complex(dtype);
  return nan ? b.constant(std::numeric_limits<double>::quiet_NaN(), dtype, dims)
             : b.zeros({dtype, dims});
}

Value take_rows(Builder& b, Value x, int64_t dim, Value index) {
  const int64_t spread = index.rank();
  Dims result(x.dims().begin(), x.dims().begin() + dim);
  result.insert(result.end(), index.dims().begin(), index.dims().end());
  result.insert(result.end(), x.dims().begin() + dim + 1, x.dims().end());
  if (any_zero(result)) return b.zeros({x.dtype(), result});
  if (is_zero(x.dim(dim))) return unreadable(b, x.dtype(), result);

  GatherDims g;
  std::vector<int64_t> index_dims;
  for (int64_t i = 0; i < static_cast<int64_t>(result.size()); ++i) {
    (i >= dim && i < dim + spread ? index_dims : g.offset_dims).push_back(i);
  }
  g.collapsed_slice_dims = {dim};
  g.start_index_map = {dim};
  g.index_vector_dim = spread;
  for (int64_t i = 0; i < x.rank(); ++i) g.slice_sizes.push_back(i == dim ? 1 : x.dim(i).fixed());
  Value read = b.gather(x, b.reshape(index, with_vector(index.dims(), 1)), g);
  Value valid = b.broadcast_in_dim(in_range(b, index, x.dim(dim)), result, index_dims);
  return b.select(valid, read, unreadable(b, x.dtype()));
}

Value gather_along(Builder& b, Value x, int64_t dim, Value index) {
  if (any_zero(index.dims())) return b.zeros({x.dtype(), index.dims()});
  if (is_zero(x.dim(dim))) return unreadable(b, x.dtype(), index.dims());
  const Size n = x.dim(dim);
  GatherDims g;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i == dim) continue;
    if (x.dim(i) != index.dim(i)) x = b.slice_dim(x, i, 0, index.dim(i).fixed());
    g.operand_batching_dims.push_back(i);
    g.start_indices_batching_dims.push_back(i);
  }
  g.collapsed_slice_dims = {dim};
  g.start_index_map = {dim};
  g.index_vector_dim = index.rank();
  g.slice_sizes.assign(x.rank(), 1);
  Value read = b.gather(x, b.reshape(index, with_vector(index.dims(), 1)), g);
  return b.select(in_range(b, index, n), read, unreadable(b, x.dtype()));
}

bool broadcast_shapes(const Dims& x, const Dims& y, Dims* result) {
  const Dims& longer = x.size() >= y.size() ? x : y;
  const Dims& shorter = x.size() >= y.size() ? y : x;
  const size_t extra = longer.size() - shorter.size();
  *result = longer;
  for (size_t i = 0; i < shorter.size(); ++i) {
    Size& d = (*result)[extra + i];
    if (d == Size(1)) {
      d = shorter[i];
    } else if (shorter[i] != Size(1) && shorter[i] != d) {
      return false;
    }
  }
  return true;
}

bool expandable(const Dims& from, const Dims& to) {
  Dims joint;
  return from.size() <= to.size() && broadcast_shapes(from, to, &joint) && joint == to;
}

// -- Advanced indexing --------------------------------------------------------------------------

IndexPlan plan_index(Call& c, const Value& self, const Values& indices) {
  Builder& b = c.b;
  constexpr auto kIndex = ArgumentError::Kind::kIndex;
  c.check(static_cast<int64_t>(indices.size()) <= self.rank(),
          "too many indices for tensor of dimension " + std::to_string(self.rank()) + " (got " +
              std::to_string(indices.size()) + ")",
          kIndex);
  IndexPlan plan;
  std::string shapes;
  bool broadcasts = true;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    const DType type = indices[i].dtype();
    c.check(type == DType::kI64 || type == DType::kI32,
            type == DType::kPred || type == DType::kU8
                ? c.op() +
                      ": a mask beside other indices has a data-dependent size; index with "
                      "mask.nonzero() instead"
                : "tensors used as indices must be long, int, byte or bool tensors",
            kIndex);
    plan.dims.push_back(static_cast<int64_t>(i));
    shapes += (shapes.empty() ? "" : ", ") + sizes_text(indices[i].dims());
    Dims joint;
    broadcasts = broadcasts && broadcast_shapes(plan.shape, indices[i].dims(), &joint);
    if (broadcasts) plan.shape = joint;
  }
  c.check(broadcasts,
          "shape mismatch: indexing tensors could not be broadcast together with shapes " + shapes,
          kIndex);

  // Adjacent index tensors keep their place; with a gap between them their shape comes first.
  const bool adjacent = !plan.dims.empty() && plan.dims.back() - plan.dims.front() + 1 ==
                                                  static_cast<int64_t>(plan.dims.size());
  const int64_t first = adjacent ? plan.dims.front() : 0;
  auto insert_shape = [&] {
    for (const Size& d : plan.shape) {
      plan.spread.push_back(static_cast<int64_t>(plan.result.size()));
      plan.result.push_back(d);
    }
  };
  int64_t kept = 0;
  for (int64_t i = 0; i < self.rank(); ++i) {
    if (i < static_cast<int64_t>(indices.size()) && indices[i]) continue;
    if (kept++ == first) insert_shape();
    plan.window.push_back(static_cast<int64_t>(plan.result.size()));
    plan.result.push_back(self.dim(i));
  }
  if (kept <= first) insert_shape();

  Values columns;
  bool wide_columns = false;
  for (int64_t d : plan.dims) {
    check_index(c, indices[d], self.dim(d), true, out_of_bounds(d, self.dim(d)));
    Value column = b.broadcast_to(positions(b, indices[d], self.dim(d), true), plan.shape);
    Value valid = in_range(b, column, self.dim(d));
    plan.valid = plan.valid ? b.logical_and(plan.valid, valid) : valid;
    wide_columns = wide_columns || column.dtype() == DType::kI64;
    columns.push_back(b.reshape(column, with_vector(plan.shape, 1)));
  }
  for (Value& column : columns) {
    column = b.convert(column, wide_columns ? DType::kI64 : DType::kI32);
  }
  if (columns.size() == 1) plan.vector = columns[0];
  if (columns.size() > 1) {
    plan.vector = b.concatenate(columns, static_cast<int64_t>(plan.shape.size()));
  }
  return plan;
}

namespace {

Values lower_index(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  IndexPlan plan = plan_index(c, self, c.tensors("indices"));
  if (plan.dims.empty()) return {self};
  if (any_zero(plan.result)) return {b.zeros({self.dtype(), plan.result})};
  GatherDims g;
  g.offset_dims = plan.window;
  g.collapsed_slice_dims = plan.dims;
  g.start_index_map = plan.dims;
  g.index_vector_dim = static_cast<int64_t>(plan.shape.size());
  for (int64_t i = 0; i < self.rank(); ++i) {
    const bool indexed = std::find(plan.dims.begin(), plan.dims.end(), i) != plan.dims.end();
    c.check(!indexed || !is_zero(self.dim(i)), "index is out of bounds for dimension with size 0",
            ArgumentError::Kind::kIndex);
    g.slice_sizes.push_back(indexed ? 1 : self.dim(i).fixed());
  }
  Value read = b.gather(self, plan.vector, g);
  Value valid = b.broadcast_in_dim(plan.valid, plan.result, plan.spread);
  return {b.select(valid, read, unreadable(b, self.dtype()))};
}

void check_index_dtype(const Call& c, const Value& index) {
  c.check(index.dtype() == DType::kI64 || index.dtype() == DType::kI32,
          "index_select(): Expected dtype int32 or int64 for index");
}

void check_rows(const Call& c, const Size& n, const Value& index) {
  c.check(!is_zero(n) || any_zero(index.dims()),
          "index_select(): self indexing axis dim should be positive");
}

Values lower_index_select(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self"), index = c.tensor("index");
  const int64_t dim = c.wrap_dim(c.integer("dim"), self.rank());
  c.check(index.rank() <= 1, "index_select(): Index is supposed to be a vector",
          ArgumentError::Kind::kIndex);
  check_index_dtype(c, index);
  if (self.rank() == 0) {
    c.check(index.numel() == Size(1),
            "index_select(): Index to scalar can have only 1 value, got " + index.numel().str() +
                " value(s)");
    check_index(c, index, 1, false, out_of_range_in_self(1));
    Value valid = in_range(b, positions(b, b.reshape(index, {}), 1, false), 1);
    return {b.select(valid, self, unreadable(b, self.dtype()))};
  }
  index = b.flatten(index);
  check_rows(c, self.dim(dim), index);
  check_index(c, index, self.dim(dim), false, out_of_range_in_self(self.dim(dim)));
  return {take_rows(b, self, dim, positions(b, index, self.dim(dim), false))};
}

Values lower_gather(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self"), index = c.tensor("index");
  const int64_t dim = c.wrap_dim(c.integer("dim"), self.rank());
  const Dims result = index.dims();
  if (self.rank() == 0) self = b.reshape(self, {1});
  if (index.rank() == 0) index = b.reshape(index, {1});
  if (any_zero(result)) return {b.zeros({self.dtype(), result})};
  check_index(c, index, self.dim(dim), false, out_of_bounds(dim, self.dim(dim)),
              ArgumentError::Kind::kValue);
  Value read = gather_along(b, self, dim, positions(b, index, self.dim(dim), false));
  return {b.reshape(read, result)};
}

Values lower_take(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self"), index = c.tensor("index");
  c.check(index.dtype() == DType::kI64,
          std::string("take(): Expected a long tensor for index, but got ") +
              scalar_type_name(index.dtype()));
  c.check(!any_zero(self.dims()) || any_zero(index.dims()),
          "take(): tried to take from an empty tensor", ArgumentError::Kind::kIndex);
  check_index(c, index, self.numel(), true, out_of_elements(self));
  return {take_rows(b, b.flatten(self), 0, positions(b, index, self.numel(), true))};
}

Values lower_embedding(Call& c) {
  Builder& b = c.b;
  Value weight = c.tensor("weight"), indices = c.tensor("indices");
  c.check(weight.rank() == 2, "'weight' must be 2-D");
  c.check(indices.dtype() == DType::kI64 || indices.dtype() == DType::kI32,
          std::string("Expected tensor for argument #1 'indices' to have one of the following "
                      "scalar types: Long, Int; but got tpu") +
              scalar_type_name(indices.dtype()) +
              "Tensor instead (while checking arguments for embedding)");
  check_rows(c, weight.dim(0), indices);
  check_index(c, indices, weight.dim(0), false, out_of_range_in_self(weight.dim(0)));
  return {take_rows(b, weight, 0, positions(b, indices, weight.dim(0), false))};
}

// -- The gradient of unfold -----------------------------------------------------------------------

Values lower_unfold_backward(Call& c) {
  Builder& b = c.b;
  Value grad = c.tensor("grad_in");
  const std::vector<int64_t> sizes = c.ints("input_sizes");
  const int64_t rank = static_cast<int64_t>(sizes.size());
  const int64_t dim = c.wrap_dim(c.integer("dim"), rank);
  const int64_t size = c.integer("size"), step = c.integer("step");
  const Type result{grad.dtype(), Dims(sizes.begin(), sizes.end())};
  if (rank == 0) return {b.reshape(grad, {})};
  if (any_zero(grad.dims()) || any_zero(result.dims)) return {b.zeros(result)};

  // Window w's element i came from w * step + i.
  const Dims window{grad.dim(dim), size};
  Value at = b.add(b.mul(b.iota(DType::kI32, window, 0), b.constant_int(step, DType::kI32)),
                   b.iota(DType::kI32, window, 1));
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rank; ++i) {
    order.push_back(i);
    if (i == dim) order.push_back(rank);
  }
  Value sum = put_rows(b, b.zeros({stablehlo::opmath(grad.dtype()), result.dims}), dim, at,
                       wide(b, b.transpose(grad, order)), Merge::kAdd);
  return {b.convert(sum, grad.dtype())};
}

// -- Positions of nonzero elements ----------------------------------------------------------------

Values lower_nonzero_static(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  const int64_t size = c.integer("size");
  c.check(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  const Type result{DType::kI64, {size, self.rank()}};
  if (any_zero(result.dims)) return {b.zeros(result)};
  const Value fill = c.scalar("fill_value", DType::kI64);
  if (any_zero(self.dims())) return {b.broadcast_to(fill, result.dims)};

  Value place = b.flatten(places_of_true(b, b.convert(self, DType::kPred)));
  Value number = b.iota(place.dtype(), place.dims(), 0);
  Value none = b.broadcast_to(b.constant_int(-1, place.dtype()), {size});
  Value flat = put_rows(b, none, 0, place, number, Merge::kAssign);
  Value found = b.ge(flat, b.constant_int(0, flat.dtype()));
  Values columns;
  Size stride = 1;
  for (int64_t i = self.rank() - 1; i >= 0; --i) {
    Value coordinate = b.div(flat, b.size(stride, flat.dtype()));
    if (i > 0) coordinate = b.rem(coordinate, b.size(self.dim(i), flat.dtype()));
    Value column = b.select(found, b.convert(coordinate, DType::kI64), fill);
    columns.insert(columns.begin(), b.reshape(column, {size, 1}));
    stride = stride * self.dim(i);
  }
  return {columns.size() == 1 ? columns[0] : b.concatenate(columns, 1)};
}

// -- Search ---------------------------------------------------------------------------------------

// Whether an edge comes before a value; true for a first part of the edges, false for the rest.
using Before = std::function<Value(Value edge, Value value)>;

// searchsorted's: edges less than the value, with `right` also those equal to it. A NaN value comes after all.
Before before_place(Builder& b, bool right) {
  return [&b, right](Value edge, Value value) {
    return b.logical_not(right ? b.gt(edge, value) : b.ge(edge, value));
  };
}

// How many of `edges` come before each value: edges sorted along the last dimension, one row for all values or one for
// each row of values.
Value search(Builder& b, Value edges, Value values, const Before& before) {
  const DType type = DType::kI32;
  const Size n = edges.dim(-1);
  const bool shared = edges.rank() == 1;
  if (is_zero(n) || any_zero(values.dims())) return b.zeros({type, values.dims()});
  if (n.bound() <= kDenseSearch) {
    const Dims pairs = with_vector(values.dims(), 1);
    Value value = b.reshape(values, pairs);
    if (!shared) {
      Dims row = edges.dims();
      row.insert(row.end() - 1, Size(1));
      edges = b.reshape(edges, row);
    }
    return b.reduce(Monoid::kAdd, b.convert(before(edges, value), type), {value.rank() - 1});
  }
  Value low = b.zeros({type, values.dims()});
  Value high = b.broadcast_to(b.size(n, type), values.dims());
  for (int64_t span = n.bound(); span > 0; span /= 2) {
    Value middle = b.add(low, b.div(b.sub(high, low), b.constant_int(2, type)));
    Value at = b.min(middle, b.sub(b.size(n, type), b.constant_int(1, type)));
    const int64_t last = edges.rank() - 1;
    Value edge = shared ? take_rows(b, edges, 0, at) : gather_along(b, edges, last, at);
    Value open = b.lt(low, high);
    Value go_on = before(edge, values);
    low = b.select(b.logical_and(open, go_on), b.add(middle, b.constant_int(1, type)), low);
    high = b.select(b.logical_and(open, b.logical_not(go_on)), middle, high);
  }
  return low;
}

Value comparable(Builder& b, Value x) {
  return x.dtype() == DType::kPred ? b.convert(x, DType::kU8) : x;
}

Values place_in(Call& c, Value edges, Value values, bool right) {
  Builder& b = c.b;
  Value place = search(b, comparable(b, edges), comparable(b, values), before_place(b, right));
  return {b.convert(place, c.boolean("out_int32") ? DType::kI32 : DType::kI64)};
}

Values bucketize(Call& c, Value values) {
  Value edges = c.tensor("boundaries", c.promoted());
  c.check(edges.rank() == 1, "boundaries tensor must be 1 dimension, but got dim(" +
                                 std::to_string(edges.rank()) + ")");
  return place_in(c, edges, values, c.boolean("right"));
}

Values lower_bucketize_tensor(Call& c) { return bucketize(c, c.tensor("self", c.promoted())); }
Values lower_bucketize_scalar(Call& c) { return bucketize(c, c.scalar("self", c.promoted())); }

Values searchsorted(Call& c, Value values) {
  const std::string where = "torch.searchsorted(): ";
  Value edges = c.tensor("sorted_sequence", c.promoted());
  const std::string side = c.str("side");
  bool right = c.boolean("right");
  if (!side.empty()) {
    c.check(side == "left" || side == "right",
            where + "side can only be 'left' or 'right' but got " + side);
    c.check(!right || side == "right",
            where + "side and right can't be set to opposites, got side of " + side +
                " while right was True");
    right = side == "right";
  }
  const bool one_row = edges.rank() == 1;
  c.check(values.rank() > 0 || one_row,
          where +
              "input value can be a scalar only when boundaries tensor dimension is 1, but we "
              "got boundaries tensor dim(" +
              std::to_string(edges.rank()) + ") and input value's dim(0) numel(1)");
  c.check(edges.rank() != 0,
          where + "boundaries tensor should have positive dimension, but got 0 dimension");
  const bool rows_match =
      edges.rank() == values.rank() &&
      std::equal(edges.dims().begin(), edges.dims().end() - 1, values.dims().begin());
  c.check(one_row || rows_match,
          where +
              "boundaries tensor should be 1 dimension or the first N-1 dimensions of "
              "boundaries tensor and input value tensor must match, but we got boundaries "
              "tensor " +
              sizes_text(edges.dims()) + " and input value tensor " + sizes_text(values.dims()));
  if (auto sorter = c.optional_tensor("sorter")) {
    c.check(sorter->dims() == edges.dims(),
            where + "boundary and sorter must have the same size, but got boundary tensor " +
                sizes_text(edges.dims()) + "and got sorter tensor " + sizes_text(sorter->dims()));
    c.check(sorter->dtype() == DType::kI64,
            where + "sorter must be a tensor of long dtype but got dtype " +
                scalar_type_name(sorter->dtype()));
    Value order = positions(c.b, *sorter, edges.dim(-1), false);
    edges = gather_along(c.b, edges, edges.rank() - 1, order);
  }
  return place_in(c, edges, values, right);
}

Values lower_searchsorted_tensor(Call& c) {
  return searchsorted(c, c.tensor("self", c.promoted()));
}
Values lower_searchsorted_scalar(Call& c) {
  return searchsorted(c, c.scalar("self", c.promoted()));
}

// -- Membership and histograms ----------------------------------------------------------------------

Value is_member(Builder& b, Value elements, Value tests) {
  const Size n = tests.numel();
  if (is_zero(n)) return b.constant_bool(false, elements.dims());
  elements = comparable(b, elements);
  tests = comparable(b, tests);
  if (n.bound() <= kDenseSearch || stablehlo::is_complex(elements.dtype())) {
    Value element = b.reshape(elements, with_vector(elements.dims(), 1));
    return b.reduce(Monoid::kOr, b.eq(element, b.flatten(tests)), {element.rank() - 1});
  }
  Value sorted = sort_by(b, {b.flatten(tests)}, 0, false)[0];
  Value place =
      search(b, sorted, elements, [&](Value edge, Value value) { return b.lt(edge, value); });
  Value last = b.sub(b.size(n, place.dtype()), b.constant_int(1, place.dtype()));
  return b.eq(take_rows(b, sorted, 0, b.min(place, last)), elements);
}

Values isin(Call& c, Value elements, Value tests) {
  Value member = is_member(c.b, elements, tests);
  return {c.boolean("invert") ? c.b.logical_not(member) : member};
}

Values lower_isin_tensors(Call& c) {
  return isin(c, c.tensor("elements", c.promoted()), c.tensor("test_elements", c.promoted()));
}
Values lower_isin_tensor_scalar(Call& c) {
  return isin(c, c.tensor("elements", c.promoted()), c.scalar("test_element", c.promoted()));
}
Values lower_isin_scalar_tensor(Call& c) {
  return isin(c, c.scalar("element", c.promoted()), c.tensor("test_elements", c.promoted()));
}

// Equal limits mean the data's own range, and one more on both sides where that is a point. Elements outside the limits
// and NaNs are not counted.
Values lower_histc(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  const DType result = self.dtype();
  const bool real = stablehlo::is_float(result);
  c.check(real || stablehlo::is_int(result),
          std::string("\"histogram\" not implemented for '") + scalar_type_name(result) + "'",
          ArgumentError::Kind::kNotImplemented);
  const int64_t bins = c.integer("bins");
  c.check(bins > 0, "torch.histogram(): bins must be > 0, but got " + std::to_string(bins) +
                        " for dimension 0");
  const DType type = real ? stablehlo::opmath(result) : DType::kI64;
  Value x = b.flatten(b.convert(self, type));
  Value low = c.scalar("min", type), high = c.scalar("max", type);
  Value one = b.constant_int(1, type);
  if (!is_zero(x.dim(0))) {
    Value from_data = b.eq(low, high);
    Value least = b.select(from_data, b.reduce(Monoid::kMinimum, x, {0}), low);
    high = b.select(from_data, b.reduce(Monoid::kMaximum, x, {0}), high);
    low = least;
  }
  Value point = b.eq(low, high);
  low = b.select(point, b.sub(low, one), low);
  high = b.select(point, b.add(high, one), high);

  Value counted = b.logical_and(b.ge(x, low), b.le(x, high));
  Value bin = b.div(b.mul(b.sub(x, low), b.constant_int(bins, type)), b.sub(high, low));
  bin = b.min(bin, b.constant_int(bins - 1, type));
  bin = b.select(counted, bin, b.constant_int(-1, type));
  return {b.convert(hits(b, b.convert(bin, DType::kI32), bins), result)};
}

}  // namespace

const OpRow kIndexingRows[] = {
    {"index.Tensor", lower_index, "", Infer::kComposite, Tolerance::kExact},
    {"_unsafe_index.Tensor", lower_index, "", Infer::kLowering, Tolerance::kExact},
    {"index_select", lower_index_select, "", Infer::kLowering, Tolerance::kExact},
    {"gather", lower_gather, "", Infer::kComposite, Tolerance::kExact},
    {"take", lower_take, "", Infer::kLowering, Tolerance::kExact},
    {"embedding", lower_embedding, "", Infer::kLowering, Tolerance::kExact},
    {"unfold_backward", lower_unfold_backward, "", Infer::kLowering, Tolerance::kReduction},
    {"nonzero_static", lower_nonzero_static, "", Infer::kLowering, Tolerance::kExact},
    {"bucketize.Tensor", lower_bucketize_tensor, "", Infer::kLowering, Tolerance::kExact},
    {"bucketize.Scalar", lower_bucketize_scalar, "", Infer::kLowering, Tolerance::kExact},
    {"searchsorted.Tensor", lower_searchsorted_tensor, "", Infer::kLowering, Tolerance::kExact},
    {"searchsorted.Scalar", lower_searchsorted_scalar, "", Infer::kLowering, Tolerance::kExact},
    {"isin.Tensor_Tensor", lower_isin_tensors, "", Infer::kComposite, Tolerance::kExact},
    {"isin.Tensor_Scalar", lower_isin_tensor_scalar, "", Infer::kComposite, Tolerance::kExact},
    {"isin.Scalar_Tensor", lower_isin_scalar_tensor, "", Infer::kComposite, Tolerance::kExact},
    {"histc", lower_histc, "", Infer::kLowering, Tolerance::kExact},
};
const size_t kIndexingRowCount = std::size(kIndexingRows);

}  // namespace torch_tpu::lowering
