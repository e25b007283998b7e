#include "aten/kernel.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/flat_hash_map.h>

#include <cmath>

#include "aten/capture.h"
#include "aten/describe.h"
#include "aten/empty.h"
#include "aten/fallback.h"
#include "aten/infer.h"
#include "aten/op_cache.h"
#include "aten/plan.h"
#include "aten/recompiles.h"
#include "aten/walk.h"
#include "device/allocator.h"
#include "device/generator.h"
#include "engine/client.h"
#include "engine/diagnostics.h"
#include "engine/engine.h"
#include "lowering/module.h"
#include "lowering/view.h"

namespace torch_tpu::aten {
namespace {

using engine::Array;
using engine::ArrayPtr;
using engine::ArrayState;

constexpr size_t kMaxEntries =
    1 << 17;  // keys a process keeps; all are dropped when there are more

using EntryTable = ska::flat_hash_map<ir::Key, std::shared_ptr<Entry>>;

// One table for each set of values that programs check; under the engine's mutex.
EntryTable& entries(engine::ValueChecks checks) {
  static auto* tables = new EntryTable[engine::ValueChecks::kCodes];
  return tables[checks.code()];
}

void put_word64(c10::SmallVectorImpl<uint32_t>& words, int64_t value) {
  words.push_back(static_cast<uint32_t>(value));
  words.push_back(static_cast<uint32_t>(static_cast<uint64_t>(value) >> 32));
}

// The packed scalar parameter: numbers, seed and offset, storage offsets.
void pack_scalars(const Entry& entry, const Variant& variant, const Walk& walk,
                  c10::ArrayRef<device::RandomState> random,
                  c10::SmallVectorImpl<uint32_t>& words) {
  size_t slot = 0;
  for (const NumberRef& n : walk.numbers) {
    if (!n.dynamic || n.repeated) continue;
    const stablehlo::DType dtype = entry.scalars[slot++];
    const double value = n.kind == NumberRef::Kind::kFloat ? n.f : static_cast<double>(n.i);
    if (dtype == stablehlo::DType::kF32) {
      const auto single = static_cast<float>(value);
      uint32_t word;
      std::memcpy(&word, &single, sizeof word);
      words.push_back(word);
    } else if (dtype == stablehlo::DType::kF64) {
      int64_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      put_word64(words, bits);
    } else {
      put_word64(words, n.i);
    }
  }
  for (const device::RandomState& draw : random) {
    put_word64(words, static_cast<int64_t>(draw.seed));
    put_word64(words, static_cast<int64_t>(draw.offset));
  }
  for (const int operand : variant.dynamic)
    put_word64(words, walk.operands[static_cast<size_t>(operand)].offset);
}

at::Tensor make_tensor(const FreshPlan& plan, c10::Storage storage) {
  at::Tensor tensor = at::detail::make_tensor_base<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), plan.dtype);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(plan.sizes, plan.strides, plan.offset);
  return tensor;
}

// The generator argument, or none for the device's own.
std::optional<at::Generator> generator_of(const OpInfo& info, const Stack& stack) {
  if (info.generator < 0) return std::nullopt;
  const c10::IValue& value =
      stack[stack.size() - info.args.size() + static_cast<size_t>(info.generator)];
  if (value.isNone()) return std::nullopt;
  return value.toGenerator();
}

// Pops the arguments, pushes what the call returns.
void push_returns(const OpInfo& info, const Entry& entry, c10::ArrayRef<c10::Storage> storages,
                  Stack* stack) {
  const size_t count = info.args.size();
  if (info.returns.size() == 1 && info.returns[0].kind == ReturnKind::kArgument) {
    c10::IValue value =
        std::move((*stack)[stack->size() - count + static_cast<size_t>(info.returns[0].argument)]);
    torch::jit::drop(*stack, count);
    stack->push_back(std::move(value));
    return;
  }
  size_t next = 0, next_list = 0;
  const auto fresh = [&]() -> at::Tensor {
    const FreshPlan& plan = entry.fresh[next++];
    return plan.defined ? make_tensor(plan, storages[static_cast<size_t>(plan.output)])
                        : at::Tensor();
  };
  c10::SmallVector<c10::IValue, 4> results;
  for (const ReturnInfo& r : info.returns) {
    if (r.kind == ReturnKind::kArgument) {
      results.push_back((*stack)[stack->size() - count + static_cast<size_t>(r.argument)]);
    } else if (r.kind == ReturnKind::kExtent) {
      results.emplace_back(
          (*stack)[stack->size() - count + static_cast<size_t>(r.argument)].toTensor().size(-2));
    } else if (r.kind == ReturnKind::kFresh) {
      results.emplace_back(fresh());
    } else {
      c10::List<at::Tensor> list;
      for (int i = entry.list_sizes[next_list++]; i > 0; --i) list.push_back(fresh());
      results.emplace_back(std::move(list));
    }
  }
  torch::jit::drop(*stack, count);
  for (c10::IValue& result : results) stack->push_back(std::move(result));
}

