// The functional IR: nodes (one ATen call each), the graph they form, and what a program of it reads and writes.
// No torch. A node is lowered by lowering/module.h; it is checked by ir/verify.h.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "stablehlo/types.h"

namespace torch_tpu::ir {

using stablehlo::Dims;
using stablehlo::DType;
using stablehlo::Size;

// What a storage holds: a dense row-major array. dims are in memory order (largest stride first).
struct ValueSpec {
  DType dtype = DType::kF32;
  Dims dims;
  friend bool operator==(const ValueSpec& a, const ValueSpec& b) {
    return a.dtype == b.dtype && a.dims == b.dims;
  }
};

// How a tensor sees its storage; strides and offset are in elements of dtype, as in PyTorch.
struct ViewSpec {
  DType dtype = DType::kF32;
  Dims sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;
  int offset_slot =
      -1;  // >= 0: the offset is this dynamic scalar (an i64) and `offset` is one valid example of it
};

// A number argument. Static ones are part of the key; dynamic ones arrive in the packed scalar parameter.
struct Number {
  enum class Kind : uint8_t { kBool, kInt, kFloat, kComplex };
  Kind kind = Kind::kInt;
  int slot = -1;         // >= 0: dynamic, index into Graph::scalars
  int64_t i = 0;         // bool and int
  double f = 0, im = 0;  // float; real and imaginary part
};

struct None {};
struct TensorArg {
  int operand = -1;
};  // index into Node::operands; -1: undefined
struct TensorListArg {
  std::vector<int> operands;
};
using Arg = std::variant<None, TensorArg, TensorListArg, Number, std::vector<Number>,
                         std::vector<int64_t>, std::vector<bool>, std::string, DType>;

// A tensor operand: a value of the graph seen through a view.
struct Operand {
  int value =
      -1;  // index into the graph's values (inputs first, then node results); -1: uninitialised, reads as zeros
  ViewSpec view;
  int scalar_slot =
      -1;  // >= 0: a 0-d CPU tensor; its value is this dynamic scalar, converted to view.dtype
  Number constant;  // a 0-d CPU tensor with a static value (under capture), where is_constant
  bool is_constant = false;
  bool wrapped_number =
      false;  // a Python number that became a 0-d CPU tensor (dtype yields in promotion)
};

// A tensor the node produces. A fresh one becomes a new storage's value; a written one goes through `view` into the
// storage value `base` and yields that storage's next value.
struct Result {
  ViewSpec view;
  bool undefined =
      false;  // the lowering returns an empty Value here (a gradient masked out): no value is made
  bool written = false;
  int base = -1;  // written: the value written into; -1: an uninitialised storage (zeros)
  int64_t storage_bytes = 0;  // size of the storage
  ValueSpec value;            // what the storage holds afterwards
};

struct Node {
  std::string op;                  // functional overload, "add.Tensor"; key of the operator table
  std::vector<std::string> names;  // argument names, by position
  std::vector<Arg> args;
  std::vector<Operand> operands;
  std::vector<Result> results;
  DType promoted = DType::kF32;  // PyTorch's result_type of the tensor and number arguments
  int seed_slot = -1;  // random nodes: dynamic scalars seed and offset (i64 each, consecutive)
};

// Dynamic scalars travel in one packed u32 parameter, two words each for 64-bit types, in order.
struct Graph {
  std::vector<ValueSpec> inputs;  // values 0 .. inputs.size()-1
  std::vector<DType> scalars;     // kF32, kF64, kI64; the packed parameter comes last
  std::vector<Node> nodes;        // each appends its results to the values, in order
  std::vector<int> outputs;       // values a program returns
  std::vector<std::pair<int, int>>
      donations;  // (input, output): output may take the input's memory
};

std::string to_string(const Graph& graph);  // for errors and tests
// Empty when the graph is well formed; else what is wrong and where. Values are defined before use, views lie inside
// their storages, donated inputs are of their output's type and are donated once.
std::string verify(const Graph& graph);

}  // namespace torch_tpu::ir
