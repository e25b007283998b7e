// Splitting a view's strides over the dimensions of a dense storage.
//
// The storage's flat index is written as a mixed-radix number whose digits are cut at the view's strides and, wherever the
// view allows, at the storage's own dimensions, so that typical slices need no reshape before them. Where a stride does
// not divide what it lives in, the range it covers is cropped out first and split in a further stage.
#include "lowering/view_plan.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace torch_tpu::lowering {
namespace {

using stablehlo::BuildError;

// Suffix products of the storage's dimensions, largest first, ending in 1.
std::vector<int64_t> units_of(const std::vector<int64_t>& dims) {
  std::vector<int64_t> units = {1};
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] != 1) units.push_back(units.back() * dims[d]);
  }
  std::reverse(units.begin(), units.end());
  return units;
}

// Cuts a digit at the storage's own dimensions where its window is inside one block or made of whole blocks.
void append_refined(std::vector<Digit>& digits, Digit digit, const std::vector<int64_t>& units) {
  for (int64_t boundary : units) {
    if (boundary <= digit.unit || boundary % digit.unit != 0) continue;
    int64_t block = boundary / digit.unit;
    if (block >= digit.extent || digit.extent % block != 0) continue;
    int64_t last = digit.start + digit.window() - 1;
    bool inside_one = digit.start / block == last / block;
    bool whole = digit.step == 1 && digit.start % block == 0 && digit.count % block == 0;
    if (!inside_one && !whole) continue;
    int64_t outer_count = inside_one ? 1 : digit.count / block;
    append_refined(digits, {boundary, digit.extent / block, digit.start / block, outer_count, 1},
                   units);
    digit.extent = block;
    digit.start %= block;
    if (!inside_one) digit.count = block;
  }
  digits.push_back(digit);
}

class Planner {
 public:
  Planner(const std::vector<int64_t>& storage_dims, const std::vector<Axis>& axes, int64_t offset,
          bool dynamic)
      : axes_(axes),
        units_(units_of(storage_dims)),
        room_(units_.front()),
        offset_(offset),
        dynamic_(dynamic) {
    inner_span_.assign(axes.size() + 1, 0);
    for (size_t k = axes.size(); k-- > 0;) {
      inner_span_[k] = inner_span_[k + 1] + (axes[k].size - 1) * axes[k].stride;
    }
  }

  // Empty where no stages will do.
  std::vector<Stage> run() {
    for (size_t k = 0; k < axes_.size(); ++k) {
      if (!place(k)) return {};
    }
    if (room_ > 1 || stage_.digits.empty()) push({1, room_, offset_, 1, 1});
    stages_.push_back(stage_);
    return stages_;
  }

 private:
  bool place(size_t k) {
    const Axis& axis = axes_[k];
    for (int64_t unit : units_) {
      if (place_with(k, unit)) return true;
    }
    bool dense = inner_span_[k] + 1 == count_from(k);
    if (dense && count_from(k) < room_ && crop(k)) return place_with(k, axis.stride);
    if (place_with(k, axis.stride) || place_with(k, std::gcd(axis.stride, room_))) return true;
    return crop(k) && place_with(k, axis.stride);
  }

  int64_t count_from(size_t k) const {
    int64_t count = 1;
    for (; k < axes_.size(); ++k) count *= axes_[k].size;
    return count;
  }

  // Gives axis k a digit of this unit; false where the axis or what is inside it does not fit.
  bool place_with(size_t k, int64_t unit) {
    const Axis& axis = axes_[k];
    if (axis.stride % unit != 0 || room_ % unit != 0) return false;
    int64_t start = offset_ / unit, rest = offset_ % unit;
    if (rest + inner_span_[k + 1] >= unit) return false;
    Digit digit{unit, room_ / unit, start, axis.size, axis.stride / unit};
    if (start + digit.window() > digit.extent) return false;
    push(digit);
    room_ = unit;
    offset_ = rest;
    return true;
  }

