// What the kernel keeps per key: the metadata of a call's results and the programs that compute them.
#pragma once

#include <c10/util/SmallVector.h>

#include <memory>
#include <unordered_set>
#include <vector>

#include "aten/infer.h"
#include "aten/op_info.h"
#include "aten/walk.h"
#include "engine/diagnostics.h"
#include "engine/recorder.h"
#include "ir/graph.h"

namespace torch_tpu::aten {

// One array a call yields.
struct OutputPlan {
  int operand = -1;                         // >= 0: becomes the value of this operand's storage
  const engine::ArrayType* type = nullptr;  // null: nothing is computed (zero bytes)
  int program_output = -1;
  int64_t storage_bytes = 0;
};

// One tensor handed back that is new.
struct FreshPlan {
  bool defined = true;
  int output = -1;  // whose storage it has; several may share one
  caffe2::TypeMeta dtype;
  c10::DimVector sizes, strides;
  int64_t offset = 0;
};

// An out= argument that takes another size first; the call then starts again.
struct ResizePlan {
  int operand;
  c10::DimVector sizes, strides;
};

// A program for some storage offsets (fixed ones, or arguments of the program) and the settings it was made under.
struct Variant {
  c10::SmallVector<int64_t, 6> offsets;  // per operand, as compiled
  std::vector<int> dynamic;              // operands whose offset is an argument
  std::vector<std::unordered_set<int64_t>>
      verified;  // per dynamic operand: offsets known to have the compiled form
  std::shared_ptr<engine::Step> step;  // null: nothing is computed
  std::vector<lowering::DeviceCheck>
      checks;            // what the program's last output says, where there are any
  int user_options = 0;  // engine::user_options()
  std::optional<stablehlo::Precision> precision;  // matmul_precision(), where it has contractions
};

struct Entry {
  ir::Graph graph;                          // of the static variant; variants are derived from it
  std::vector<int> inputs;                  // operand per program input
  std::vector<engine::ArrayPtr> constants;  // further inputs after those
  std::vector<stablehlo::DType>
      scalars;  // the dynamic numbers, in walk order; then seeds and offsets
  std::vector<OutputPlan> outputs;
  std::vector<FreshPlan> fresh;
  std::vector<int> list_sizes;
  std::vector<ResizePlan> resizes;
  std::vector<Variant> variants;
  int random_draws = 0;        // (seed, offset) pairs among the scalars
  bool shares_memory = false;  // an out= argument has the storage of another operand
};

// A graph of the one node, and what the kernel does around its program. Null where the operator has neither a lowering
// nor a composite that can be captured.
std::shared_ptr<Entry> build_entry(const OpInfo& info, const Walk& walk,
                                   c10::ArrayRef<c10::IValue> args);
// Whether `variant` gives the right values for the walk's offsets, and was made under the settings of now.
bool fits(Variant& variant, const Entry& entry, const Walk& walk);
// For the walk's offsets. From the second offset on (all else equal) the ones that vary become arguments.
Variant& add_variant(const OpInfo& info, Entry& entry, const Walk& walk,
                     engine::ValueChecks checks);

}  // namespace torch_tpu::aten
