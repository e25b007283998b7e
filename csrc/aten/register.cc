#include "aten/register.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include <memory>
#include <set>
#include <string>

#include "aten/argument_checks.h"
#include "aten/fallback.h"
#include "aten/infer.h"
#include "aten/kernel.h"
#include "aten/op_cache.h"
#include "lowering/table.h"

namespace torch_tpu::aten {
namespace {

// Composites that are several programs unless captured as one, and have no lowering of their own.
constexpr std::string_view kCapturedComposites[] = {
    "logical_and",     "logical_or",      "logical_xor", "logical_not",        "block_diag",
    "_euclidean_dist", "renorm",          "dist",        "linalg_vector_norm", "channel_shuffle",
    "pixel_shuffle",   "pixel_unshuffle", "rot90",       "trace_backward",
};

// The kernel of one operator; what it knows of it is read at the first call.
class BoxedKernel final : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    if (info_ == nullptr) info_ = &op_info(op);
    run_operator(*info_, stack);
  }

 private:
  const OpInfo* info_ = nullptr;  // the same pointer whichever thread sets it
};

// The same for an operator whose arguments are checked first.
class CheckedKernel final : public c10::OperatorKernel {
 public:
  explicit CheckedKernel(ArgumentCheck check) : check_(std::move(check)) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    if (info_ == nullptr) info_ = &op_info(op);
    check_(*stack);
    run_operator(*info_, stack);
  }

 private:
  ArgumentCheck check_;
  const OpInfo* info_ = nullptr;
};

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  const OpInfo& info = op_info(op);
  // A factory's composite makes the output at its size and calls the out= form to fill it.
  if (info.row == nullptr && !info.factory && InferScope::active()) throw NoKernel(info.name);
  run_operator(info, stack);
}

bool returns_view(const c10::FunctionSchema& schema) {
  for (const c10::Argument& r : schema.returns()) {
    if (r.alias_info() != nullptr && !r.alias_info()->isWrite()) return true;
  }
  return false;
}

std::string base_name(const c10::FunctionSchema& schema) {
  std::string name = schema.name().substr(schema.name().rfind(':') + 1);
  if (name.size() > 1 && name.back() == '_' && !name.starts_with("__")) name.pop_back();
  return name;
}

}  // namespace

void register_operators() {
  std::set<std::string_view> with_rows;
  for (const lowering::OpRow& row : lowering::operator_table()) {
    std::string_view name = row.name.substr(0, row.name.find('.'));
    if (name.size() > 1 && name.back() == '_') name.remove_suffix(1);
    with_rows.insert(name);
  }
  with_rows.insert(std::begin(kCapturedComposites), std::end(kCapturedComposites));

  static auto* library = new torch::Library(torch::Library::IMPL, "aten",
                                            c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const auto handle = dispatcher.findSchema(name);
    if (!handle) continue;
    const c10::FunctionSchema& schema = handle->schema();
    if (handle->hasTag(at::Tag::inplace_view))
      continue;  // as_strided_ and its like change the tensor, not its values
    if (returns_view(schema) || handle->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1))
      continue;
    if (handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) continue;
    const std::string base = base_name(schema);
    const bool structured =
        handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
    const bool factory = base.starts_with("new_") || base.starts_with("empty");
    if (factory || base.ends_with("_copy")) continue;
    if (base == "repeat_interleave") continue;  // its size comes from values: its out= form copies
    if (!structured && !with_rows.contains(base)) continue;
    if (!structured && !op_info(*handle).row &&
        std::find(std::begin(kCapturedComposites), std::end(kCapturedComposites), base) ==
            std::end(kCapturedComposites)) {
      continue;
    }
    ArgumentCheck check = argument_check(schema);
    library->impl(c10::toString(name).c_str(),
                  check
                      ? torch::CppFunction::makeFromBoxedFunctor(
                            std::make_unique<CheckedKernel>(std::move(check)))
                      : torch::CppFunction::makeFromBoxedFunctor(std::make_unique<BoxedKernel>()));
  }
  static auto* fallbacks = new torch::Library(torch::Library::IMPL, "_",
                                              c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  fallbacks->fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace torch_tpu::aten
