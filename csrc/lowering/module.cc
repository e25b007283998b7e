// A graph as a StableHLO module, and the result types of one node's lowering.
//
// The size symbol s of a bounded input dimension is the scalar of slot s: the buffer has the bound's size, the true size
// arrives among the packed scalars.
#include "lowering/module.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "lowering/axes.h"
#include "lowering/checks.h"
#include "lowering/number.h"
#include "lowering/view.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::BuildError;

int64_t words_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
    case DType::kU64:
      return 2;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32:
      return 1;
    default:
      throw BuildError(std::string("a dynamic scalar cannot be ") + stablehlo::mlir_name(dtype));
  }
}

// The packed scalar parameter; a scalar is unpacked when it is first asked for.
class PackedScalars {
 public:
  PackedScalars(Builder& b, const std::vector<DType>& dtypes)
      : b_(b), dtypes_(dtypes), values_(dtypes.size()) {
    for (DType dtype : dtypes) {
      first_word_.push_back(word_count_);
      word_count_ += words_of(dtype);
    }
  }

  void make_parameter() {
    if (word_count_ > 0) packed_ = b_.parameter({DType::kU32, {word_count_}});
  }

  Value get(int slot) {
    if (slot < 0 || static_cast<size_t>(slot) >= dtypes_.size()) {
      throw BuildError("scalar slot " + std::to_string(slot) + " of " +
                       std::to_string(dtypes_.size()));
    }
    Value& value = values_[slot];
    if (!value) value = unpack(first_word_[slot], dtypes_[slot]);
    return value;
  }

  const std::vector<Value>& values() const { return values_; }

 private:
  Value unpack(int64_t word, DType dtype) {
    int64_t count = words_of(dtype);
    Value words = b_.slice(packed_, {word}, {word + count});
    if (count == 1) words = b_.reshape(words, {});
    return b_.bitcast_convert(words, dtype);
  }

  Builder& b_;
  const std::vector<DType>& dtypes_;
  std::vector<Value> values_;
  std::vector<int64_t> first_word_;
  int64_t word_count_ = 0;
  Value packed_;
};

// The scalar slots a node's lowering may ask for: numbers, seed and offset.
std::set<int> scalar_slots(const ir::Node& node) {
  std::set<int> slots;
  auto add = [&](int slot) {
    if (slot >= 0) slots.insert(slot);
  };
  for (const ir::Arg& arg : node.args) {
    if (const auto* number = std::get_if<ir::Number>(&arg)) add(number->slot);
    if (const auto* numbers = std::get_if<std::vector<ir::Number>>(&arg)) {
      for (const ir::Number& number : *numbers) add(number.slot);
    }
  }
  if (node.seed_slot >= 0) {
    add(node.seed_slot);
    add(node.seed_slot + 1);
  }
  return slots;
}

bool same_view(const ir::ViewSpec& x, const ir::ViewSpec& y) {
  return x.dtype == y.dtype && x.sizes == y.sizes && x.strides == y.strides &&
         x.offset == y.offset && x.offset_slot == y.offset_slot;
}

std::string describe_operands(const std::vector<Value>& operands) {
  std::string text;
  for (const Value& operand : operands) text += (text.empty() ? "" : ", ") + operand.type().str();
  return "(" + text + ")";
}

const OpRow& row_of(const ir::Node& node) {
  const OpRow* row = find_row(node.op);
  if (row == nullptr || row->lower == nullptr)
    throw BuildError("operator " + node.op + " has no lowering");
  return *row;
}

Values run_lowering(Builder& b, const ir::Node& node, const std::vector<Value>& operands,
                    const std::vector<Value>& scalars,
                    std::vector<PendingCheck>* checks = nullptr) {
  Call call(b, node, operands, scalars, checks);
  try {
    return row_of(node).lower(call);
  } catch (const BuildError& error) {
    throw error.within("lowering of " + node.op + describe_operands(operands) + ": ");
  } catch (const std::out_of_range&) {
    throw BuildError("lowering of " + node.op + describe_operands(operands) +
                     ": an operand has fewer dimensions than the call needs");
  }
}