  // Ends the stage with the range that axes k and on cover, rounded up to whole strides of axis k.
  bool crop(size_t k) {
    const Axis& axis = axes_[k];
    int64_t span = inner_span_[k] + 1, length = axis.size * axis.stride;
    if (length < span || offset_ + span > room_ || (offset_ == 0 && length == room_)) return false;
    // The last stride may be shown in part only; what it lacks is padding where it lies behind the end.
    int64_t padding = dynamic_ && stages_.empty() ? length - span
                                                  : std::max<int64_t>(0, offset_ + length - room_);
    Digit digit{1, room_, offset_, length, 1};
    if (padding == 0) {
      push(digit);
    } else {
      stage_.digits.push_back(digit);
      stage_.padding = padding;
    }
    stages_.push_back(stage_);
    start_stage(k, length);
    return true;
  }

  void start_stage(size_t k, int64_t length) {
    Stage next;
    int64_t unit = length;
    for (size_t j = k; j-- > 0;) {
      next.digits.insert(next.digits.begin(), Digit{unit, axes_[j].size, 0, axes_[j].size, 1});
      unit *= axes_[j].size;
    }
    stage_ = std::move(next);
    units_ = {1};
    room_ = length;
    offset_ = 0;
  }

  void push(const Digit& digit) { append_refined(stage_.digits, digit, units_); }

  const std::vector<Axis>& axes_;
  std::vector<int64_t> units_;
  std::vector<int64_t> inner_span_;  // of the axes from k on, less one
  int64_t room_;  // the part of the index not yet split: offset_ and the axes left live in it
  int64_t offset_;
  bool dynamic_;
  Stage stage_;
  std::vector<Stage> stages_;
};

}  // namespace

std::vector<Axis> view_axes(const ir::ViewSpec& view) {
  std::vector<int64_t> sizes = stablehlo::fixed(view.sizes);
  std::vector<Axis> axes;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && view.strides.at(d) != 0)
      axes.push_back({static_cast<int64_t>(d), sizes[d], view.strides[d]});
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& x, const Axis& y) { return x.stride > y.stride; });
  return axes;
}

int64_t span_of(const std::vector<Axis>& axes) {
  int64_t span = 1;
  for (const Axis& axis : axes) span += (axis.size - 1) * axis.stride;
  return span;
}

bool nested(const std::vector<Axis>& axes) {
  int64_t span = 1;
  for (size_t k = axes.size(); k-- > 0;) {
    if (axes[k].stride < span) return false;
    span += (axes[k].size - 1) * axes[k].stride;
  }
  return true;
}

ViewPlan plan_view(const std::vector<int64_t>& storage_dims, const ir::ViewSpec& view,
                   bool dynamic) {
  ViewPlan plan;
  plan.storage_count = std::accumulate(storage_dims.begin(), storage_dims.end(), int64_t{1},
                                       std::multiplies<int64_t>());
  for (int64_t size : stablehlo::fixed(view.sizes)) plan.empty = plan.empty || size == 0;
  if (plan.empty) return plan;
  plan.axes = view_axes(view);
  if (view.offset < 0 || (!plan.axes.empty() && plan.axes.back().stride < 0) ||
      view.offset + span_of(plan.axes) > plan.storage_count) {
    throw BuildError("a view of " + std::to_string(span_of(plan.axes)) + " elements at offset " +
                     std::to_string(view.offset) + " leaves its storage of " +
                     std::to_string(plan.storage_count));
  }
  if (nested(plan.axes)) {
    plan.stages = Planner(storage_dims, plan.axes, view.offset, dynamic).run();
  }
  plan.by_position = plan.stages.empty();
  return plan;
}

bool fits(const ViewPlan& plan, int64_t offset) {
  if (plan.empty) return true;
  if (offset < 0 || offset + span_of(plan.axes) > plan.storage_count) return false;
  if (plan.by_position) return true;
  const Stage& stage = plan.stages.front();
  for (const Digit& digit : stage.digits) {
    int64_t padding = &digit == &stage.digits.back() ? stage.padding : 0;
    if ((offset / digit.unit) % digit.extent + digit.window() > digit.extent + padding)
      return false;
  }
  return true;
}

}  // namespace torch_tpu::lowering
