#include "aten/composite.h"

#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>

#include <set>

#include "aten/fallback.h"
#include "aten/kernel.h"
#include "aten/op_cache.h"

namespace torch_tpu::aten {
namespace {

thread_local std::set<std::string> t_in_progress;

class InProgress {
 public:
  explicit InProgress(const std::string& name)
      : name_(name), inserted_(t_in_progress.insert(name).second) {}
  ~InProgress() {
    if (inserted_) t_in_progress.erase(name_);
  }
  bool recursive() const { return !inserted_; }

 private:
  const std::string& name_;
  bool inserted_;
};

// Runs `call` on a copy of the arguments; an operator inside that nobody can compute leaves the stack as it was.
template <typename Callable>
bool attempt(const OpInfo& info, Stack* stack, Callable call) {
  const auto count = static_cast<int64_t>(info.args.size());
  Stack trial(stack->end() - count, stack->end());
  try {
    if (!call(trial)) return false;
  } catch (const NoKernel&) {
    return false;
  }
  stack->erase(stack->end() - count, stack->end());
  stack->insert(stack->end(), trial.begin(), trial.end());
  return true;
}

// An in-place or out= form through its functional one: computed, then copied into the written arguments.
bool call_functional(const OpInfo& info, Stack& stack) {
  Stack inputs;
  for (size_t i = 0; i < info.args.size(); ++i) {
    if (!info.args[i].is_out) inputs.push_back(stack[i]);
  }
  if (info.factory) {
    const at::Tensor& out = stack[static_cast<size_t>(info.written.front())].toTensor();
    torch::jit::push(inputs, out.scalar_type(), c10::IValue(), out.device(), c10::IValue());
  }
  info.functional->callBoxed(inputs);
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : inputs) {
    if (value.isTensor()) {
      results.push_back(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& t : value.toTensorVector()) results.push_back(t);
    }
  }
  size_t next = 0;
  for (const int argument : info.written) {
    const c10::IValue& value = stack[static_cast<size_t>(argument)];
    const std::vector<at::Tensor> targets =
        value.isTensorList() ? value.toTensorVector() : std::vector<at::Tensor>{value.toTensor()};
    for (const at::Tensor& target : targets) {
      const at::Tensor& result = results.at(next++);
      TORCH_CHECK(c10::canCast(result.scalar_type(), target.scalar_type()), "result type ",
                  result.scalar_type(), " can't be cast to the desired output type ",
                  target.scalar_type());
      if (info.form == Form::kOut) at::native::resize_output(target, result.sizes());
      target.copy_(result);
    }
  }
  Stack returned;
  for (const ReturnInfo& r : info.returns) {
    if (r.kind != ReturnKind::kArgument) return false;
    returned.push_back(stack[static_cast<size_t>(r.argument)]);
  }
  stack = std::move(returned);
  return true;
}

}  // namespace

bool has_composite(const OpInfo& info) {
  return info.structured || info.composite || info.functional.has_value() ||
         decomposer() != nullptr;
}

bool call_composite(const OpInfo& info, Stack* stack) {
  const InProgress guard(info.name);
  if (guard.recursive()) return false;
  const auto kernel = [&](c10::DispatchKey key) {
    return attempt(info, stack, [&](Stack& trial) {
      info.handle.callBoxedForDispatchKey(key, trial);
      return true;
    });
  };
  if (info.composite && kernel(c10::DispatchKey::CompositeExplicitAutograd)) return true;
  if (info.functional && !t_in_progress.contains(op_info(*info.functional).name) &&
      attempt(info, stack, [&](Stack& trial) { return call_functional(info, trial); })) {
    return true;
  }
  if (info.form == Form::kFunctional && info.structured &&
      kernel(c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) {
    return true;
  }
  if (const Decomposer& python = decomposer()) {
    return attempt(info, stack, [&](Stack& trial) { return python(info.handle, &trial); });
  }
  return false;
}

}  // namespace torch_tpu::aten