void count_versions(const OpInfo& info, const Walk& walk) {
  constexpr auto kKey = c10::DispatchKey::ADInplaceOrView;
  if (c10::impl::tls_is_dispatch_key_excluded(kKey)) return;
  for (const OperandRef& operand : walk.operands) {
    if (info.args[static_cast<size_t>(operand.argument)].written &&
        operand.impl->key_set().has(kKey)) {
      operand.impl->bump_version();
    }
  }
}

// PyTorch's check of out= arguments: they may be an operand, but not share a part of it.
void check_overlaps(const OpInfo& info, const Walk& walk) {
  for (const OperandRef& out : walk.operands) {
    if (out.slot == nullptr || !info.args[static_cast<size_t>(out.argument)].is_out) continue;
    for (const OperandRef& other : walk.operands) {
      if (other.slot == out.slot && other.argument != out.argument)
        at::assert_no_partial_overlap(borrow(out.impl), borrow(other.impl));
    }
  }
}

// The values of written storages before a call, so that a call that fails leaves them as they were.
using Written = c10::SmallVector<std::pair<engine::Slot*, ArrayPtr>, 4>;

// Debug mode: waits for the results and raises what the program found in its operands' values. Without the mutex.
void inspect(const OpInfo& info, const Variant& variant, const Walk& walk,
             c10::ArrayRef<ArrayPtr> outputs, const Written& before, const Stack& stack) {
  for (const ArrayPtr& output : outputs) engine::wait(output);
  if (variant.checks.empty()) return;
  bool infinite_number = false;  // the user asked for it
  for (const NumberRef& n : walk.numbers)
    infinite_number |= !std::isfinite(n.f) || !std::isfinite(n.im);
  std::vector<int64_t> found(2 * variant.checks.size());
  engine::to_host(outputs.back(), found.data(), 0, outputs.back()->type->bytes);
  for (size_t i = 0; i < variant.checks.size(); ++i) {
    const lowering::DeviceCheck& check = variant.checks[i];
    if (found[2 * i] == 0 || (check.of_results && infinite_number)) continue;
    {
      std::lock_guard lock(engine::engine_mutex());
      for (const auto& [slot, value] : before) slot->value = value;
    }
    std::string message = check.message;
    if (const size_t place = message.find("{}"); place != std::string::npos)
      message.replace(place, 2, std::to_string(found[2 * i + 1]));
    message += "\n  in " + describe_call(info, stack);
    if (info.row == nullptr) message += ", by its part " + check.op;
    raise_argument_error({check.kind, message + engine::where_now()});
  }
}

// The step's own program, to be launched now: what was recorded before it goes first. With the mutex held.
engine::Program* program_of(const OpInfo& info, engine::Step& step, const Stack& stack) {
  if (engine::recorded() > 0) [[unlikely]]
    engine::flush(engine::FlushReason::kOtherMode);
  if (engine::Program* program = step.program()) [[likely]]
    return program;
  engine::Program* program = step.obtain(/*may_compile=*/!engine::no_compile_expected());
  TORCH_CHECK(program != nullptr, "torch.tpu.expect_no_compile(): ", describe_call(info, stack),
              " needs a program that is neither in memory nor in the disk cache");
  return program;
}

