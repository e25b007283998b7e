// What a call's results will look like: sizes, strides, dtypes, and PyTorch's own argument errors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <vector>

#include "aten/op_info.h"
#include "aten/walk.h"

namespace torch_tpu::aten {

struct ResultMeta {
  bool defined = true;
  c10::ScalarType dtype = c10::ScalarType::Float;
  c10::DimVector sizes, strides;
};

struct Inferred {
  std::vector<ResultMeta> results;  // the fresh returns, lists flattened
  std::vector<int> list_sizes;      // per list return
};

// Within an InferScope every operator on tpu tensors only makes valueless results and writes nothing.
class InferScope {
 public:
  InferScope() : previous_(active()) { flag() = true; }
  ~InferScope() { flag() = previous_; }
  static bool active() { return flag(); }

 private:
  static bool& flag();
  bool previous_;
};

// The fresh results of a functional form called with `args` (as many as its schema has). For in-place and out= forms the
// checks run and nothing comes back.
Inferred infer_results(const OpInfo& info, const Walk& walk, c10::ArrayRef<c10::IValue> args);
// Whether infer_results has a way for this operator.
bool can_infer(const OpInfo& info);

// Tensors of the inferred kind, with no value yet, on `device`.
at::Tensor make_valueless(const ResultMeta& meta, int device);

}  // namespace torch_tpu::aten
