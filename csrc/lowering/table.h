// The operator table: one row an operator. Registration, output inference, keys, the coverage page and the list of
// operator tests all come from it; nothing is registered anywhere else.
//
// Each family file (pointwise.cc, reduction.cc, ...) holds its lowerings and, at its end, its rows:
//     const OpRow kPointwiseRows[] = {{"add.Tensor", lower_add, "alpha=1"}, ...};
// A row serves the functional overload, its in-place and out= forms.
#pragma once

#include <span>
#include <string_view>

#include "lowering/call.h"

namespace torch_tpu::lowering {

using LowerFn = Values (*)(Call& c);

// Where the results' sizes, strides, dtypes and the argument errors come from.
enum class Infer : uint8_t {
  kComposite,  // PyTorch's C++ composite kernel (structured or explicit-autograd): the default where one exists
  kPointwise,  // TensorIterator: broadcast sizes, promoted dtype, preserved strides (operators with no composite kernel)
  kCompare,    // the same with bool results
  kLikeFirst,  // sizes, strides and dtype of the first tensor argument (relu, fill)
  kLowering,   // the lowering's own result types, contiguous
  kLoweringLikeFirst,  // the same, but what has the first tensor's sizes lies in memory as it does
};
enum class Tolerance : uint8_t {
  kExact,
  kElementwise,
  kTranscendental,
  kReduction,
  kContraction,
  kRandom
};

struct OpRow {
  std::string_view
      name;  // functional overload: "add.Tensor"; "relu" stands for the default overload
  LowerFn lower;
  // Number arguments that are part of the key, comma-separated: "eps" always, "alpha=1" only when it equals 1,
  // "exponent:small" when it is an integer or half of magnitude up to 4. All others are values: changing them
  // compiles nothing. ints, bools, strings and dtypes are always static.
  std::string_view statics = "";
  Infer infer = Infer::kComposite;
  Tolerance tolerance = Tolerance::kElementwise;
  std::string_view writes =
      "";  // arguments written without the schema saying so (native_batch_norm's running stats)
  bool random = false;  // takes seed and offset
};

std::span<const OpRow> operator_table();       // all families' rows
const OpRow* find_row(std::string_view name);  // null when there is none

}  // namespace torch_tpu::lowering