// Runs or records what an entry computes of the walk's operands. With the mutex held.
void run_entry(std::unique_lock<std::mutex>& lock, const OpInfo& info, Entry& entry,
               const Walk& walk, Variant& variant, Stack* stack, const char* line) {
  engine::ProgramCache::get().count_hit();
  if (entry.shares_memory) [[unlikely]]
    check_overlaps(info, walk);
  const int device = std::max(walk.device, 0);
  c10::SmallVector<ArrayPtr, 6> outputs, inputs;
  Written before;
  if (variant.step != nullptr) {
    const bool deferred = engine::eager_mode() == engine::EagerMode::kDeferAndFuse;
    engine::Program* program = deferred ? nullptr : program_of(info, *variant.step, *stack);
    for (const OutputPlan& out : entry.outputs) {
      if (out.type != nullptr)
        outputs.push_back(c10::make_intrusive<Array>(out.type, device, ArrayState::kPending));
    }
    if (!variant.checks.empty()) [[unlikely]] {
      const auto words = static_cast<int64_t>(2 * variant.checks.size());
      outputs.push_back(c10::make_intrusive<Array>(
          engine::intern_type(stablehlo::DType::kI64, {words}), device, ArrayState::kPending));
    }
    for (const ArrayPtr& output : outputs) {
      output->made_by = info.label.c_str();
      output->made_at = line;
    }
    for (const int operand : entry.inputs)
      inputs.push_back(walk.operands[static_cast<size_t>(operand)].slot->value);
    inputs.append(entry.constants.begin(), entry.constants.end());
    c10::SmallVector<device::RandomState, 1> random;
    for (int i = 0; i < entry.random_draws; ++i)
      random.push_back(device::next_random(generator_of(info, *stack), device));
    c10::SmallVector<uint32_t, 16> words;
    pack_scalars(entry, variant, walk, random, words);
    if (!words.empty() && !deferred)
      inputs.push_back(engine::scalar_words(words, device, entry.random_draws == 0));
    // Written storages hand their old value to the launch, which may donate it and gives it back where it fails.
    for (const OutputPlan& out : entry.outputs) {
      if (out.operand >= 0 && out.type != nullptr) {
        engine::Slot* slot = walk.operands[static_cast<size_t>(out.operand)].slot;
        if (!variant.checks.empty()) [[unlikely]]
          before.emplace_back(slot, slot->value);
        const ArrayPtr& written = outputs[static_cast<size_t>(out.program_output)];
        written->written_to = slot->serial;
        written->former = std::exchange(slot->value, written);
      }
    }
    if (deferred) {
      engine::record(variant.step, {inputs.data(), inputs.size()}, {outputs.data(), outputs.size()},
                     {words.data(), words.size()});
    } else {
      engine::launch(lock, *program, {inputs.data(), inputs.size()},
                     {outputs.data(), outputs.size()}, info.label.c_str());
    }
  }
  c10::SmallVector<c10::Storage, 4> storages(entry.outputs.size());
  for (size_t i = 0; i < entry.outputs.size(); ++i) {
    const OutputPlan& out = entry.outputs[i];
    if (out.operand >= 0) continue;
    c10::DataPtr data = engine::make_slot(out.storage_bytes, device);
    if (out.type != nullptr) {
      static_cast<engine::Slot*>(data.get_context())->value =
          outputs[static_cast<size_t>(out.program_output)];
    }
    storages[i] =
        c10::Storage(c10::Storage::use_byte_size_t(), static_cast<size_t>(out.storage_bytes),
                     std::move(data), device::storage_allocator(), /*resizable=*/true);
  }
  if (engine::eager_mode() == engine::EagerMode::kDebug) [[unlikely]] {
    lock.unlock();
    inspect(info, variant, walk, outputs, before, *stack);
  }
  if (info.counts_versions) [[unlikely]]
    count_versions(info, walk);
  push_returns(info, entry, storages, stack);
}

// Results without values, for a call inside another operator's inference.
void run_inferring(const OpInfo& info, Stack* stack) {
  Entry entry;
  if (info.form == Form::kFunctional) {
    const size_t count = info.args.size();
    const std::vector<c10::IValue> args(stack->end() - static_cast<int64_t>(count), stack->end());
    Walk walk;
    {
      std::lock_guard lock(engine::engine_mutex());
      walk_arguments(info, *stack, walk);
    }
    if (!can_infer(info)) throw NoKernel(info.name);
    Inferred inferred = infer_results(info, walk, args);
    c10::SmallVector<c10::Storage, 4> storages;
    for (const ResultMeta& meta : inferred.results) {
      FreshPlan fresh;
      fresh.defined = meta.defined;
      if (meta.defined) {
        fresh.output = static_cast<int>(storages.size());
        fresh.dtype = c10::scalarTypeToTypeMeta(meta.dtype);
        fresh.sizes = meta.sizes;
        fresh.strides = meta.strides;
        storages.push_back(make_valueless(meta, std::max(walk.device, 0)).storage());
      }
      entry.fresh.push_back(std::move(fresh));
    }
    entry.list_sizes = inferred.list_sizes;
    push_returns(info, entry, storages, stack);
    return;
  }
  if (info.form == Form::kInplace && info.structured) {  // for its checks: sizes, casts, overlaps
    const size_t count = info.args.size();
    Stack trial(stack->end() - static_cast<int64_t>(count), stack->end());
    info.handle.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional,
                                        trial);
  }
  push_returns(info, entry, {}, stack);
}

