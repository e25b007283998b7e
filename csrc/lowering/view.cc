// Emits a view's plan: windows, transposes and broadcasts where the strides allow, computed positions where not.
#include "lowering/view.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "lowering/retype.h"
#include "lowering/view_plan.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::BuildError;
using stablehlo::Dims;
using stablehlo::DType;
using stablehlo::GatherDims;
using stablehlo::ScatterDims;
using stablehlo::Size;
using stablehlo::Type;

using Ints = std::vector<int64_t>;

Dims to_dims(const Ints& sizes) { return Dims(sizes.begin(), sizes.end()); }

Value reshape(Builder& b, Value x, const Ints& sizes) {
  Dims dims = to_dims(sizes);
  return x.dims() == dims ? x : b.reshape(x, dims);
}

Value transpose(Builder& b, Value x, const Ints& permutation) {
  return std::is_sorted(permutation.begin(), permutation.end()) ? x : b.transpose(x, permutation);
}

int64_t count_of(const Ints& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<int64_t>());
}

// Row-major strides by the dimensions' bounds.
Ints contiguous_strides(const Dims& dims) {
  Ints strides(dims.size());
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= dims[d].bound();
  }
  return strides;
}

// Whether the view shows an array of these dimensions as it lies, the one case that bounded dimensions are good for.
bool shows_all_as_is(const ir::ViewSpec& view, DType dtype, const Dims& dims) {
  return view.dtype == dtype && view.offset == 0 && view.offset_slot < 0 && view.sizes == dims &&
         view.strides == contiguous_strides(dims);
}

// Dimensions of the view, largest stride first; those of one element or none keep their place among equals.
Ints memory_order(const ir::ViewSpec& view) {
  Ints order(view.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t x, int64_t y) { return view.strides[x] > view.strides[y]; });
  return order;
}

// Whether the view has every element of a storage of `bytes` bytes exactly once.
bool covers(const ir::ViewSpec& view, int64_t bytes) {
  if (view.offset != 0 || view.offset_slot >= 0) return false;
  int64_t count = 1;
  for (const Size& size : view.sizes) count *= size.bound();
  if (count * stablehlo::byte_size(view.dtype) != bytes) return false;
  if (!stablehlo::all_static(view.sizes)) return view.strides == contiguous_strides(view.sizes);
  if (count == 0) return true;
  std::vector<Axis> axes = view_axes(view);
  return nested(axes) && span_of(axes) == count;
}

// -- Axes and view dimensions -----------------------------------------------------------------------------------------

Ints axis_sizes(const std::vector<Axis>& axes) {
  Ints sizes;
  for (const Axis& axis : axes) sizes.push_back(axis.size);
  return sizes;
}

// permutation[i]: which axis is the i-th of the view's own order.
Ints axes_in_view_order(const std::vector<Axis>& axes) {
  Ints order(axes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int64_t x, int64_t y) { return axes[x].dim < axes[y].dim; });
  return order;
}

// From the axes in memory order to the view's sizes: transpose, then add broadcast and size-1 dimensions.
Value to_view(Builder& b, Value x, const std::vector<Axis>& axes, const Dims& sizes) {
  x = transpose(b, reshape(b, x, axis_sizes(axes)), axes_in_view_order(axes));
  if (x.numel() == stablehlo::product(sizes)) return reshape(b, x, stablehlo::fixed(sizes));
  Ints dims;
  for (int64_t axis : axes_in_view_order(axes)) dims.push_back(axes[axis].dim);
  return b.broadcast_in_dim(x, sizes, dims);
}

// The inverse. Of several elements that lie at one place the last one stays.
Value from_view(Builder& b, Value x, const std::vector<Axis>& axes) {
  Ints starts, limits = stablehlo::fixed(x.dims());
  for (int64_t size : limits) starts.push_back(size - 1);
  Ints sizes;
  for (int64_t axis : axes_in_view_order(axes)) {
    starts[axes[axis].dim] = 0;
    sizes.push_back(axes[axis].size);
  }
  if (std::any_of(starts.begin(), starts.end(), [](int64_t start) { return start > 0; })) {
    x = b.slice(x, starts, limits);
  }
  x = reshape(b, x, sizes);
  Ints memory(axes.size());
  Ints view_order = axes_in_view_order(axes);
  for (size_t i = 0; i < view_order.size(); ++i) memory[view_order[i]] = static_cast<int64_t>(i);
  return transpose(b, x, memory);
}

