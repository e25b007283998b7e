// Reading one operator call's arguments by their schema names.
#include "lowering/call.h"

#include <algorithm>
#include <cmath>

#include "lowering/number.h"

namespace torch_tpu::lowering {
namespace {

using ir::Number;
using stablehlo::BuildError;

const ir::Arg* find_arg(const ir::Node& node, std::string_view name) {
  for (size_t i = 0; i < node.names.size() && i < node.args.size(); ++i) {
    if (node.names[i] == name) return &node.args[i];
  }
  return nullptr;
}

[[noreturn]] void fail(const ir::Node& node, std::string_view name, const std::string& what) {
  throw BuildError(node.op + ": argument '" + std::string(name) + "' " + what);
}

const Number& static_number(const ir::Node& node, const ir::Arg& arg, std::string_view name) {
  const Number* number = std::get_if<Number>(&arg);
  if (number == nullptr) fail(node, name, "is not a number");
  if (number->slot >= 0)
    fail(node, name, "is read as a static number, but its row does not list it in statics");
  return *number;
}

int64_t integer_value(const ir::Node& node, const Number& number, std::string_view name) {
  if (number.kind == Number::Kind::kInt || number.kind == Number::Kind::kBool) return number.i;
  bool whole = number.kind == Number::Kind::kFloat && std::trunc(number.f) == number.f &&
               std::abs(number.f) < 9007199254740992.0;
  if (!whole) fail(node, name, "is not an integer");
  return static_cast<int64_t>(number.f);
}

Value number_value(Builder& b, const ir::Node& node, const std::vector<Value>& scalars,
                   const Number& number, DType dtype, std::string_view name) {
  if (number.slot < 0) return constant_number(b, number, dtype);
  if (static_cast<size_t>(number.slot) >= scalars.size() || !scalars[number.slot]) {
    fail(node, name,
         "names scalar slot " + std::to_string(number.slot) + ", which the program does not have");
  }
  return b.convert(scalars[number.slot], dtype);
}

}  // namespace

const ir::Arg& Call::arg(std::string_view name) const {
  const ir::Arg* found = find_arg(node_, name);
  if (found == nullptr) fail(node_, name, "does not exist in this overload");
  return *found;
}

// -- Tensors ----------------------------------------------------------------------------------------------------

bool Call::has(std::string_view name) const {
  const ir::Arg* found = find_arg(node_, name);
  if (found == nullptr || std::holds_alternative<ir::None>(*found)) return false;
  const auto* tensor = std::get_if<ir::TensorArg>(found);
  return tensor == nullptr || tensor->operand >= 0;
}

Value Call::tensor(std::string_view name) const {
  const auto* tensor = std::get_if<ir::TensorArg>(&arg(name));
  if (tensor == nullptr || tensor->operand < 0) fail(node_, name, "is not a tensor");
  return operands_.at(tensor->operand);
}

Values Call::tensors(std::string_view name) const {
  const ir::Arg& found = arg(name);
  if (std::holds_alternative<ir::None>(found)) return {};
  const auto* list = std::get_if<ir::TensorListArg>(&found);
  if (list == nullptr) fail(node_, name, "is not a list of tensors");
  Values values;
  values.reserve(list->operands.size());
  for (int operand : list->operands)
    values.push_back(operand < 0 ? Value() : operands_.at(operand));
  return values;
}

std::optional<Value> Call::optional_tensor(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  return tensor(name);
}

// -- Numbers as values --------------------------------------------------------------------------------------------

Value Call::scalar(std::string_view name, DType dtype) const {
  const ir::Arg& found = arg(name);
  if (std::holds_alternative<ir::TensorArg>(found)) {
    Value value = tensor(name);
    if (value.rank() != 0)
      fail(node_, name, "is a tensor of " + value.type().str() + ", not a number");
    return b.convert(value, dtype);
  }
  const Number* number = std::get_if<Number>(&found);
  if (number == nullptr) fail(node_, name, "is not a number");
  return number_value(b, node_, scalars_, *number, dtype, name);
}

Values Call::scalars(std::string_view name, DType dtype) const {
  const ir::Arg& found = arg(name);
  Values values;
  if (std::holds_alternative<ir::None>(found)) return values;
  if (const auto* numbers = std::get_if<std::vector<Number>>(&found)) {
    for (const Number& number : *numbers) {
      values.push_back(number_value(b, node_, scalars_, number, dtype, name));
    }
    return values;
  }
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&found)) {
    for (int64_t i : *integers) values.push_back(constant_number(b, Number{.i = i}, dtype));
    return values;
  }
  fail(node_, name, "is not a list of numbers");
}

std::optional<Value> Call::optional_scalar(std::string_view name, DType dtype) const {
  if (!has(name)) return std::nullopt;
  return scalar(name, dtype);
}

