#include "aten/fallback.h"

#include <ATen/Context.h>
#include <ATen/native/CPUFallback.h>

#include <atomic>
#include <mutex>
#include <set>

#include "aten/capture.h"
#include "aten/composite.h"
#include "aten/infer.h"
#include "engine/program.h"
#include "stablehlo/builder.h"

namespace torch_tpu::aten {
namespace {

std::atomic<bool> g_cpu_fallback{false};
void (*g_warn)(const std::string& message) = [](const std::string& message) {
  TORCH_WARN(message);
};

void warn_once(const std::string& name) {
  static auto* mutex = new std::mutex;
  static auto* warned = new std::set<std::string>;
  {
    std::lock_guard lock(*mutex);
    if (!warned->insert(name).second) return;
  }
  g_warn("The operator '" + name +
         "' runs on the CPU, with copies to and from the tpu device, because "
         "torch.tpu.cpu_fallback is on. It is counted in torch.tpu.compile_stats()['fallbacks']");
}

std::string describe(const OpInfo& info, const Stack& stack) {
  std::string text;
  const size_t count = info.args.size();
  for (size_t i = 0; i < count; ++i) {
    const c10::IValue& value = stack[stack.size() - count + i];
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor& t = value.toTensor();
    text += (text.empty() ? "" : ", ") + info.args[i].name + ": " + c10::toString(t.scalar_type()) +
            c10::str(t.sizes());
  }
  return text;
}

}  // namespace

bool cpu_fallback_enabled() { return g_cpu_fallback; }
void set_warner(void (*warn)(const std::string&)) { g_warn = warn; }
bool set_cpu_fallback(bool enabled) { return g_cpu_fallback.exchange(enabled); }

void run_composite(const OpInfo& info, Stack* stack) {
  if (call_composite(info, stack)) return;
  if (CaptureScope::active() != nullptr || InferScope::active()) throw NoKernel(info.name);
  TORCH_CHECK_NOT_IMPLEMENTED(
      cpu_fallback_enabled(), "The operator '", info.name,
      "' is not implemented for the tpu device (called with ", describe(info, *stack),
      "). To run it on the CPU, with copies, call torch.tpu.cpu_fallback(True)");
  warn_once(info.name);
  engine::ProgramCache::get().count_fallback();
  at::native::cpu_fallback(info.handle, stack);
}

void raise_argument_error(const lowering::ArgumentError& error) {
  switch (error.kind) {
    case lowering::ArgumentError::Kind::kIndex:
      TORCH_CHECK_INDEX(false, error.what());
    case lowering::ArgumentError::Kind::kType:
      TORCH_CHECK_TYPE(false, error.what());
    case lowering::ArgumentError::Kind::kNotImplemented:
      TORCH_CHECK_NOT_IMPLEMENTED(false, error.what());
    case lowering::ArgumentError::Kind::kValue:
      break;
  }
  TORCH_CHECK(false, error.what());
}

stablehlo::Precision matmul_precision() {
  switch (at::globalContext().float32MatmulPrecision()) {
    case at::Float32MatmulPrecision::HIGHEST:
      return stablehlo::Precision::kHighest;
    case at::Float32MatmulPrecision::HIGH:
      return stablehlo::Precision::kHigh;
    case at::Float32MatmulPrecision::MEDIUM:
      return stablehlo::Precision::kDefault;
  }
  return stablehlo::Precision::kHighest;
}

}  // namespace torch_tpu::aten
