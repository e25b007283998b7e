// Gather, scatter, sort and top-k.
#include <algorithm>

#include "stablehlo/builder.h"
#include "stablehlo/builder_impl.h"

namespace torch_tpu::stablehlo {
namespace {

constexpr const char* kGather = "stablehlo.gather";
constexpr const char* kScatter = "stablehlo.scatter";
constexpr const char* kSort = "stablehlo.sort";

bool contains(const std::vector<int64_t>& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

void check_index_types(std::string_view op, const Value& operand, const Value& indices,
                       int64_t index_vector_dim, size_t index_map_size) {
  require(operand && indices, op, "no operand");
  if (!is_int(indices.dtype())) fail(op, "indices must be integers, got " + indices.type().str());
  if (index_vector_dim < 0 || index_vector_dim > indices.rank()) {
    fail(op, "index_vector_dim " + std::to_string(index_vector_dim) + " does not exist in " +
                 indices.type().str());
  }
  const Size length =
      index_vector_dim == indices.rank() ? Size(1) : indices.dims()[index_vector_dim];
  if (length != Size(static_cast<int64_t>(index_map_size))) {
    fail(op, "index vectors of " + indices.type().str() + " do not address " +
                 std::to_string(index_map_size) + " dimensions of " + operand.type().str());
  }
}

// The dimensions of `indices` without the index vectors' one.
Dims batch_dims(const Value& indices, int64_t index_vector_dim) {
  Dims dims;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d != index_vector_dim) dims.push_back(indices.dims()[d]);
  }
  return dims;
}

// Checks that batching dimensions of operand and indices agree.
void check_batching(std::string_view op, const Value& operand, const Value& indices,
                    const std::vector<int64_t>& operand_dims,
                    const std::vector<int64_t>& index_dims) {
  dim_set(op, operand_dims, operand.rank());
  dim_set(op, index_dims, indices.rank());
  bool fits = operand_dims.size() == index_dims.size();
  for (size_t i = 0; fits && i < operand_dims.size(); ++i) {
    fits = operand.dims()[operand_dims[i]] == indices.dims()[index_dims[i]];
  }
  if (!fits) {
    const Value both[] = {operand, indices};
    fail(op, "batching dimensions " + describe(operand_dims) + " and " + describe(index_dims) +
                 " of " + describe(both) + " differ");
  }
}

// name = [..], only where the list says something.
void append_list(std::string* text, const char* name, const std::vector<int64_t>& values) {
  if (values.empty()) return;
  *text += name;
  *text += " = ";
  *text += int_list(values);
  *text += ", ";
}

}  // namespace

Value Builder::gather(Value operand, Value start_indices, const GatherDims& g) {
  check_index_types(kGather, operand, start_indices, g.index_vector_dim, g.start_index_map.size());
  check_batching(kGather, operand, start_indices, g.operand_batching_dims,
                 g.start_indices_batching_dims);
  const auto complain = [&](const std::string& what) {
    const Value both[] = {operand, start_indices};
    fail(kGather, what + ": " + describe(both) + ", slice sizes " + describe(g.slice_sizes));
  };
  dim_set(kGather, g.start_index_map, operand.rank());
  dim_set(kGather, g.collapsed_slice_dims, operand.rank());
  if (static_cast<int64_t>(g.slice_sizes.size()) != operand.rank())
    complain("one slice size a dimension is needed");
  Dims window;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const Size& full = operand.dims()[d];
    const int64_t size = g.slice_sizes[d];
    if (size < 0 || size > full.bound()) complain("a slice is larger than its dimension");
    if (contains(g.collapsed_slice_dims, d) || contains(g.operand_batching_dims, d)) {
      if (size > 1) complain("collapsed and batching dimensions need slices of size 1");
    } else {
      window.push_back(size == full.bound() ? full : Size(size));
    }
  }
  const Dims batch = batch_dims(start_indices, g.index_vector_dim);
  if (window.size() != g.offset_dims.size()) complain("offset dimensions do not match the slices");
  const auto rank = static_cast<int64_t>(window.size() + batch.size());
  dim_set(kGather, g.offset_dims, rank);
  if (!std::is_sorted(g.offset_dims.begin(), g.offset_dims.end()))
    complain("offset dimensions must be in order");
  Dims dims;
  size_t next_window = 0;
  size_t next_batch = 0;
  for (int64_t d = 0; d < rank; ++d) {
    dims.push_back(contains(g.offset_dims, d) ? window[next_window++] : batch[next_batch++]);
  }
  std::string numbers = "#stablehlo.gather<";
  append_list(&numbers, "offset_dims", g.offset_dims);
  append_list(&numbers, "collapsed_slice_dims", g.collapsed_slice_dims);
  append_list(&numbers, "operand_batching_dims", g.operand_batching_dims);
  append_list(&numbers, "start_indices_batching_dims", g.start_indices_batching_dims);
  append_list(&numbers, "start_index_map", g.start_index_map);
  numbers += "index_vector_dim = " + std::to_string(g.index_vector_dim) + ">";
  const std::string attributes = Attributes()
                                     .raw("dimension_numbers", numbers)
                                     .ints("slice_sizes", g.slice_sizes)
                                     .boolean("indices_are_sorted", g.indices_are_sorted)
                                     .text();
  const Type type{operand.dtype(), bounds_of(dims)};
  const Value result =
      impl_->emit(kGather, {pad_to_bound(operand), pad_to_bound(start_indices)}, type, attributes);
  return with_dims(*this, result, dims);
}