bool Call::is_one(std::string_view name) const {
  const ir::Arg* found = find_arg(node_, name);
  const Number* number = found == nullptr ? nullptr : std::get_if<Number>(found);
  return number != nullptr && number->slot < 0 && real_value(*number) == 1.0 && number->im == 0.0;
}

bool Call::is_static(std::string_view name) const {
  const ir::Arg* found = find_arg(node_, name);
  const Number* number = found == nullptr ? nullptr : std::get_if<Number>(found);
  return number != nullptr && number->slot < 0;
}

// -- Static arguments ---------------------------------------------------------------------------------------------

double Call::number(std::string_view name) const {
  return real_value(static_number(node_, arg(name), name));
}

std::optional<double> Call::optional_number(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  return number(name);
}

bool Call::number_is_integral(std::string_view name) const {
  const Number* number = std::get_if<Number>(&arg(name));
  if (number == nullptr) fail(node_, name, "is not a number");
  return number->kind == Number::Kind::kInt || number->kind == Number::Kind::kBool;
}

int64_t Call::integer(std::string_view name) const {
  return integer_value(node_, static_number(node_, arg(name), name), name);
}

std::optional<int64_t> Call::optional_integer(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  return integer(name);
}

int64_t Call::integer_or(std::string_view name, int64_t fallback) const {
  return optional_integer(name).value_or(fallback);
}

bool Call::boolean(std::string_view name) const {
  const Number& number = static_number(node_, arg(name), name);
  return real_value(number) != 0.0;
}

std::vector<int64_t> Call::ints(std::string_view name) const {
  const ir::Arg* found = find_arg(node_, name);
  if (found == nullptr || std::holds_alternative<ir::None>(*found)) return {};
  if (const auto* integers = std::get_if<std::vector<int64_t>>(found)) return *integers;
  if (const auto* numbers = std::get_if<std::vector<Number>>(found)) {
    std::vector<int64_t> values;
    for (const Number& number : *numbers) {
      if (number.slot >= 0)
        fail(node_, name, "is read as static integers, but holds a dynamic one");
      values.push_back(integer_value(node_, number, name));
    }
    return values;
  }
  return {integer(name)};
}

std::vector<bool> Call::bools(std::string_view name) const {
  const ir::Arg& found = arg(name);
  if (std::holds_alternative<ir::None>(found)) return {};
  const auto* flags = std::get_if<std::vector<bool>>(&found);
  if (flags == nullptr) fail(node_, name, "is not a list of bools");
  return *flags;
}

std::string Call::str(std::string_view name) const {
  const ir::Arg* found = find_arg(node_, name);
  if (found == nullptr || std::holds_alternative<ir::None>(*found)) return "";
  const auto* text = std::get_if<std::string>(found);
  if (text == nullptr) fail(node_, name, "is not a string");
  return *text;
}

std::optional<DType> Call::dtype(std::string_view name) const {
  const ir::Arg* found = find_arg(node_, name);
  if (found == nullptr || std::holds_alternative<ir::None>(*found)) return std::nullopt;
  const auto* dtype = std::get_if<DType>(found);
  if (dtype == nullptr) fail(node_, name, "is not a dtype");
  return *dtype;
}

Type Call::out(size_t i) const {
  if (i >= node_.results.size()) {
    throw BuildError(node_.op + ": result " + std::to_string(i) +
                     " is asked for, but nothing inferred it");
  }
  const ir::ViewSpec& view = node_.results[i].view;
  return {view.dtype, view.sizes};
}

// -- Checks -------------------------------------------------------------------------------------------------------

int64_t Call::wrap_dim(int64_t dim, int64_t rank) const {
  int64_t range = std::max<int64_t>(rank, 1);
  if (dim < -range || dim >= range) {
    throw ArgumentError(ArgumentError::Kind::kIndex,
                        "Dimension out of range (expected to be in range of [-" +
                            std::to_string(range) + ", " + std::to_string(range - 1) +
                            "], but got " + std::to_string(dim) + ")");
  }
  return dim < 0 ? dim + range : dim;
}

std::vector<int64_t> Call::wrap_dims(std::vector<int64_t> dims, int64_t rank) const {
  if (dims.empty()) {
    for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
    return dims;
  }
  std::vector<bool> seen(std::max<int64_t>(rank, 1), false);
  for (int64_t& dim : dims) {
    dim = wrap_dim(dim, rank);
    check(!seen[dim], "dim " + std::to_string(dim) + " appears multiple times in the list of dims");
    seen[dim] = true;
  }
  if (rank == 0) dims.clear();  // dimension 0 of a 0-d tensor: nothing to do
  return dims;
}

void Call::check(bool ok, const std::string& message, ArgumentError::Kind kind) const {
  if (!ok) throw ArgumentError(kind, message);
}

void Call::check_values(Value ok, Value offending, const std::string& message,
                        ArgumentError::Kind kind) {
  if (checks_ != nullptr) checks_->push_back({{kind, node_.op, message}, ok, offending});
}

}  // namespace torch_tpu::lowering