// -- Stages -----------------------------------------------------------------------------------------------------------

Ints extents(const Stage& stage) {
  Ints sizes;
  for (const Digit& digit : stage.digits) sizes.push_back(digit.extent);
  return sizes;
}

Ints counts(const Stage& stage) {
  Ints sizes;
  for (const Digit& digit : stage.digits) sizes.push_back(digit.count);
  return sizes;
}

Ints windows(const Stage& stage) {
  Ints sizes;
  for (const Digit& digit : stage.digits) sizes.push_back(digit.window());
  return sizes;
}

Ints steps(const Stage& stage) {
  Ints sizes;
  for (const Digit& digit : stage.digits) sizes.push_back(digit.step);
  return sizes;
}

bool any_step(const Stage& stage) {
  return std::any_of(stage.digits.begin(), stage.digits.end(),
                     [](const Digit& d) { return d.step != 1; });
}

bool shows_everything(const Stage& stage) {
  return stage.padding == 0 && std::all_of(stage.digits.begin(), stage.digits.end(),
                                           [](const Digit& d) { return d.full(); });
}

// The array of the stage's digits, padded.
Value spread(Builder& b, Value x, const Stage& stage) {
  x = reshape(b, x, extents(stage));
  if (stage.padding == 0) return x;
  Ints low(stage.digits.size(), 0), high(stage.digits.size(), 0);
  high.back() = stage.padding;
  return b.pad(x, b.zeros({x.dtype(), {}}), low, high);
}

// Arithmetic on positions among `count` elements is done in this type.
DType index_dtype(int64_t count) {
  return count > std::numeric_limits<int32_t>::max() ? DType::kI64 : DType::kI32;
}

// The stage's window starts: constants, or at run time the digits of `offset`, which only the first stage may have.
std::vector<Value> starts_of(Builder& b, const Stage& stage, Value offset) {
  DType dtype = index_dtype(count_of(extents(stage)));
  if (offset) offset = b.convert(offset, dtype);
  std::vector<Value> starts;
  for (const Digit& digit : stage.digits) {
    if (!offset || digit.full()) {
      starts.push_back(b.constant_int(digit.start, dtype));
      continue;
    }
    Value start = offset;
    if (digit.unit != 1) start = b.div(start, b.constant_int(digit.unit, dtype));
    // The first digit needs no remainder: nothing lies above it.
    if (&digit != &stage.digits.front()) start = b.rem(start, b.constant_int(digit.extent, dtype));
    starts.push_back(start);
  }
  return starts;
}

// The stage's windows of the spread array. `offset` is empty where the starts are known.
Value take(Builder& b, Value x, const Stage& stage, Value offset) {
  if (shows_everything(stage)) return x;
  if (offset) {
    x = b.dynamic_slice(x, starts_of(b, stage, offset), windows(stage));
    return any_step(stage) ? b.slice(x, Ints(x.rank(), 0), windows(stage), steps(stage)) : x;
  }
  Ints starts, limits;
  for (const Digit& digit : stage.digits) {
    starts.push_back(digit.start);
    limits.push_back(digit.start + digit.window());
  }
  return b.slice(x, starts, limits, steps(stage));
}

// Puts `update`, of the stage's counts, into the spread array.
Value put(Builder& b, Value x, Value update, const Stage& stage, Value offset) {
  if (shows_everything(stage)) return update;
  std::vector<Value> starts = starts_of(b, stage, offset);
  if (any_step(stage)) {
    // What lies between the steps keeps its value.
    Ints none(stage.digits.size(), 0), interior = steps(stage);
    for (int64_t& step : interior) --step;
    Value current = b.dynamic_slice(x, starts, windows(stage));
    Value written =
        b.pad(b.constant_bool(true, update.dims()), b.constant_bool(false), none, none, interior);
    update = b.select(written, b.pad(update, b.zeros({update.dtype(), {}}), none, none, interior),
                      current);
  }
  return b.dynamic_update_slice(x, update, starts);
}

Value read_stages(Builder& b, Value x, const ViewPlan& plan, Value offset) {
  for (const Stage& stage : plan.stages) {
    x = take(b, spread(b, x, stage), stage, &stage == &plan.stages.front() ? offset : Value());
  }
  return x;
}

