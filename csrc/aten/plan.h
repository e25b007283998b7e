// A call as a node with its results placed: which are new tensors, which are written into which operand.
#pragma once

#include <utility>
#include <vector>

#include "aten/entry.h"
#include "aten/infer.h"
#include "ir/graph.h"

namespace torch_tpu::aten {

struct NodePlan {
  ir::Node node;
  Inferred fresh;  // metadata of the new tensors only; result i of the node is fresh i
  std::vector<std::pair<int, int>>
      writes;  // (operand, result) that ends as the storage's value; one a storage
  std::vector<ResizePlan> resizes;  // where there are any, apply them and plan again
};

void apply_resizes(const std::vector<ResizePlan>& resizes, const Walk& walk);

// Infers, checks and places. `values[i]` is the graph value of the walk's operand i (-1: uninitialised); results are
// numbered from `first_result`. The operator must have a row. Throws PyTorch's argument errors.
NodePlan plan_node(const OpInfo& info, const Walk& walk, c10::ArrayRef<c10::IValue> args,
                   const std::vector<int>& values, int first_result,
                   std::vector<stablehlo::DType>& scalars, bool numbers_as_constants);

}  // namespace torch_tpu::aten
