// Bounded dimensions: between the padded buffer and the true extent.
//
// An operation that mixes elements of a bounded dimension in its own way works on the buffer padded
// to the bound, with the padding masked where it could be seen, and gives the result its true size
// again. All others keep bounded types.
#include "stablehlo/builder.h"
#include "stablehlo/builder_impl.h"

namespace torch_tpu::stablehlo {
namespace {

constexpr const char* kReshape = "stablehlo.reshape";

// Groups of dimensions that a reshape maps onto each other: [begin, end) on both sides with equal
// products.
struct Group {
  size_t from_begin, from_end, to_begin, to_end;
};

std::vector<Group> reshape_groups(const Dims& from, const Dims& to) {
  std::vector<Group> groups;
  size_t i = 0;
  size_t j = 0;
  while (i < from.size() || j < to.size()) {
    Group g{i, i, j, j};
    Size left(1);
    Size right(1);
    // Grows both sides until their products agree; the whole products do, so this ends.
    bool started = false;
    while (!started || left != right) {
      const bool take_left =
          j >= to.size() || (i < from.size() && (!started || left.bound() <= right.bound()));
      if (!started && i < from.size() && j < to.size()) {
        left = left * from[i++];
        right = right * to[j++];
      } else if (take_left && i < from.size()) {
        left = left * from[i++];
      } else if (j < to.size()) {
        right = right * to[j++];
      } else {
        break;
      }
      started = true;
    }
    g.from_end = i;
    g.to_end = j;
    groups.push_back(g);
  }
  return groups;
}

bool only_first_bounded(const Dims& dims, size_t begin, size_t end) {
  // Leading ones do not move anything.
  while (begin < end && dims[begin] == Size(1)) ++begin;
  for (size_t i = begin + 1; i < end; ++i) {
    if (!dims[i].is_static()) return false;
  }
  return true;
}

// In every group the bounded dimension is the outermost one on both sides: the true elements are a
// prefix of the group's buffer before and after, so the buffer need not move.
bool keeps_buffer(const Dims& from, const Dims& to) {
  for (const Group& g : reshape_groups(from, to)) {
    Size left(1);
    Size right(1);
    for (size_t i = g.from_begin; i < g.from_end; ++i) left = left * from[i];
    for (size_t i = g.to_begin; i < g.to_end; ++i) right = right * to[i];
    if (left != right || !only_first_bounded(from, g.from_begin, g.from_end) ||
        !only_first_bounded(to, g.to_begin, g.to_end)) {
      return false;
    }
  }
  return true;
}

// The true row-major position of every element of a buffer of `dims`' bounds, as i32.
Value true_positions(Builder& b, const Dims& dims) {
  const Dims bounds = bounds_of(dims);
  Value position = b.constant_int(0, DType::kI32, bounds);
  Size stride(1);
  for (size_t i = dims.size(); i-- > 0;) {
    const Value along = b.iota(DType::kI32, bounds, static_cast<int64_t>(i));
    position = b.add(position, b.mul(along, b.size(stride, DType::kI32)));
    stride = stride * dims[i];
  }
  return position;
}

// Where the elements at true row-major `positions` lie in a buffer of `dims`' bounds.
Value buffer_positions(Builder& b, Value positions, const Dims& dims) {
  Value result = b.constant_int(0, DType::kI32);
  int64_t buffer_stride = 1;
  const Value one = b.constant_int(1, DType::kI32);
  for (size_t i = dims.size(); i-- > 0;) {
    const Value extent = b.max(b.size(dims[i], DType::kI32), one);
    const Value index = i == 0 ? positions : b.rem(positions, extent);
    result = b.add(result, b.mul(index, b.constant_int(buffer_stride, DType::kI32)));
    if (i > 0) positions = b.div(positions, extent);
    buffer_stride *= dims[i].bound();
  }
  return result;
}

}  // namespace

Dims bounds_of(const Dims& dims) {
  Dims result;
  result.reserve(dims.size());
  for (const Size& d : dims) result.emplace_back(d.bound());
  return result;
}

Value with_dims(Builder& b, Value x, const Dims& dims) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].is_static()) continue;
    x = b.set_dimension_size(x, b.size(dims[i], DType::kI32), static_cast<int64_t>(i), dims[i]);
  }
  return x;
}

Value mask_to_bound(Builder& b, Value x, Value fill, const std::vector<int64_t>* dims) {
  Value result = b.pad_to_bound(x);
  Value inside;
  const auto mask = [&](int64_t d) {
    const Size& s = x.dims().at(d);
    if (s.is_static()) return;
    const Value position = b.iota(DType::kI32, result.dims(), d);
    const Value here = b.lt(position, b.size(s, DType::kI32));
    inside = inside ? b.logical_and(inside, here) : here;
  };
  if (dims != nullptr) {
    for (const int64_t d : *dims) mask(d);
  } else {
    for (int64_t d = 0; d < x.rank(); ++d) mask(d);
  }
  return inside ? b.select(inside, result, fill) : result;
}

Value reshape_bounded(Builder& b, Value x, const Dims& dims) {
  const Dims to_bounds = bounds_of(dims);
  if (product(bounds_of(x.dims())) == product(to_bounds) && keeps_buffer(x.dims(), dims)) {
    return with_dims(b, b.reshape(b.pad_to_bound(x), to_bounds), dims);
  }
  const int64_t count = product(bounds_of(x.dims())).fixed();
  if (count > INT32_MAX || product(to_bounds).fixed() > INT32_MAX) {
    fail(kReshape,
         x.type().str() + " is too large to be compacted to " + Type{x.dtype(), dims}.str());
  }
  // The true elements have to move: fetch each one by its position.
  const Value source = b.reshape(b.pad_to_bound(x), {Size(count)});
  Value positions = buffer_positions(b, true_positions(b, dims), x.dims());
  positions = b.clamp(b.constant_int(0, DType::kI32), positions,
                      b.constant_int(std::max<int64_t>(count - 1, 0), DType::kI32));
  Dims index_dims = to_bounds;
  index_dims.emplace_back(1);
  GatherDims g;
  g.collapsed_slice_dims = {0};
  g.start_index_map = {0};
  g.index_vector_dim = static_cast<int64_t>(dims.size());
  g.slice_sizes = {1};
  return with_dims(b, b.gather(source, b.reshape(positions, index_dims), g), dims);
}

Value Builder::set_dimension_size(Value x, Value size, int64_t dim, const Size& result) {
  static constexpr const char* kName = "stablehlo.set_dimension_size";
  require(x && size, kName, "no operand");
  check_dim(kName, dim, x);
  if (size.dtype() != DType::kI32 || size.rank() != 0)
    fail(kName, "the size must be a 0-d i32, got " + size.type().str());
  if (result.bound() != x.dims()[dim].bound()) {
    fail(kName, "dimension " + std::to_string(dim) + " of " + x.type().str() + " cannot become " +
                    result.str());
  }
  Dims dims = x.dims();
  dims[dim] = result;
  return impl_->emit(kName, {x, size}, Type{x.dtype(), std::move(dims)},
                     Attributes().integer("dimension", dim).text());
}

Value Builder::pad_to_bound(Value x) {
  require(static_cast<bool>(x), "pad_to_bound", "no operand");
  for (int64_t d = 0; d < x.rank(); ++d) {
    const int64_t bound = x.dims()[d].bound();
    if (!x.dims()[d].is_static())
      x = set_dimension_size(x, constant_int(bound, DType::kI32), d, Size(bound));
  }
  return x;
}

}  // namespace torch_tpu::stablehlo