// PyTorch's foreach kernels write nothing where a float would become an integer.
void check_list_cast(const ir::Node& node, DType computed, DType written) {
  if (!node.op.starts_with("_foreach_") || !stablehlo::is_float(computed)) return;
  if (stablehlo::is_float(written) || stablehlo::is_complex(written)) return;
  throw ArgumentError(ArgumentError::Kind::kValue,
                      std::string("result type ") + scalar_type_name(computed) +
                          " can't be cast to the desired output type " + scalar_type_name(written));
}

class ModuleLowering {
 public:
  ModuleLowering(const ir::Graph& graph, const ModuleOptions& options)
      : graph_(graph), options_(options), scalars_(b_, graph.scalars) {
    b_.set_precision(options.precision);
  }

  std::string run(ModuleTraits* traits) {
    for (const ir::ValueSpec& input : graph_.inputs) values_.push_back(parameter(input));
    scalars_.make_parameter();
    for (size_t i = 0; i < graph_.inputs.size(); ++i)
      values_[i] = true_sizes(values_[i], graph_.inputs[i].dims);
    for (const ir::Node& node : graph_.nodes) lower_node(node);
    std::vector<Value> results;
    for (int output : graph_.outputs) results.push_back(b_.pad_to_bound(value(output)));
    if (!checks_.empty()) results.push_back(pack_checks(b_, checks_));
    for (auto [input, output] : graph_.donations) b_.alias(input, output);
    std::string text = b_.finish(results);
    if (traits != nullptr) {
      traits->only_short_trailing_reductions = b_.only_short_trailing_reductions(kShortReduction);
      traits->has_contractions = text.find("precision_config") != std::string::npos;
      for (PendingCheck& pending : checks_) traits->checks.push_back(std::move(pending.check));
    }
    return text;
  }

 private:
  struct Read {
    ir::ViewSpec view;
    Value tensor;
  };

  Value parameter(const ir::ValueSpec& spec) {
    Dims dims;
    for (const Size& dim : spec.dims) dims.push_back(dim.bound());
    return b_.parameter({spec.dtype, dims});
  }

