// Operations that move elements: broadcasts, reshapes, transposes, slices, padding, concatenation.
#include "stablehlo/builder.h"
#include "stablehlo/builder_impl.h"

namespace torch_tpu::stablehlo {
namespace {

std::vector<int64_t> range(int64_t first, int64_t count) {
  std::vector<int64_t> result(count);
  for (int64_t i = 0; i < count; ++i) result[i] = first + i;
  return result;
}

Dims as_dims(const std::vector<int64_t>& dims) { return Dims(dims.begin(), dims.end()); }

void check_starts(std::string_view op, const Value& x, const std::vector<Value>& starts) {
  require(static_cast<int64_t>(starts.size()) == x.rank(), op, "one start a dimension is needed");
  for (const Value& s : starts) {
    if (!s || s.rank() != 0 || !is_int(s.dtype()) || s.dtype() != starts[0].dtype()) {
      fail(op, "starts must be 0-d integers of one type, got " + describe(starts));
    }
  }
}

}  // namespace

Value Builder::broadcast_in_dim(Value x, const Dims& dims, const std::vector<int64_t>& dimensions) {
  static constexpr const char* kName = "stablehlo.broadcast_in_dim";
  require(static_cast<bool>(x), kName, "no operand");
  const Type type{x.dtype(), dims};
  const auto complain = [&] {
    fail(kName, x.type().str() + " does not broadcast to " + type.str() + " with dimensions " +
                    describe(dimensions));
  };
  if (static_cast<int64_t>(dimensions.size()) != x.rank()) complain();
  dim_set(kName, dimensions, type.rank());
  for (int64_t i = 0; i < x.rank(); ++i) {
    const Size& from = x.dims()[i];
    if (from != dims[dimensions[i]] && from != Size(1)) complain();
  }
  const std::string attributes = Attributes().ints("broadcast_dimensions", dimensions).text();
  if (all_static(dims)) return impl_->emit(kName, {x}, type, attributes);
  const Value padded =
      impl_->emit(kName, {pad_to_bound(x)}, Type{type.dtype, bounds_of(dims)}, attributes);
  return with_dims(*this, padded, dims);
}

Value Builder::broadcast_to(Value x, const Dims& dims) {
  require(static_cast<bool>(x), "stablehlo.broadcast_in_dim", "no operand");
  if (x.dims() == dims) return x;
  const int64_t offset = static_cast<int64_t>(dims.size()) - x.rank();
  if (offset < 0) {
    fail("stablehlo.broadcast_in_dim",
         x.type().str() + " does not broadcast to " + Type{x.dtype(), dims}.str());
  }
  return broadcast_in_dim(x, dims, range(offset, x.rank()));
}

Value Builder::reshape(Value x, const Dims& dims) {
  static constexpr const char* kName = "stablehlo.reshape";
  require(static_cast<bool>(x), kName, "no operand");
  if (x.dims() == dims) return x;
  const Type type{x.dtype(), dims};
  if (product(x.dims()) != product(dims)) {
    fail(kName, x.type().str() + " and " + type.str() + " differ in their number of elements");
  }
  for (const Size& d : dims) {
    if (d.bound() < 0) fail(kName, "a dimension of the result is negative: " + type.str());
  }
  if (all_static(x.dims()) && all_static(dims)) return impl_->emit(kName, {x}, type);
  return reshape_bounded(*this, x, dims);
}

Value Builder::transpose(Value x, const std::vector<int64_t>& permutation) {
  static constexpr const char* kName = "stablehlo.transpose";
  require(static_cast<bool>(x), kName, "no operand");
  dim_set(kName, permutation, x.rank());
  if (static_cast<int64_t>(permutation.size()) != x.rank()) {
    fail(kName, "permutation " + describe(permutation) + " does not fit " + x.type().str());
  }
  if (permutation == range(0, x.rank())) return x;
  impl_->other_reductions = true;
  Dims dims;
  for (const int64_t d : permutation) dims.push_back(x.dims()[d]);
  return impl_->emit(kName, {x}, Type{x.dtype(), std::move(dims)},
                     Attributes().ints("permutation", permutation).text());
}

// On a bounded dimension a limit equal to the bound means "to the true end"; a smaller limit is a
// fixed position that the caller knows to exist.
Value Builder::slice(Value x, const std::vector<int64_t>& starts,
                     const std::vector<int64_t>& limits, const std::vector<int64_t>& strides) {
  static constexpr const char* kName = "stablehlo.slice";
  require(static_cast<bool>(x), kName, "no operand");
  const std::vector<int64_t> steps = strides.empty() ? std::vector<int64_t>(x.rank(), 1) : strides;
  const auto rank = static_cast<size_t>(x.rank());
  if (starts.size() != rank || limits.size() != rank || steps.size() != rank) {
    fail(kName, "starts, limits and strides need one entry a dimension of " + x.type().str());
  }
  Dims dims;
  bool whole = true;
  for (size_t i = 0; i < rank; ++i) {
    const Size& d = x.dims()[i];
    if (starts[i] < 0 || starts[i] > limits[i] || limits[i] > d.bound() || steps[i] < 1) {
      fail(kName, describe(starts) + " to " + describe(limits) + " by " + describe(steps) +
                      " is no part of " + x.type().str());
    }
    const Size limit = limits[i] == d.bound() ? d : Size(limits[i]);
    dims.push_back(floor_div(limit - starts[i] + (steps[i] - 1), steps[i]));
    whole = whole && dims.back() == d && starts[i] == 0;
  }
  if (whole) return x;
  const std::string attributes = Attributes()
                                     .ints("start_indices", starts)
                                     .ints("limit_indices", limits)
                                     .ints("strides", steps)
                                     .text();
  const Value part =
      impl_->emit(kName, {pad_to_bound(x)}, Type{x.dtype(), bounds_of(dims)}, attributes);
  return with_dims(*this, part, dims);
}

Value Builder::slice_dim(Value x, int64_t dim, int64_t start, int64_t limit, int64_t stride) {
  require(static_cast<bool>(x), "stablehlo.slice", "no operand");
  check_dim("stablehlo.slice", dim, x);
  std::vector<int64_t> starts(x.rank(), 0);
  std::vector<int64_t> steps(x.rank(), 1);
  std::vector<int64_t> limits;
  for (const Size& d : x.dims()) limits.push_back(d.bound());
  starts[dim] = start;
  limits[dim] = limit;
  steps[dim] = stride;
  return slice(x, starts, limits, steps);
}

// A slice as long as a bounded dimension keeps it bounded (its start must be 0 then).
Value Builder::dynamic_slice(Value x, const std::vector<Value>& starts,
                             const std::vector<int64_t>& sizes) {
  static constexpr const char* kName = "stablehlo.dynamic_slice";
  require(static_cast<bool>(x), kName, "no operand");
  check_starts(kName, x, starts);
  require(static_cast<int64_t>(sizes.size()) == x.rank(), kName, "one size a dimension is needed");
  Dims dims;
  for (int64_t i = 0; i < x.rank(); ++i) {
    const Size& d = x.dims()[i];
    if (sizes[i] < 0 || sizes[i] > d.bound())
      fail(kName, "sizes " + describe(sizes) + " of " + x.type().str());
    dims.push_back(sizes[i] == d.bound() ? d : Size(sizes[i]));
  }
  if (x.rank() == 0) return x;
  std::vector<Value> operands = {pad_to_bound(x)};
  operands.insert(operands.end(), starts.begin(), starts.end());
  const Value part = impl_->emit(kName, operands, Type{x.dtype(), as_dims(sizes)},
                                 Attributes().ints("slice_sizes", sizes).text());
  return with_dims(*this, part, dims);
}

Value Builder::dynamic_update_slice(Value x, Value update, const std::vector<Value>& starts) {
  static constexpr const char* kName = "stablehlo.dynamic_update_slice";
  const Value both[] = {x, update};
  require(x && update, kName, "no operand");
  check_starts(kName, x, starts);
  if (x.dtype() != update.dtype() || x.rank() != update.rank())
    fail(kName, "operands do not match: " + describe(both));
  for (int64_t i = 0; i < x.rank(); ++i) {
    const Size& d = update.dims()[i];
    if (d.bound() > x.dims()[i].bound() || (!d.is_static() && d != x.dims()[i])) {
      fail(kName, "the update does not lie inside the operand: " + describe(both));
    }
  }
  if (x.rank() == 0) return update;
  std::vector<Value> operands = {pad_to_bound(x), pad_to_bound(update)};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return with_dims(*this, impl_->emit(kName, operands, operands[0].type()), x.dims());
}

Value Builder::pad(Value x, Value fill, const std::vector<int64_t>& low,
                   const std::vector<int64_t>& high, const std::vector<int64_t>& interior) {
  static constexpr const char* kName = "stablehlo.pad";
  require(x && fill, kName, "no operand");
  const std::vector<int64_t> between =
      interior.empty() ? std::vector<int64_t>(x.rank(), 0) : interior;
  const auto rank = static_cast<size_t>(x.rank());
  if (low.size() != rank || high.size() != rank || between.size() != rank) {
    fail(kName, "low, high and interior need one entry a dimension of " + x.type().str());
  }
  if (fill.rank() != 0 || fill.dtype() != x.dtype()) {
    const Value both[] = {x, fill};
    fail(kName, "the fill must be 0-d and of the operand's element type: " + describe(both));
  }
  Dims dims;
  std::vector<int64_t> bounded;
  for (size_t i = 0; i < rank; ++i) {
    const Size& d = x.dims()[i];
    Size inner = d;
    if (between[i] < 0) fail(kName, "interior padding is negative: " + describe(between));
    if (between[i] > 0 && d != Size(0)) inner = d * (between[i] + 1) - between[i];
    dims.push_back(inner + low[i] + high[i]);
    if (dims.back().bound() < 0) {
      fail(kName, "low " + describe(low) + " and high " + describe(high) +
                      " crop more than all of " + x.type().str());
    }
    if (!d.is_static()) bounded.push_back(static_cast<int64_t>(i));
  }
  const std::string attributes = Attributes()
                                     .ints("edge_padding_low", low)
                                     .ints("edge_padding_high", high)
                                     .ints("interior_padding", between)
                                     .text();
  if (!bounded.empty()) x = mask_to_bound(*this, x, fill, &bounded);
  return with_dims(
      *this, impl_->emit(kName, {x, fill}, Type{x.dtype(), bounds_of(dims)}, attributes), dims);
}

Value Builder::concatenate(const std::vector<Value>& xs, int64_t dim) {
  static constexpr const char* kName = "stablehlo.concatenate";
  require(!xs.empty() && xs[0], kName, "no operands");
  check_dim(kName, dim, xs[0]);
  Dims dims = xs[0].dims();
  dims[dim] = Size(0);
  bool every_static = true;
  bool static_along = true;
  for (size_t i = 0; i < xs.size(); ++i) {
    bool fits = xs[i] && xs[i].dtype() == xs[0].dtype() && xs[i].rank() == xs[0].rank();
    for (int64_t d = 0; fits && d < xs[0].rank(); ++d)
      fits = d == dim || xs[i].dims()[d] == xs[0].dims()[d];
    if (!fits)
      fail(kName,
           "operands do not match along dimension " + std::to_string(dim) + ": " + describe(xs));
    dims[dim] = dims[dim] + xs[i].dims()[dim];
    every_static = every_static && all_static(xs[i].dims());
    if (i + 1 < xs.size()) static_along = static_along && xs[i].dims()[dim].is_static();
  }
  if (xs.size() == 1) return xs[0];
  std::vector<Value> padded;
  for (const Value& x : xs) padded.push_back(every_static ? x : pad_to_bound(x));
  const Type type{xs[0].dtype(), bounds_of(dims)};
  if (static_along) {
    const Value joined =
        impl_->emit(kName, padded, type, Attributes().integer("dimension", dim).text());
    return with_dims(*this, joined, dims);
  }
  // Each operand starts at the true end of the one before and overwrites its padding.
  Value joined = zeros(type);
  Size offset(0);
  for (size_t i = 0; i < xs.size(); ++i) {
    std::vector<Value> starts(xs[0].rank(), constant_int(0, DType::kI32));
    starts[dim] = size(offset, DType::kI32);
    joined = dynamic_update_slice(joined, padded[i], starts);
    offset = offset + xs[i].dims()[dim];
  }
  return with_dims(*this, joined, dims);
}

Value Builder::reverse(Value x, const std::vector<int64_t>& dims) {
  static constexpr const char* kName = "stablehlo.reverse";
  require(static_cast<bool>(x), kName, "no operand");
  dim_set(kName, dims, x.rank());
  if (dims.empty()) return x;
  const Value padded = pad_to_bound(x);
  Value reversed =
      impl_->emit(kName, {padded}, padded.type(), Attributes().ints("dimensions", dims).text());
  for (const int64_t d : dims) {
    const Size& s = x.dims()[d];
    if (s.is_static()) continue;
    // The true elements are now at the end of the buffer: bring them to its front.
    std::vector<int64_t> none(x.rank(), 0);
    std::vector<int64_t> high = none;
    high[d] = s.bound();
    std::vector<Value> starts(x.rank(), constant_int(0, DType::kI32));
    starts[d] = sub(constant_int(s.bound(), DType::kI32), size(s, DType::kI32));
    reversed = dynamic_slice(pad(reversed, constant_int(0, x.dtype()), none, high), starts,
                             fixed(padded.dims()));
  }
  return with_dims(*this, reversed, x.dims());
}

}  // namespace torch_tpu::stablehlo
