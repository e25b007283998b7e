// Recording a function's operators as one graph, on placeholder storages that have no buffers.
#pragma once

#include <vector>

#include "aten/entry.h"
#include "aten/plan.h"
#include "aten/walk.h"

namespace torch_tpu::aten {

// Something needed a value while only a graph was being recorded.
class NeedsValue : public std::runtime_error {
 public:
  explicit NeedsValue(const std::string& what)
      : std::runtime_error(what + " needs a value, which a captured graph does not have") {}
};

// Records operators of this thread while it lives. Values are numbered: inputs, then the node results and constants in
// the order they came; finish() renumbers as ir::Graph wants it.
class CaptureScope {
 public:
  explicit CaptureScope(int device);
  ~CaptureScope();
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

  static CaptureScope* active();
  int device() const { return device_; }

  // A placeholder storage's value.
  engine::ArrayPtr add_input(const engine::ArrayType* type);
  // Records a call of an operator that has a row; pops its arguments and pushes its results.
  void record(const OpInfo& info, Stack* stack);
  // The graph with `outputs` (captured arrays), and the real arrays it uses beside its inputs.
  ir::Graph finish(const std::vector<engine::ArrayPtr>& outputs,
                   std::vector<engine::ArrayPtr>& constants);

 private:
  int value_of(const engine::ArrayPtr& array);

  int device_;
  CaptureScope* previous_;
  std::vector<ir::ValueSpec> inputs_;
  std::vector<int> input_ids_, constant_ids_;  // their temporary numbers
  std::vector<stablehlo::DType> scalars_;      // seeds and offsets of random nodes
  std::vector<ir::Node> nodes_;
  std::vector<int> node_first_;  // temporary number of each node's first result
  std::vector<engine::ArrayPtr> constants_;
  int next_ = 0;
};

// The entry of an operator without a row: its C++ composite kernel, else PyTorch's Python decomposition, recorded.
// Returns false when there is neither, or when it needs values on the way.
bool capture_entry(const OpInfo& info, const Walk& walk, c10::ArrayRef<c10::IValue> args,
                   Entry& entry);

}  // namespace torch_tpu::aten
