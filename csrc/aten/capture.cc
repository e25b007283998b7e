#include "aten/capture.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <unordered_map>

#include "aten/composite.h"
#include "aten/dtypes.h"
#include "aten/empty.h"
#include "aten/fallback.h"
#include "aten/infer.h"
#include "device/allocator.h"
#include "engine/engine.h"

namespace torch_tpu::aten {
namespace {

using engine::Array;
using engine::ArrayPtr;
using engine::ArrayState;

thread_local CaptureScope* t_active = nullptr;

// The operands' stand-ins: tensors of the same kind over placeholder storages, one for each real storage.
class Placeholders {
 public:
  Placeholders(CaptureScope& capture, const Walk& walk) : capture_(capture), walk_(walk) {
    for (size_t i = 0; i < walk.operands.size(); ++i) tensors_.push_back(make(static_cast<int>(i)));
  }

  const std::vector<int>& inputs() const { return inputs_; }

  // The arguments with every operand replaced.
  Stack replace(const OpInfo& info, c10::ArrayRef<c10::IValue> args) {
    Stack stack;
    size_t next = 0;
    const auto stand_in = [&](const c10::IValue& value) -> at::Tensor {
      if (!value.isTensor() || !value.toTensor().defined()) return {};
      return tensors_[next++];
    };
    for (size_t i = 0; i < args.size(); ++i) {
      if (info.args[i].kind == ArgKind::kTensor && args[i].isTensor()) {
        stack.emplace_back(stand_in(args[i]));
      } else if (info.args[i].kind == ArgKind::kTensorList && !args[i].isNone()) {
        const bool optional = !args[i].isTensorList();
        c10::List<at::Tensor> plain;
        c10::List<std::optional<at::Tensor>> maybe;
        for (const c10::IValue& element : list_of(args[i])) {
          at::Tensor t = stand_in(element);
          if (optional) {
            maybe.push_back(t.defined() ? std::optional<at::Tensor>(t) : std::nullopt);
          } else {
            plain.push_back(t);
          }
        }
        if (optional) {
          stack.emplace_back(std::move(maybe));
        } else {
          stack.emplace_back(std::move(plain));
        }
      } else {
        stack.push_back(args[i]);
      }
    }
    return stack;
  }

  // The operand that a storage stands for, or -1.
  int operand_of(const at::Tensor& t) const {
    const auto found = by_slot_.find(engine::slot_of(t.storage().data_ptr()));
    return found == by_slot_.end() ? -1 : found->second;
  }

  // (operand, its storage's new value) for the storages written to.
  std::vector<std::pair<int, ArrayPtr>> written() const {
    std::vector<std::pair<int, ArrayPtr>> result;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (walk_.operands[i].slot == nullptr || walk_.operands[i].same_slot >= 0) continue;
      const ArrayPtr& now = engine::slot_of(tensors_[i].storage().data_ptr())->value;
      if (now != before_[i]) result.emplace_back(static_cast<int>(i), now);
    }
    return result;
  }

  // The operands that the call gave another size.
  std::vector<ResizePlan> resizes() const {
    std::vector<ResizePlan> result;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].sizes() == walk_.operands[i].impl->sizes()) continue;
      result.push_back({static_cast<int>(i), c10::DimVector(tensors_[i].sizes()),
                        c10::DimVector(tensors_[i].strides())});
    }
    return result;
  }

 private:
  at::Tensor make(int index) {
    const OperandRef& operand = walk_.operands[static_cast<size_t>(index)];
    before_.emplace_back();
    if (operand.slot == nullptr) {
      if (operand.number < 0) {  // zero bytes
        return empty_strided(operand.impl->sizes(), operand.impl->strides(),
                             operand.impl->dtype().toScalarType(), std::max(walk_.device, 0));
      }
      return borrow(operand.impl);
    }
    c10::Storage storage;
    if (operand.same_slot >= 0) {
      storage = tensors_[static_cast<size_t>(operand.same_slot)].storage();
    } else {
      c10::DataPtr data = engine::make_slot(operand.slot->bytes, capture_.device());
      auto* slot = static_cast<engine::Slot*>(data.get_context());
      if (operand.type != nullptr) {
        if (operand.same_array >= 0) {
          slot->value = before_[static_cast<size_t>(operand.same_array)];
        } else {
          slot->value = capture_.add_input(operand.type);
          inputs_.push_back(index);
        }
        before_.back() = slot->value;
      }
      by_slot_[slot] = index;
      storage =
          c10::Storage(c10::Storage::use_byte_size_t(), static_cast<size_t>(operand.slot->bytes),
                       std::move(data), device::storage_allocator(), true);
    }
    at::Tensor t = at::detail::make_tensor_base<c10::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
        operand.impl->dtype());
    t.unsafeGetTensorImpl()->set_sizes_and_strides(operand.impl->sizes(), operand.impl->strides(),
                                                   operand.offset);
    return t;
  }

  CaptureScope& capture_;
  const Walk& walk_;
  std::vector<at::Tensor> tensors_;
  std::vector<ArrayPtr> before_;  // per operand: its placeholder's value at the start
  std::vector<int> inputs_;
  std::unordered_map<const engine::Slot*, int> by_slot_;
};

}  // namespace

