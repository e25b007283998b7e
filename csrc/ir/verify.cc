// The validator of graphs.
#include <variant>

#include "ir/graph.h"

namespace torch_tpu::ir {
namespace {

std::string spec_text(const ValueSpec& spec) {
  return stablehlo::Type{spec.dtype, spec.dims}.str();
}

int64_t bytes_of(const ValueSpec& spec) {
  return stablehlo::product(spec.dims).bound() * stablehlo::byte_size(spec.dtype);
}

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  std::string run() {
    for (size_t i = 0; i < graph_.inputs.size() && ok(); ++i) {
      where_ = "input " + std::to_string(i);
      check_spec(graph_.inputs[i]);
      values_.push_back(&graph_.inputs[i]);
    }
    for (size_t i = 0; i < graph_.scalars.size() && ok(); ++i) {
      where_ = "scalar " + std::to_string(i);
      const DType t = graph_.scalars[i];
      if (t != DType::kF32 && t != DType::kF64 && t != DType::kI64)
        error("scalars are f32, f64 or i64");
    }
    for (size_t i = 0; i < graph_.nodes.size() && ok(); ++i) check_node(graph_.nodes[i], i);
    where_ = "outputs";
    for (size_t i = 0; i < graph_.outputs.size() && ok(); ++i)
      check_defined(graph_.outputs[i], "output");
    if (ok()) check_donations();
    return problem_;
  }

 private:
  bool ok() const { return problem_.empty(); }
  void error(const std::string& what) {
    if (ok()) problem_ = where_ + ": " + what;
  }

  void check_spec(const ValueSpec& spec) {
    for (const Size& d : spec.dims) {
      if (d.bound() < 0) error("a negative dimension in " + spec_text(spec));
    }
  }

  void check_defined(int value, const char* role) {
    if (value < 0 || value >= static_cast<int>(values_.size())) {
      error(std::string(role) + " uses value " + std::to_string(value) +
            ", which is not defined yet");
    } else if (values_[value] == nullptr) {
      error(std::string(role) + " uses value " + std::to_string(value) +
            ", a result left undefined");
    }
  }

  void check_slot(int slot, const char* role, bool integer) {
    if (slot >= static_cast<int>(graph_.scalars.size())) {
      error(std::string(role) + " is scalar " + std::to_string(slot) + " of " +
            std::to_string(graph_.scalars.size()));
    } else if (integer && graph_.scalars[slot] != DType::kI64) {
      error(std::string(role) + " needs an i64 scalar");
    }
  }

  // Whether the elements `view` names lie inside a storage that holds `bytes`.
  void check_view(const ViewSpec& view, int64_t bytes) {
    if (view.sizes.size() != view.strides.size()) {
      error("a view has " + std::to_string(view.sizes.size()) + " sizes and " +
            std::to_string(view.strides.size()) + " strides");
      return;
    }
    int64_t last = view.offset;
    bool empty = false;
    for (size_t i = 0; i < view.sizes.size(); ++i) {
      const int64_t size = view.sizes[i].bound();
      if (size < 0 || view.strides[i] < 0) error("a view has a negative size or stride");
      empty = empty || size == 0;
      last += (size - 1) * view.strides[i];
    }
    if (view.offset < 0) error("a view has the negative offset " + std::to_string(view.offset));
    const int64_t needed = (last + 1) * stablehlo::byte_size(view.dtype);
    if (!empty && needed > bytes) {
      error("a view needs " + std::to_string(needed) + " bytes of a storage of " +
            std::to_string(bytes));
    }
    if (view.offset_slot >= 0) check_slot(view.offset_slot, "a view's offset", true);
  }

  void check_number(const Number& n) {
    if (n.slot >= 0) check_slot(n.slot, "a number", false);
  }

  void check_operand_index(const Node& node, int operand) {
    if (operand >= static_cast<int>(node.operands.size())) {
      error("an argument names operand " + std::to_string(operand) + " of " +
            std::to_string(node.operands.size()));
    }
  }

