// Graphs as text, for errors and tests.
#include <charconv>

#include "ir/graph.h"

namespace torch_tpu::ir {
namespace {

template <typename T>
std::string join(const T& items) {
  std::string text = "[";
  for (const auto& item : items) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(item);
  }
  return text + "]";
}

std::string shape(DType dtype, const Dims& dims) {
  std::string text = stablehlo::mlir_name(dtype);
  text += '[';
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ',';
    text += dims[i].str();
  }
  return text + "]";
}

std::string real(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof(digits), value).ptr};
}

std::string view_text(const ViewSpec& view) {
  std::string text = shape(view.dtype, view.sizes) + " strides " + join(view.strides);
  if (view.offset_slot >= 0) {
    text += " offset $" + std::to_string(view.offset_slot) + " (as " + std::to_string(view.offset) +
            ")";
  } else if (view.offset != 0) {
    text += " offset " + std::to_string(view.offset);
  }
  return text;
}

std::string value_name(int value) {
  return value < 0 ? "uninitialised" : "%" + std::to_string(value);
}

std::string number_text(const Number& n) {
  if (n.slot >= 0) return "$" + std::to_string(n.slot);
  switch (n.kind) {
    case Number::Kind::kBool:
      return n.i != 0 ? "true" : "false";
    case Number::Kind::kInt:
      return std::to_string(n.i);
    case Number::Kind::kFloat:
      return real(n.f);
    case Number::Kind::kComplex:
      return "(" + real(n.f) + "+" + real(n.im) + "j)";
  }
  return "?";
}

std::string operand_text(const Node& node, int index) {
  if (index < 0) return "undefined";
  if (index >= static_cast<int>(node.operands.size()))
    return "operand " + std::to_string(index) + "?";
  const Operand& operand = node.operands[index];
  std::string text = value_name(operand.value);
  if (operand.scalar_slot >= 0) text = "$" + std::to_string(operand.scalar_slot);
  if (operand.is_constant) text = number_text(operand.constant);
  return text + ":" + view_text(operand.view) + (operand.wrapped_number ? " number" : "");
}

struct ArgText {
  const Node& node;
  std::string operator()(const None&) const { return "none"; }
  std::string operator()(const TensorArg& a) const { return operand_text(node, a.operand); }
  std::string operator()(const TensorListArg& a) const {
    std::string text = "[";
    for (const int operand : a.operands) {
      if (text.size() > 1) text += ", ";
      text += operand_text(node, operand);
    }
    return text + "]";
  }
  std::string operator()(const Number& a) const { return number_text(a); }
  std::string operator()(const std::vector<Number>& a) const {
    std::string text = "[";
    for (const Number& n : a) {
      if (text.size() > 1) text += ", ";
      text += number_text(n);
    }
    return text + "]";
  }
  std::string operator()(const std::vector<int64_t>& a) const { return join(a); }
  std::string operator()(const std::vector<bool>& a) const { return join(a); }
  std::string operator()(const std::string& a) const { return "\"" + a + "\""; }
  std::string operator()(const DType& a) const { return stablehlo::mlir_name(a); }
};

std::string result_text(const Result& result, int value) {
  if (result.undefined) return "%" + std::to_string(value) + ": undefined";
  std::string text =
      "%" + std::to_string(value) + ": " + shape(result.value.dtype, result.value.dims);
  text += (result.written ? " = " + value_name(result.base) + " written through " : " seen as ");
  return text + view_text(result.view);
}

}  // namespace

std::string to_string(const Graph& graph) {
  std::string text;
  int value = 0;
  for (const ValueSpec& input : graph.inputs) {
    text += "input %" + std::to_string(value++) + ": " + shape(input.dtype, input.dims) + "\n";
  }
  for (size_t i = 0; i < graph.scalars.size(); ++i) {
    text += "scalar $" + std::to_string(i) + ": " + stablehlo::mlir_name(graph.scalars[i]) + "\n";
  }
  for (const Node& node : graph.nodes) {
    text += node.op + "(";
    for (size_t i = 0; i < node.args.size(); ++i) {
      if (i > 0) text += ", ";
      if (i < node.names.size()) text += node.names[i] + "=";
      text += std::visit(ArgText{node}, node.args[i]);
    }
    text += std::string(") promoted ") + stablehlo::mlir_name(node.promoted);
    if (node.seed_slot >= 0) text += " seed $" + std::to_string(node.seed_slot);
    text += '\n';
    for (const Result& result : node.results) text += "  " + result_text(result, value++) + "\n";
  }
  text += "return";
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    text += (i > 0 ? ", " : " ") + value_name(graph.outputs[i]);
  text += '\n';
  for (const auto& [input, output] : graph.donations) {
    text += "donate input " + std::to_string(input) + " to output " + std::to_string(output) + "\n";
  }
  return text;
}

}  // namespace torch_tpu::ir
