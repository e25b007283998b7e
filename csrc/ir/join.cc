#include "ir/join.h"

namespace torch_tpu::ir {
namespace {

void shift(int& slot, int by) {
  if (slot >= 0) slot += by;
}

// A part's node among the joined graph's values and scalars.
Node placed(const Node& original, const std::vector<int>& values, int first_scalar) {
  Node node = original;
  for (Operand& operand : node.operands) {
    if (operand.value >= 0) operand.value = values[static_cast<size_t>(operand.value)];
    shift(operand.scalar_slot, first_scalar);
    shift(operand.view.offset_slot, first_scalar);
  }
  for (Arg& arg : node.args) {
    if (auto* number = std::get_if<Number>(&arg)) shift(number->slot, first_scalar);
    if (auto* numbers = std::get_if<std::vector<Number>>(&arg)) {
      for (Number& number : *numbers) shift(number.slot, first_scalar);
    }
  }
  for (Result& result : node.results) {
    if (result.base >= 0) result.base = values[static_cast<size_t>(result.base)];
    shift(result.view.offset_slot, first_scalar);
  }
  shift(node.seed_slot, first_scalar);
  return node;
}

}  // namespace

Graph join(std::vector<ValueSpec> inputs, std::span<const Part> parts,
           std::span<const Source> outputs, std::vector<std::pair<int, int>> donations) {
  Graph joined;
  joined.inputs = std::move(inputs);
  joined.donations = std::move(donations);
  int next = static_cast<int>(joined.inputs.size());
  std::vector<std::vector<int>> part_outputs;  // values
  const auto value_of = [&](const Source& source) {
    return source.part < 0
               ? source.index
               : part_outputs[static_cast<size_t>(source.part)][static_cast<size_t>(source.index)];
  };
  for (const Part& part : parts) {
    std::vector<int> values;  // of the part's own numbering
    for (const Source& source : part.inputs) values.push_back(value_of(source));
    const int first_scalar = static_cast<int>(joined.scalars.size());
    for (const Node& node : part.graph->nodes) {
      joined.nodes.push_back(placed(node, values, first_scalar));
      for (size_t i = 0; i < node.results.size(); ++i) values.push_back(next++);
    }
    joined.scalars.insert(joined.scalars.end(), part.graph->scalars.begin(),
                          part.graph->scalars.end());
    std::vector<int>& made = part_outputs.emplace_back();
    for (const int output : part.graph->outputs)
      made.push_back(values[static_cast<size_t>(output)]);
  }
  for (const Source& output : outputs) joined.outputs.push_back(value_of(output));
  return joined;
}

}  // namespace torch_tpu::ir