Value Builder::scatter(Value operand, Value indices, Value updates, const ScatterDims& s,
                       const Body& body) {
  check_index_types(kScatter, operand, indices, s.index_vector_dim,
                    s.scatter_dims_to_operand_dims.size());
  check_batching(kScatter, operand, indices, s.input_batching_dims,
                 s.scatter_indices_batching_dims);
  require(static_cast<bool>(updates), kScatter, "no updates");
  const auto complain = [&](const std::string& what) {
    const Value all[] = {operand, indices, updates};
    fail(kScatter, what + ": " + describe(all));
  };
  dim_set(kScatter, s.scatter_dims_to_operand_dims, operand.rank());
  dim_set(kScatter, s.inserted_window_dims, operand.rank());
  const std::vector<bool> in_window = dim_set(kScatter, s.update_window_dims, updates.rank());
  if (!std::is_sorted(s.update_window_dims.begin(), s.update_window_dims.end())) {
    complain("window dimensions must be in order");
  }
  if (operand.dtype() != updates.dtype())
    complain("operand and updates must have one element type");
  Dims window;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (!contains(s.inserted_window_dims, d) && !contains(s.input_batching_dims, d))
      window.push_back(operand.dims()[d]);
  }
  const Dims batch = batch_dims(indices, s.index_vector_dim);
  if (window.size() != s.update_window_dims.size() ||
      static_cast<int64_t>(window.size() + batch.size()) != updates.rank()) {
    complain("updates do not have the rank of their windows and indices");
  }
  size_t next_window = 0;
  size_t next_batch = 0;
  for (int64_t d = 0; d < updates.rank(); ++d) {
    const Size& size = updates.dims()[d];
    if (in_window[d]) {
      const Size& full = window[next_window++];
      if (size.bound() > full.bound() || (!size.is_static() && size != full))
        complain("a window exceeds the operand");
    } else if (size != batch[next_batch++]) {
      complain("updates and indices differ in their batch dimensions");
    }
  }
  // Padding of the indices must hit nothing: an index out of range skips its update.
  bool bounded_indices = false;
  Value padded_indices = indices;
  if (!all_static(indices.dims())) {
    bounded_indices = true;
    const Value nowhere = is_signed_int(indices.dtype()) ? constant_int(-1, indices.dtype())
                                                         : highest(indices.dtype());
    padded_indices = mask_to_bound(*this, indices, nowhere);
  }
  const std::string combined = impl_->combiner(kScatter, {Type{operand.dtype(), {}}}, body);
  std::string numbers = "#stablehlo.scatter<";
  append_list(&numbers, "update_window_dims", s.update_window_dims);
  append_list(&numbers, "inserted_window_dims", s.inserted_window_dims);
  append_list(&numbers, "input_batching_dims", s.input_batching_dims);
  append_list(&numbers, "scatter_indices_batching_dims", s.scatter_indices_batching_dims);
  append_list(&numbers, "scatter_dims_to_operand_dims", s.scatter_dims_to_operand_dims);
  numbers += "index_vector_dim = " + std::to_string(s.index_vector_dim) + ">";
  const std::string attributes =
      Attributes()
          .raw("scatter_dimension_numbers", numbers)
          .boolean("indices_are_sorted", s.indices_are_sorted && !bounded_indices)
          .boolean("unique_indices", s.unique_indices && !bounded_indices)
          .text();
  const Value operands[] = {pad_to_bound(operand), padded_indices, pad_to_bound(updates)};
  const Value result =
      impl_->emit(kScatter, operands, operands[0].type(), attributes, "(" + combined + ")");
  return with_dims(*this, result, operand.dims());
}

std::vector<Value> Builder::sort(const std::vector<Value>& xs, int64_t dim, bool stable,
                                 const Body& comparator) {
  require(!xs.empty() && xs[0], kSort, "no operands");
  check_dim(kSort, dim, xs[0]);
  std::vector<Type> arguments;
  std::vector<Type> results;
  for (const Value& x : xs) {
    if (!x || x.dims() != xs[0].dims())
      fail(kSort, "operands differ in their dimensions: " + describe(xs));
    arguments.insert(arguments.end(), 2, Type{x.dtype(), {}});
    results.push_back(x.type());
  }
  const Impl::RegionText order =
      impl_->region(kSort, arguments, Impl::Capture::kConstants, comparator);
  if (order.results.size() != 1 || !(order.results[0].type() == Type{DType::kPred, {}})) {
    fail(kSort, "its comparator must return one 0-d i1, got " + describe(order.results));
  }
  const std::string attributes =
      Attributes().integer("dimension", dim).boolean("is_stable", stable).text();
  return impl_->emit_many(kSort, xs, std::move(results), attributes, "(" + order.text + ")");
}

std::pair<Value, Value> Builder::top_k(Value x, int64_t k) {
  require(x && x.rank() > 0, "top_k", "an operand of at least one dimension is needed");
  if (is_complex(x.dtype())) fail("top_k", "complex numbers have no order: " + x.type().str());
  const int64_t last = x.rank() - 1;
  if (k < 0 || k > x.dims()[last].bound())
    fail("top_k", std::to_string(k) + " of " + x.type().str());
  const Value positions = iota(DType::kI32, x.dims(), last);
  const std::vector<Value> sorted =
      sort({x, positions}, last, true, [&](const std::vector<Value>& args) {
        Value first = gt(args[0], args[1]);
        if (is_float(x.dtype()))
          first = logical_or(first, logical_and(is_nan(args[0]), eq(args[1], args[1])));
        return std::vector<Value>{first};
      });
  return {slice_dim(sorted[0], last, 0, k), slice_dim(sorted[1], last, 0, k)};
}

}  // namespace torch_tpu::stablehlo