  // A 0-d CPU tensor, passed as a number.
  void check_number_operand(const Operand& operand) {
    if (operand.value >= 0)
      error("an operand is both a number and value " + std::to_string(operand.value));
    if (!operand.view.sizes.empty()) error("an operand that is a number has dimensions");
    if (operand.scalar_slot >= 0) check_slot(operand.scalar_slot, "an operand", false);
    if (operand.is_constant) check_number(operand.constant);
  }

  void check_arg(const Node& node, const Arg& arg) {
    if (const auto* tensor = std::get_if<TensorArg>(&arg)) {
      check_operand_index(node, tensor->operand);
    } else if (const auto* list = std::get_if<TensorListArg>(&arg)) {
      for (const int operand : list->operands) check_operand_index(node, operand);
    } else if (const auto* number = std::get_if<Number>(&arg)) {
      check_number(*number);
    } else if (const auto* numbers = std::get_if<std::vector<Number>>(&arg)) {
      for (const Number& n : *numbers) check_number(n);
    }
  }

  void check_result(const Result& result) {
    if (result.undefined) return;
    check_spec(result.value);
    check_view(result.view, bytes_of(result.value));
    if (!result.written) {
      if (result.base >= 0)
        error("a fresh result names the storage value " + std::to_string(result.base));
    } else if (result.base >= 0) {
      check_defined(result.base, "a written result");
    }
    if (result.storage_bytes > 0 && stablehlo::all_static(result.value.dims) &&
        bytes_of(result.value) > result.storage_bytes) {
      error(spec_text(result.value) + " does not fit into a storage of " +
            std::to_string(result.storage_bytes) + " bytes");
    }
  }

  void check_node(const Node& node, size_t index) {
    where_ = "node " + std::to_string(index) + " (" + node.op + ")";
    if (node.op.empty()) error("it names no operator");
    if (node.names.size() != node.args.size()) {
      error(std::to_string(node.names.size()) + " names for " + std::to_string(node.args.size()) +
            " arguments");
    }
    for (const Operand& operand : node.operands) {
      if (operand.scalar_slot >= 0 || operand.is_constant) {
        check_number_operand(operand);
        continue;
      }
      if (operand.value < 0) continue;  // uninitialised: any view of it reads zeros
      check_defined(operand.value, "an operand");
      if (ok()) check_view(operand.view, bytes_of(*values_[operand.value]));
    }
    for (const Arg& arg : node.args) check_arg(node, arg);
    if (node.seed_slot >= 0) {
      check_slot(node.seed_slot, "the seed", true);
      if (ok()) check_slot(node.seed_slot + 1, "the random offset", true);
    }
    // A result may be written over an earlier one of the same node. An undefined one keeps its number.
    for (const Result& result : node.results) {
      check_result(result);
      values_.push_back(result.undefined ? nullptr : &result.value);
    }
  }

  void check_donations() {
    std::vector<bool> given(graph_.inputs.size(), false);
    std::vector<bool> taken(graph_.outputs.size(), false);
    for (const auto& [input, output] : graph_.donations) {
      where_ =
          "donation of input " + std::to_string(input) + " to output " + std::to_string(output);
      if (input < 0 || input >= static_cast<int>(given.size()) || output < 0 ||
          output >= static_cast<int>(taken.size())) {
        error("one of them does not exist");
        return;
      }
      if (given[input]) error("the input is donated twice");
      if (taken[output]) error("the output takes two inputs");
      const ValueSpec& from = graph_.inputs[input];
      const ValueSpec& to = *values_[graph_.outputs[output]];
      if (!(from == to)) error(spec_text(from) + " is not of the output's type " + spec_text(to));
      given[input] = true;
      taken[output] = true;
    }
  }

  const Graph& graph_;
  std::vector<const ValueSpec*> values_;
  std::string where_;
  std::string problem_;
};

}  // namespace

std::string verify(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace torch_tpu::ir
