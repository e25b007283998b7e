// One pass over a call's arguments: its operands, its numbers and its key. The hot path of every operator.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/SmallVector.h>

#include "aten/op_info.h"
#include "engine/array.h"
#include "ir/key.h"

namespace torch_tpu::aten {

using torch::jit::Stack;

// A tensor argument: on the device (slot) or a 0-d CPU tensor, which is a number in disguise.
struct OperandRef {
  c10::TensorImpl* impl = nullptr;
  engine::Slot* slot = nullptr;
  int number = -1;     // 0-d CPU tensor: index into Walk::numbers
  int argument = 0;    // position in the schema
  int64_t offset = 0;  // storage offset in elements, within the slot
  const engine::ArrayType* type =
      nullptr;          // of the storage's value when it was walked; null: uninitialised
  int same_slot = -1;   // an earlier operand with the same storage
  int same_array = -1;  // an earlier operand with the same value
};

// A number that may travel as a device scalar.
struct NumberRef {
  enum class Kind : uint8_t { kBool, kInt, kFloat, kComplex };
  Kind kind;
  bool dynamic;
  int argument;
  bool repeated = false;  // equals the number before it in the same list: travels once
  int64_t i = 0;
  double f = 0, im = 0;
};

struct Walk {
  c10::SmallVector<OperandRef, 6> operands;
  c10::SmallVector<NumberRef, 4> numbers;
  ir::Key key;
  bool lazy = false;  // an operand is a conjugate or negative view: its array holds other values
  int device = -1;    // of the device operands; -1: there is none
};

// Reads the arguments on top of `stack`. Call with the engine's mutex held. Throws PyTorch's error for tensors on
// different devices. `device_argument` serves operators without tensor arguments (factories).
void walk_arguments(const OpInfo& info, const Stack& stack, Walk& walk);

// Whether an element of a list is written that another place of the lists reads or writes: the elements are then to be
// computed one after the other. For in-place operators on lists.
bool order_matters(const OpInfo& info, const Walk& walk);

// The tensor of an operand, which lives as long as the call's arguments do.
inline at::Tensor borrow(c10::TensorImpl* impl) {
  return at::Tensor(
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(impl));
}

// The IValues of a tensor list argument.
inline c10::ArrayRef<c10::IValue> list_of(const c10::IValue& value) {
  return value.isNone() ? c10::ArrayRef<c10::IValue>() : value.toListRef();
}

}  // namespace torch_tpu::aten
