// One operator call as its lowering sees it. No torch.
//
// A lowering is a function `std::vector<Value> lower_x(Call& c)`: it reads arguments by their schema names, emits through
// `c.b`, and returns the functional form's results in order (lists flattened), then the new values of the row's `writes`.
// In-place, out= and strided forms need nothing here: the engine reads operands through their views before and writes
// results through theirs after. A result whose dtype differs from the inferred one is converted by the caller; its
// shape must be right.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "stablehlo/builder.h"

namespace torch_tpu::lowering {

using stablehlo::Builder;
using stablehlo::Dims;
using stablehlo::DType;
using stablehlo::Size;
using stablehlo::Type;
using stablehlo::Value;
using Values = std::vector<Value>;

// An argument a user passed is wrong; becomes PyTorch's exception of that kind at the call.
class ArgumentError : public std::runtime_error {
 public:
  enum class Kind {
    kValue,
    kIndex,
    kType,
    kNotImplemented,
    kPythonValue
  };  // RuntimeError, IndexError, TypeError, NotImplementedError, ValueError
  ArgumentError(Kind kind, const std::string& message) : std::runtime_error(message), kind(kind) {}
  Kind kind;
};

// A condition on values, looked at by the device in debug mode; where it fails, the call raises `message`, the first
// offending value in place of its "{}".
struct DeviceCheck {
  ArgumentError::Kind kind = ArgumentError::Kind::kValue;
  std::string op;
  std::string message;
  bool of_results = false;  // a NaN or infinity came up, rather than an argument is wrong
};
struct PendingCheck {
  DeviceCheck check;
  Value ok;         // pred
  Value offending;  // integer, of ok's shape; may be absent
};

class Call {
 public:
  // `checks` takes the module's value checks; null where they are not wanted.
  Call(Builder& builder, const ir::Node& node, const std::vector<Value>& operands,
       const std::vector<Value>& scalars, std::vector<PendingCheck>* checks = nullptr)
      : b(builder), node_(node), operands_(operands), scalars_(scalars), checks_(checks) {}

  Builder& b;
  const std::string& op() const { return node_.op; }

  // Tensors, in their logical shape and own dtype. A wrapped Python number is a 0-d value.
  bool has(std::string_view name) const;  // present: neither None nor an undefined tensor
  Value tensor(std::string_view name) const;
  Value tensor(std::string_view name, DType dtype) { return b.convert(tensor(name), dtype); }
  Values tensors(std::string_view name) const;  // undefined entries are an empty Value
  // Whether the caller's tensor lies in memory in order. Values do not depend on it except where PyTorch's kernel looks
  // at it too (the factors that linalg.det keeps for its gradient).
  bool is_contiguous(std::string_view name) const;
  std::optional<Value> optional_tensor(std::string_view name) const;

  // Numbers as 0-d values of `dtype`, dynamic or static alike: what lowerings use where a number enters as a value.
  Value scalar(std::string_view name, DType dtype) const;
  Values scalars(std::string_view name, DType dtype) const;  // Scalar[] and float[]
  std::optional<Value> optional_scalar(std::string_view name, DType dtype) const;
  bool is_one(
      std::string_view name) const;  // a static number equal to 1 (see OpRow::statics, "alpha=1")
  bool is_static(std::string_view name) const;  // a number whose value is part of the key

  // Static arguments as plain values. Number arguments of type Scalar or float are static only if the row says so.
  double number(std::string_view name) const;
  std::optional<double> optional_number(std::string_view name) const;
  bool number_is_integral(std::string_view name) const;  // a Python int or bool, not a float
  int64_t integer(std::string_view name) const;
  std::optional<int64_t> optional_integer(std::string_view name) const;
  int64_t integer_or(std::string_view name, int64_t fallback) const;
  bool boolean(std::string_view name) const;
  std::vector<int64_t> ints(std::string_view name) const;   // int[]; empty when None
  std::vector<bool> bools(std::string_view name) const;     // bool[], output_mask
  std::string str(std::string_view name) const;             // "" when None
  std::optional<DType> dtype(std::string_view name) const;  // ScalarType?

  // PyTorch's promoted dtype of all tensor and number arguments (TensorIterator's common dtype).
  DType promoted() const { return node_.promoted; }
  // The inferred logical type of result i. Only where PyTorch's C++ composite or a pointwise rule inferred it; rows
  // with Infer::kLowering or kLoweringLikeFirst define their results themselves and must not ask.
  Type out(size_t i = 0) const;
  size_t results() const { return node_.results.size(); }

  // Uniform u32 bits for each element: Threefry-2x32, 20 rounds, of (seed, offset, linear index); the same in every mode,
  // bucket and layout. `stream` tells several draws of one call apart.
  Value random_bits(const Dims& dims, DType unsigned_dtype = DType::kU32, int stream = 0);
  Value random_uniform(const Dims& dims, DType float_dtype,
                       int stream = 0);  // [0, 1), as fine as the type allows

  int64_t wrap_dim(int64_t dim,
                   int64_t rank) const;  // IndexError with PyTorch's text when out of range
  std::vector<int64_t> wrap_dims(std::vector<int64_t> dims, int64_t rank) const;  // empty means all
  void check(bool ok, const std::string& message,
             ArgumentError::Kind kind = ArgumentError::Kind::kValue) const;
  // Debug mode: as `check`, of values. Build operands of it only where `checks_values()` says they are wanted.
  bool checks_values() const { return checks_ != nullptr; }
  void check_values(Value ok, Value offending, const std::string& message,
                    ArgumentError::Kind kind = ArgumentError::Kind::kValue);

 private:
  const ir::Arg& arg(std::string_view name) const;
  const ir::Node& node_;
  const std::vector<Value>& operands_;
  const std::vector<Value>& scalars_;
  std::vector<PendingCheck>* checks_;
};

inline bool Call::is_contiguous(std::string_view name) const {
  const auto* tensor = std::get_if<ir::TensorArg>(&arg(name));
  if (tensor == nullptr || tensor->operand < 0) return false;
  const ir::ViewSpec& view = node_.operands.at(tensor->operand).view;
  Size expected = 1;
  for (size_t i = view.sizes.size(); i-- > 0;) {
    if (view.sizes[i] == Size(0)) return true;
    if (view.sizes[i] != Size(1) && expected != Size(view.strides.at(i))) return false;
    expected = expected * view.sizes[i];
  }
  return true;
}

}  // namespace torch_tpu::lowering
