// How a strided view falls apart over a dense storage: pure host arithmetic, no program is built here.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace torch_tpu::lowering {

// A view dimension with several elements at several places. Broadcast (stride 0) and size-1 dimensions are none.
struct Axis {
  int64_t dim;  // in the view
  int64_t size, stride;
};

// One dimension of the storage seen as a mixed-radix number, and the part of it that the view shows.
struct Digit {
  int64_t unit, extent;  // elements of storage per step of this digit; number of steps
  int64_t start, count, step;

  int64_t window() const { return (count - 1) * step + 1; }
  bool full() const { return count == extent && step == 1; }
};

// Reshape to the digits' extents, pad the last one, take its window of each digit. The windows are the next stage's input.
struct Stage {
  std::vector<Digit> digits;
  int64_t padding = 0;  // zeros behind the last digit
};

struct ViewPlan {
  bool empty = false;  // no elements
  bool by_position =
      false;  // no stages will do (overlapping or interleaved): compute each element's position
  int64_t storage_count = 0;
  std::vector<Axis> axes;  // largest stride first: the order of the last stage's windows in memory
  std::vector<Stage> stages;  // only the first one's starts depend on the offset
};

// Plans a view of a storage with these dimensions, which are in elements of the view's dtype. Throws BuildError when the
// view does not lie inside. `dynamic`: leave room for other offsets than this one.
ViewPlan plan_view(const std::vector<int64_t>& storage_dims, const ir::ViewSpec& view,
                   bool dynamic);

// Whether the plan's windows are right for another offset.
bool fits(const ViewPlan& plan, int64_t offset);

// The axes of a view, largest stride first.
std::vector<Axis> view_axes(const ir::ViewSpec& view);
// Elements from the first to the last one shown, both included.
int64_t span_of(const std::vector<Axis>& axes);
// Whether every axis steps over all of what the inner ones cover.
bool nested(const std::vector<Axis>& axes);

}  // namespace torch_tpu::lowering