CaptureScope::CaptureScope(int device) : device_(device), previous_(t_active) { t_active = this; }
CaptureScope::~CaptureScope() { t_active = previous_; }
CaptureScope* CaptureScope::active() { return t_active; }

ArrayPtr CaptureScope::add_input(const engine::ArrayType* type) {
  auto array = c10::make_intrusive<Array>(type, device_, ArrayState::kCaptured);
  array->captured = next_++;
  inputs_.push_back(engine::spec_of(type));
  input_ids_.push_back(array->captured);
  return array;
}

int CaptureScope::value_of(const ArrayPtr& array) {
  if (!array) return -1;
  if (array->state == ArrayState::kCaptured) return array->captured;
  for (size_t i = 0; i < constants_.size(); ++i) {
    if (constants_[i] == array) return constant_ids_[i];
  }
  constants_.push_back(array);
  constant_ids_.push_back(next_);
  return next_++;
}

void CaptureScope::record(const OpInfo& info, Stack* stack) {
  const size_t count = info.args.size();
  const std::vector<c10::IValue> args(stack->end() - static_cast<int64_t>(count), stack->end());
  Walk walk;
  {
    std::lock_guard lock(engine::engine_mutex());
    walk_arguments(info, *stack, walk);
  }
  std::vector<int> values;
  for (const OperandRef& operand : walk.operands) {
    values.push_back(operand.slot != nullptr ? value_of(operand.slot->value) : -1);
  }
  if (info.in_turn && order_matters(info, walk)) return run_composite(info, stack);
  const int first = next_;
  const size_t scalars_before = scalars_.size();
  NodePlan plan =
      plan_node(info, walk, args, values, first, scalars_, /*numbers_as_constants=*/true);
  if (!plan.resizes.empty()) {
    scalars_.resize(scalars_before);
    apply_resizes(plan.resizes, walk);
    return record(info, stack);
  }
  next_ += static_cast<int>(plan.node.results.size());
  const auto value = [&](int result) -> ArrayPtr {
    const ir::Result& r = plan.node.results[static_cast<size_t>(result)];
    if (r.storage_bytes == 0) return {};
    auto array =
        c10::make_intrusive<Array>(engine::type_of(r.value), device_, ArrayState::kCaptured);
    array->captured = first + result;
    return array;
  };
  std::vector<at::Tensor> fresh;
  for (size_t i = 0; i < plan.fresh.results.size(); ++i) {
    at::Tensor t = make_valueless(plan.fresh.results[i], device_);
    if (t.defined() && t.storage().nbytes() > 0) {
      engine::slot_of(t.storage().data_ptr())->value = value(static_cast<int>(i));
    }
    fresh.push_back(std::move(t));
  }
  for (const auto& [operand, result] : plan.writes)
    walk.operands[static_cast<size_t>(operand)].slot->value = value(result);
  nodes_.push_back(std::move(plan.node));
  node_first_.push_back(first);

  size_t next = 0, next_list = 0;
  std::vector<c10::IValue> results;
  for (const ReturnInfo& r : info.returns) {
    if (r.kind == ReturnKind::kArgument) {
      results.push_back(args[static_cast<size_t>(r.argument)]);
    } else if (r.kind == ReturnKind::kExtent) {
      results.emplace_back(args[static_cast<size_t>(r.argument)].toTensor().size(-2));
    } else if (r.kind == ReturnKind::kFresh) {
      results.emplace_back(fresh.at(next++));
    } else {
      c10::List<at::Tensor> list;
      for (int i = plan.fresh.list_sizes.at(next_list++); i > 0; --i)
        list.push_back(fresh.at(next++));
      results.emplace_back(std::move(list));
    }
  }
  torch::jit::drop(*stack, count);
  for (c10::IValue& result : results) stack->push_back(std::move(result));
}