Value write_stages(Builder& b, Value x, Value update, const ViewPlan& plan, size_t first,
                   Value offset) {
  const Stage& stage = plan.stages[first];
  Ints original = stablehlo::fixed(x.dims());
  Value array = spread(b, x, stage);
  if (first + 1 < plan.stages.size()) {
    update = write_stages(b, take(b, array, stage, offset), update, plan, first + 1, Value());
  }
  array = put(b, array, reshape(b, update, counts(stage)), stage, offset);
  if (stage.padding > 0) array = b.slice(array, Ints(array.rank(), 0), extents(stage));
  return reshape(b, array, original);
}

// -- Positions --------------------------------------------------------------------------------------------------------

// The flat storage index of every element over the given axes, with a last dimension of 1.
Value positions(Builder& b, const std::vector<Axis>& axes, int64_t count, int64_t start,
                Value offset) {
  DType dtype = index_dtype(count);
  Ints sizes;
  for (const Axis& axis : axes) sizes.push_back(axis.size);
  sizes.push_back(1);
  Dims dims = to_dims(sizes);
  Value position =
      offset ? b.broadcast_to(b.convert(offset, dtype), dims) : b.constant_int(start, dtype, dims);
  for (size_t k = 0; k < axes.size(); ++k) {
    Value index = b.iota(dtype, dims, static_cast<int64_t>(k));
    position = b.add(position, b.mul(index, b.constant_int(axes[k].stride, dtype)));
  }
  return position;
}

Value read_positions(Builder& b, Value x, const ViewPlan& plan, const ir::ViewSpec& view,
                     Value offset) {
  // The innermost axis is a window of the gather where its elements are neighbours.
  std::vector<Axis> axes = plan.axes;
  GatherDims gather;
  gather.slice_sizes = {1};
  if (axes.back().stride == 1) {
    gather.slice_sizes = {axes.back().size};
    gather.offset_dims = {static_cast<int64_t>(axes.size()) - 1};
    axes.pop_back();
  } else {
    gather.collapsed_slice_dims = {0};
  }
  gather.start_index_map = {0};
  gather.index_vector_dim = static_cast<int64_t>(axes.size());
  Value starts = positions(b, axes, plan.storage_count, view.offset, offset);
  return b.gather(reshape(b, x, {plan.storage_count}), starts, gather);
}

Value write_positions(Builder& b, Value x, Value update, const ViewPlan& plan,
                      const ir::ViewSpec& view, Value offset) {
  Ints original = stablehlo::fixed(x.dims());
  ScatterDims scatter;
  scatter.inserted_window_dims = {0};
  scatter.scatter_dims_to_operand_dims = {0};
  scatter.index_vector_dim = 1;
  int64_t count = update.numel().fixed();
  Value indices =
      reshape(b, positions(b, plan.axes, plan.storage_count, view.offset, offset), {count, 1});
  Value flat =
      b.scatter(reshape(b, x, {plan.storage_count}), indices, reshape(b, update, {count}), scatter,
                [](const std::vector<Value>& args) { return std::vector<Value>{args[1]}; });
  return reshape(b, flat, original);
}

// -- Writing ----------------------------------------------------------------------------------------------------------

// The whole value in memory order.
Value in_memory_order(Builder& b, Value value, const ir::ViewSpec& view) {
  return transpose(b, value, memory_order(view));
}

Value write_elements(Builder& b, Value elements, Value value, const ir::ViewSpec& view,
                     Value offset) {
  ViewPlan plan = plan_view(stablehlo::fixed(elements.dims()), view, static_cast<bool>(offset));
  if (plan.empty) return elements;
  Value update = from_view(b, value, plan.axes);
  if (plan.by_position) return write_positions(b, elements, update, plan, view, offset);
  return write_stages(b, elements, update, plan, 0, offset);
}

// `elements` is `bytes` without the tail that filled no whole element; puts the tail back.
Value with_tail(Builder& b, Value elements, Value bytes) {
  Value head = b.flatten(retype(b, elements, DType::kU8));
  int64_t whole = head.numel().fixed(), all = bytes.numel().fixed();
  return b.concatenate({head, b.slice(bytes, {whole}, {all})}, 0);
}

int64_t bytes_of(const ir::ValueSpec& spec) {
  return stablehlo::product(spec.dims).bound() * stablehlo::byte_size(spec.dtype);
}

