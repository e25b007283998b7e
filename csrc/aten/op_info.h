// What the boxed kernel needs to know of an operator: read off its schema and its row in the operator table, once.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>

#include <optional>
#include <string>
#include <vector>

#include "lowering/table.h"

namespace torch_tpu::aten {

enum class ArgKind : uint8_t {
  kTensor,      // Tensor, Tensor?
  kTensorList,  // Tensor[], Tensor?[]
  kNumber,      // Scalar, float (and optional): a value unless the row makes it static
  kNumberList,  // Scalar[], float[]
  kStatic,      // int, bool, str, dtype, layout and lists of them: part of the key
  kIgnored,     // device, generator, pin_memory
};

enum class NumberPolicy : uint8_t { kDynamic, kStatic, kStaticIfOne, kStaticIfSmall };

struct ArgInfo {
  std::string name;
  ArgKind kind;
  NumberPolicy policy = NumberPolicy::kDynamic;
  bool written = false;  // by the schema or by the row's `writes`
  bool is_out = false;   // an out= argument: not an argument of the functional form
  bool is_random = false;
};

enum class ReturnKind : uint8_t {
  kFresh,
  kFreshList,
  kArgument,  // a written argument is handed back
  kExtent,    // an integer: the second-last size of an argument (attention's max_q and max_k)
};
struct ReturnInfo {
  ReturnKind kind;
  int argument = -1;  // kArgument, kExtent: which one
};

// How results come to be: the form of this overload of the operator.
enum class Form : uint8_t { kFunctional, kInplace, kOut };

struct OpInfo {
  explicit OpInfo(const c10::OperatorHandle& handle);

  c10::OperatorHandle handle;
  std::string name;   // "aten::add_.Tensor"
  std::string label;  // "add_": for reports, lives for the process
  Form form = Form::kFunctional;
  std::optional<c10::OperatorHandle> functional;  // of an in-place or out= form, where there is one
  bool factory =
      false;  // `functional` also takes dtype, layout, device and pin_memory, which out= stands for
  const lowering::OpRow* row = nullptr;  // of the functional form, or of this overload itself
  std::vector<ArgInfo> args;
  std::vector<ReturnInfo> returns;
  std::vector<int> written;      // arguments in the order results are written to them
  int generator = -1;            // argument index
  bool numbers_static = false;   // no row: decomposed with its numbers as constants
  bool structured = false;       // has a CompositeExplicitAutogradNonFunctional kernel
  bool writes_expanded = false;  // may write elements that share memory: they all get one value
  bool counts_versions = false;  // the written tensors' versions are not counted up by PyTorch
  bool in_turn = false;          // writes lists of tensors, by PyTorch's word one after the other
  bool composite = false;        // has a CompositeExplicitAutograd kernel
};

// "add_.Tensor" without the namespace.
std::string overload_name(const c10::FunctionSchema& schema);

}  // namespace torch_tpu::aten