ir::Graph CaptureScope::finish(const std::vector<ArrayPtr>& outputs,
                               std::vector<ArrayPtr>& constants) {
  std::unordered_map<int, int> final_ids;
  ir::Graph graph;
  graph.inputs = inputs_;
  for (size_t i = 0; i < input_ids_.size(); ++i) final_ids[input_ids_[i]] = static_cast<int>(i);
  for (size_t i = 0; i < constants_.size(); ++i) {
    final_ids[constant_ids_[i]] = static_cast<int>(graph.inputs.size());
    graph.inputs.push_back(engine::spec_of(constants_[i]->type));
  }
  int next = static_cast<int>(graph.inputs.size());
  for (size_t n = 0; n < nodes_.size(); ++n) {
    for (size_t r = 0; r < nodes_[n].results.size(); ++r)
      final_ids[node_first_[n] + static_cast<int>(r)] = next++;
  }
  const auto renumber = [&](int& id) {
    if (id >= 0) id = final_ids.at(id);
  };
  for (ir::Node& node : nodes_) {
    for (ir::Operand& operand : node.operands) renumber(operand.value);
    for (ir::Result& result : node.results) renumber(result.base);
  }
  graph.nodes = std::move(nodes_);
  graph.scalars = scalars_;
  for (const ArrayPtr& output : outputs) graph.outputs.push_back(final_ids.at(value_of(output)));
  constants = constants_;
  return graph;
}

namespace {

// Warnings of a composite that is only run to see what it does: given out where the call ends with that run.
class HeldWarnings final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override { held_.push_back(warning); }
  void release() {
    for (const c10::Warning& warning : held_) c10::warn(warning);
  }

 private:
  std::vector<c10::Warning> held_;
};

}  // namespace

bool capture_entry(const OpInfo& info, const Walk& walk, c10::ArrayRef<c10::IValue> args,
                   Entry& entry) {
  if (!has_composite(info)) return false;
  CaptureScope capture(std::max(walk.device, 0));
  Placeholders placeholders(capture, walk);
  Stack stack = placeholders.replace(info, args);
  HeldWarnings warnings;
  try {
    const c10::WarningUtils::WarningHandlerGuard hold(&warnings);
    at::AutoDispatchBelowADInplaceOrView below;
    if (!call_composite(info, &stack)) return false;
  } catch (const NeedsValue&) {
    return false;
  }
  entry.resizes = placeholders.resizes();
  if (!entry.resizes.empty()) return true;  // the call starts again
  warnings.release();

  std::vector<ArrayPtr> outputs;
  std::unordered_map<const engine::Slot*, int> shared;
  const auto add_fresh = [&](at::Tensor t) {
    FreshPlan fresh;
    fresh.defined = t.defined();
    if (t.defined()) {
      if (placeholders.operand_of(t) >= 0)
        t = t.clone();  // a result may not be an argument's memory
      const engine::Slot* slot = engine::slot_of(t.storage().data_ptr());
      const auto [at, is_new] = shared.emplace(slot, static_cast<int>(entry.outputs.size()));
      fresh.output = at->second;
      fresh.dtype = t.dtype();
      fresh.sizes = t.sizes();
      fresh.strides = t.strides();
      fresh.offset = t.storage_offset();
      if (is_new || slot == nullptr) {
        fresh.output = static_cast<int>(entry.outputs.size());
        OutputPlan out;
        out.storage_bytes = static_cast<int64_t>(t.storage().nbytes());
        if (slot != nullptr && slot->value) {
          out.type = slot->value->type;
          out.program_output = static_cast<int>(outputs.size());
          outputs.push_back(slot->value);
        }
        entry.outputs.push_back(out);
      }
    }
    entry.fresh.push_back(std::move(fresh));
  };
  for (size_t i = 0; i < info.returns.size(); ++i) {
    if (info.returns[i].kind == ReturnKind::kFresh) {
      add_fresh(stack[i].isTensor() ? stack[i].toTensor() : at::Tensor());
    } else if (info.returns[i].kind == ReturnKind::kFreshList) {
      const auto list = stack[i].toTensorVector();
      entry.list_sizes.push_back(static_cast<int>(list.size()));
      for (const at::Tensor& t : list) add_fresh(t);
    }
  }
  for (const auto& [operand, value] : placeholders.written()) {
    OutputPlan out;
    out.operand = operand;
    out.type = value->type;
    out.program_output = static_cast<int>(outputs.size());
    out.storage_bytes = value->type->bytes;
    outputs.push_back(value);
    entry.outputs.push_back(out);
  }
  entry.graph = capture.finish(outputs, entry.constants);
  entry.inputs = placeholders.inputs();
  entry.scalars = entry.graph.scalars;
  entry.random_draws = static_cast<int>(entry.scalars.size() / 2);
  return true;
}

}  // namespace torch_tpu::aten