  Value true_sizes(Value x, const Dims& dims) {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].is_static()) continue;
      const auto& expr = dims[d].expr();
      if (expr->kind != Size::Expr::Kind::kSymbol) {
        throw BuildError("input dimension " + dims[d].str() + " is not a symbol");
      }
      int symbol = static_cast<int>(expr->value);
      Value size = b_.convert(scalars_.get(symbol), DType::kI32);
      if (symbols_.insert(symbol).second) b_.bind_symbol(symbol, size);
      x = b_.set_dimension_size(x, size, static_cast<int64_t>(d), dims[d]);
    }
    return x;
  }

  const Value& value(int index) const {
    if (index < 0 || static_cast<size_t>(index) >= values_.size()) {
      throw BuildError("value " + std::to_string(index) + " is used before it is defined");
    }
    if (!values_[index])
      throw BuildError("value " + std::to_string(index) + " is a result left undefined");
    return values_[index];
  }

  Value offset_of(const ir::ViewSpec& view) {
    return view.offset_slot < 0 ? Value() : scalars_.get(view.offset_slot);
  }

  Value read(const ir::Operand& operand) {
    const ir::ViewSpec& view = operand.view;
    if (operand.scalar_slot >= 0 || operand.is_constant) {
      Value number = operand.is_constant
                         ? constant_number(b_, operand.constant, view.dtype)
                         : b_.convert(scalars_.get(operand.scalar_slot), view.dtype);
      return number.dims() == view.sizes ? number : b_.reshape(number, view.sizes);
    }
    if (operand.value < 0) return b_.zeros({view.dtype, view.sizes});
    std::vector<Read>& reads = reads_[operand.value];
    for (const Read& known : reads) {
      if (same_view(known.view, view)) return known.tensor;
    }
    Value tensor = read_view(b_, value(operand.value), view, offset_of(view));
    reads.push_back({view, tensor});
    return tensor;
  }

  void write(const ir::Node& node, const ir::Result& result, Value tensor) {
    const ir::ViewSpec& view = result.view;
    tensor = b_.convert(tensor, view.dtype);
    Value base = result.written && result.base >= 0 ? value(result.base) : Value();
    Value next = write_view(b_, base, tensor, view, result.value, offset_of(view));
    if (next.type() != Type{result.value.dtype, result.value.dims}) {
      throw BuildError(node.op + ": the written storage is " + next.type().str());
    }
    // Later nodes that read through the same view need no way back through the storage.
    if (!may_overlap(view)) reads_[static_cast<int>(values_.size())].push_back({view, tensor});
    values_.push_back(next);
  }

  void lower_node(const ir::Node& node) {
    std::vector<Value> operands;
    operands.reserve(node.operands.size());
    for (const ir::Operand& operand : node.operands) operands.push_back(read(operand));
    for (int slot : scalar_slots(node)) scalars_.get(slot);

    Values results = run_lowering(b_, node, operands, scalars_.values(),
                                  options_.check_values ? &checks_ : nullptr);
    check_anomalies(b_, node, operands, results, options_, checks_);
    if (results.size() != node.results.size()) {
      throw BuildError("lowering of " + node.op + " gave " + std::to_string(results.size()) +
                       " results instead of " + std::to_string(node.results.size()));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (node.results[i].undefined) {  // keeps its number among the values, but nobody may use it
        values_.emplace_back();
        continue;
      }
      Type wanted{node.results[i].view.dtype, node.results[i].view.sizes};
      if (!results[i] || results[i].dims() != wanted.dims) {
        throw BuildError("lowering of " + node.op + describe_operands(operands) + ": result " +
                         std::to_string(i) + " is " +
                         (results[i] ? results[i].type().str() : "undefined") + " instead of " +
                         wanted.str());
      }
      if (node.results[i].written) check_list_cast(node, results[i].dtype(), wanted.dtype);
      write(node, node.results[i], results[i]);
    }
  }

  const ir::Graph& graph_;
  const ModuleOptions& options_;
  Builder b_;
  std::vector<PendingCheck> checks_;
  PackedScalars scalars_;
  std::vector<Value> values_;
  std::unordered_map<int, std::vector<Read>> reads_;  // by value: each view of it is read once
  std::set<int> symbols_;
};

// A tensor of this type to infer with: a parameter, or, over bounded dimensions, zeros.
Value placeholder(Builder& b, const ir::ViewSpec& view, std::set<int>& symbols) {
  if (stablehlo::all_static(view.sizes)) return b.parameter({view.dtype, view.sizes});
  for (const Size& size : view.sizes) {
    if (size.is_static() || size.expr()->kind != Size::Expr::Kind::kSymbol) continue;
    int symbol = static_cast<int>(size.expr()->value);
    if (symbols.insert(symbol).second)
      b.bind_symbol(symbol, b.constant_int(size.bound(), DType::kI32));
  }
  return b.zeros({view.dtype, view.sizes});
}

}  // namespace

std::string lower_module(const ir::Graph& graph, const ModuleOptions& options,
                         ModuleTraits* traits) {
  return ModuleLowering(graph, options).run(traits);
}

std::vector<std::optional<Type>> infer_by_lowering(const ir::Node& node,
                                                   const std::vector<DType>& scalars) {
  Builder b;
  std::set<int> symbols;
  std::vector<Value> operands;
  for (const ir::Operand& operand : node.operands)
    operands.push_back(placeholder(b, operand.view, symbols));
  std::vector<Value> scalar_values;
  for (DType dtype : scalars) scalar_values.push_back(b.parameter({dtype, {}}));
  std::vector<std::optional<Type>> types;
  for (const Value& result : run_lowering(b, node, operands, scalar_values)) {
    types.push_back(result ? std::optional(result.type()) : std::nullopt);
  }
  return types;
}

}  // namespace torch_tpu::lowering
