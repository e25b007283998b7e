// From a call to a node of the IR.
#pragma once

#include <vector>

#include "aten/infer.h"
#include "aten/op_info.h"
#include "aten/walk.h"
#include "ir/graph.h"

namespace torch_tpu::aten {

// The view a tensor has of its storage.
ir::ViewSpec view_of(const c10::TensorImpl* impl, int64_t offset);

// A node without results: its operands are `values[i]` for the walk's operand i, its dynamic numbers take the next free
// slots of `scalars`, which is extended.
ir::Node make_node(const OpInfo& info, const Walk& walk, c10::ArrayRef<c10::IValue> args,
                   const std::vector<int>& values, std::vector<stablehlo::DType>& scalars,
                   bool numbers_as_constants);

// PyTorch's result_type of the call's tensors and numbers.
c10::ScalarType promoted_type(const OpInfo& info, const Walk& walk);

}  // namespace torch_tpu::aten