// Conjugate and negative views among the arguments become tensors of their values. PyTorch's own fallbacks do so for
// most operators; a few (clone, matrix products) are handed the views.
void resolve_views(const OpInfo& info, Stack* stack) {
  for (size_t i = 0; i < info.args.size(); ++i) {
    c10::IValue& value = (*stack)[stack->size() - info.args.size() + i];
    if (!value.isTensor()) continue;
    const at::Tensor& t = value.toTensor();
    if (!t.defined() || !(t.is_conj() || t.is_neg())) continue;
    TORCH_CHECK_NOT_IMPLEMENTED(!info.args[i].written, info.name,
                                " cannot write to a conjugate or negative view");
    value = at::empty(t.sizes(), t.options()).copy_(t);
  }
}

// Autograd's device threads cost 200 us a backward and abort at exit: each thread that uses the device leaves them out.
void leave_autograd_single_threaded() {
  thread_local bool done = false;
  if (done) [[likely]]
    return;
  done = true;
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

Decomposer& decomposer_slot() {
  static auto* slot = new Decomposer;
  return *slot;
}

}  // namespace

void set_decomposer(Decomposer decomposer) { decomposer_slot() = std::move(decomposer); }
const Decomposer& decomposer() { return decomposer_slot(); }

void run_operator(const OpInfo& info, Stack* stack) {
  if (InferScope::active()) [[unlikely]]
    return run_inferring(info, stack);
  if (CaptureScope* capture = CaptureScope::active()) [[unlikely]] {
    resolve_views(info, stack);
    if (info.row != nullptr) return capture->record(info, stack);
    return run_composite(info, stack);
  }
  engine::client();
  leave_autograd_single_threaded();
  const engine::ValueChecks checks = engine::value_checks();
  const char* line = engine::recorded_line();
  engine::history::note_call();
  for (int attempt = 0;; ++attempt) {
    std::unique_lock lock(engine::engine_mutex());
    engine::make_room(lock);
    Walk walk;
    walk_arguments(info, *stack, walk);
    if (walk.lazy) [[unlikely]] {
      lock.unlock();
      resolve_views(info, stack);
      continue;
    }
    if (info.in_turn && order_matters(info, walk)) [[unlikely]] {
      lock.unlock();
      return run_composite(info, stack);
    }
    EntryTable& table = entries(checks);
    if (const auto found = table.find(walk.key); found != table.end()) [[likely]] {
      const std::shared_ptr<Entry> entry = found->second;
      if (!entry->resizes.empty()) {  // then it is a call on other operands
        lock.unlock();
        apply_resizes(entry->resizes, walk);
        continue;
      }
      for (Variant& variant : entry->variants) {
        if (fits(variant, *entry, walk))
          return run_entry(lock, info, *entry, walk, variant, stack, line);
      }
      Variant& variant = add_variant(info, *entry, walk, checks);
      return run_entry(lock, info, *entry, walk, variant, stack, line);
    }
    lock.unlock();
    TORCH_INTERNAL_ASSERT(attempt < 100, info.name, ": the operands keep changing under the call");
    const size_t count = info.args.size();
    const std::vector<c10::IValue> args(stack->end() - static_cast<int64_t>(count), stack->end());
    std::shared_ptr<Entry> entry;
    try {
      entry = build_entry(info, walk, args);
    } catch (const lowering::ArgumentError& e) {
      raise_argument_error(e);
    } catch (const stablehlo::BuildError& e) {
      raise_build_error(info, e);
    }
    if (entry == nullptr) return run_composite(info, stack);
    note_new_key(info, *stack);
    lock.lock();
    if (table.size() >= kMaxEntries) table.clear();
    table.emplace(walk.key, std::move(entry));
  }
}

}  // namespace torch_tpu::aten
