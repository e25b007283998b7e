// One graph of several that run one after the other.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace torch_tpu::ir {

// Where a joined graph's value comes from: an input of it (part -1), or an output of one of its parts.
struct Source {
  int part = -1;
  int index = 0;
};

struct Part {
  const Graph* graph;
  std::vector<Source> inputs;  // of this part, from inputs and earlier parts
};

// The parts' scalars are concatenated in order. Dimensions must be static.
Graph join(std::vector<ValueSpec> inputs, std::span<const Part> parts,
           std::span<const Source> outputs, std::vector<std::pair<int, int>> donations);

}  // namespace torch_tpu::ir