Value write_part(Builder& b, Value base, Value value, ir::ViewSpec view,
                 const ir::ValueSpec& result, Value offset) {
  if (view.dtype == DType::kPred && base.dtype() != DType::kPred) {
    // As bytes: the elements around would become 0 or 1.
    view.dtype = DType::kU8;
    value = b.convert(value, DType::kU8);
  } else if (view.dtype == DType::kBF16 || view.dtype == DType::kF16) {
    // As bits, and never as short floats in between: what lies around may be another type's, and a compiler that
    // computes in f32 would change its NaNs and subnormals.
    view.dtype = DType::kU16;
    value = retype(b, value, DType::kU16);
  }
  Value written = write_elements(b, retype(b, base, view.dtype), value, view, offset);
  if (bytes_of(result) % stablehlo::byte_size(view.dtype) != 0) {
    written = with_tail(b, written, b.flatten(retype(b, base, DType::kU8)));
  }
  return reshape(b, retype(b, written, result.dtype), stablehlo::fixed(result.dims));
}

}  // namespace

bool may_overlap(const ir::ViewSpec& view) {
  if (!stablehlo::all_static(view.sizes)) return view.strides != contiguous_strides(view.sizes);
  Ints sizes = stablehlo::fixed(view.sizes);
  if (count_of(sizes) == 0) return false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && view.strides[d] == 0) return true;
  }
  return !nested(view_axes(view));
}

Value read_view(Builder& b, const Value& storage, const ir::ViewSpec& view, const Value& offset) {
  if (shows_all_as_is(view, storage.dtype(), storage.dims())) return storage;
  if (!stablehlo::all_static(view.sizes) || !stablehlo::all_static(storage.dims())) {
    throw BuildError("a view of sizes " + Type{view.dtype, view.sizes}.str() +
                     " over bounded storage " + storage.type().str());
  }
  if (product(view.sizes) == Size(0)) return b.zeros({view.dtype, view.sizes});
  Value elements = retype(b, storage, view.dtype);
  ViewPlan plan = plan_view(stablehlo::fixed(elements.dims()), view, static_cast<bool>(offset));
  Value shown = plan.by_position ? read_positions(b, elements, plan, view, offset)
                                 : read_stages(b, elements, plan, offset);
  return to_view(b, shown, plan.axes, view.sizes);
}

Value write_view(Builder& b, const Value& storage, const Value& value, const ir::ViewSpec& view,
                 const ir::ValueSpec& result, const Value& offset) {
  if (value.dtype() != view.dtype || value.dims() != view.sizes) {
    throw BuildError("writing " + value.type().str() + " through a view of " +
                     Type{view.dtype, view.sizes}.str());
  }
  if (shows_all_as_is(view, result.dtype, result.dims)) return value;
  if (covers(view, bytes_of(result))) {
    Value dense = retype(b, in_memory_order(b, value, view), result.dtype);
    return dense.dims() == result.dims ? dense : b.reshape(dense, result.dims);
  }
  Value base = storage ? storage : b.zeros({result.dtype, result.dims});
  return write_part(b, base, value, view, result, offset);
}

ir::ValueSpec value_after_write(const ir::ViewSpec& view, const ir::ValueSpec* old, int64_t bytes) {
  if (covers(view, bytes)) {
    ir::ValueSpec dense{view.dtype, {}};
    for (int64_t d : memory_order(view)) dense.dims.push_back(view.sizes[d]);
    return dense;
  }
  if (old != nullptr) return *old;
  int64_t width = stablehlo::byte_size(view.dtype);
  if (bytes % width != 0) return {DType::kU8, {bytes}};
  return {view.dtype, {bytes / width}};
}

bool same_form(const ir::ValueSpec& storage, const ir::ViewSpec& compiled,
               const ir::ViewSpec& wanted) {
  if (compiled.dtype != wanted.dtype || compiled.sizes != wanted.sizes ||
      compiled.strides != wanted.strides) {
    return false;
  }
  if (!stablehlo::all_static(storage.dims) || !stablehlo::all_static(compiled.sizes)) return false;
  Ints dims = retyped_dims(stablehlo::fixed(storage.dims), storage.dtype, compiled.dtype);
  return fits(plan_view(dims, compiled, true), wanted.offset);
}

}  // namespace torch_tpu::lowering
