#include "aten/fallback.h"

#include <ATen/Context.h>
#include <ATen/native/CPUFallback.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string_view>
#include <unordered_map>

#include "aten/capture.h"
#include "aten/composite.h"
#include "aten/describe.h"
#include "aten/dtypes.h"
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

// "2x3", "" for a scalar: as error texts of PyTorch's have always shown a shape here.
std::string shape_text(const stablehlo::Type& type) {
  std::string text;
  for (const stablehlo::Size& d : type.dims) text += (text.empty() ? "" : "x") + d.str();
  return text;
}

}  // namespace

bool cpu_fallback_enabled() { return g_cpu_fallback; }
void set_warner(void (*warner)(const std::string&)) { g_warn = warner; }
void warn(const std::string& message) { g_warn(message); }
bool set_cpu_fallback(bool enabled) { return g_cpu_fallback.exchange(enabled); }

void run_composite(const OpInfo& info, Stack* stack) {
  if (call_composite(info, stack)) return;
  if (CaptureScope::active() != nullptr || InferScope::active()) throw NoKernel(info.name);
  TORCH_CHECK_NOT_IMPLEMENTED(
      cpu_fallback_enabled(), "The operator '", info.name,
      "' is not implemented for the tpu device (called as ", describe_call(info, *stack),
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
    case lowering::ArgumentError::Kind::kPythonValue:
      TORCH_CHECK_VALUE(false, error.what());
    case lowering::ArgumentError::Kind::kValue:
      break;
  }
  TORCH_CHECK(false, error.what());
}

void raise_build_error(const OpInfo& info, const stablehlo::BuildError& error) {
  using Cause = stablehlo::BuildError::Cause;
  if (error.cause == Cause::kDtype && !error.operands.empty()) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, '"', info.label, "\" not implemented for '",
                                c10::toString(to_scalar_type(error.operands.front().dtype)),
                                "' on the tpu device");
  }
  if (error.cause == Cause::kBroadcast) {
    TORCH_CHECK(false, info.label, ": The size of tensor a (", shape_text(error.operands.at(0)),
                ") must match the size of tensor b (", shape_text(error.operands.at(1)),
                ") at every non-singleton dimension");
  }
  TORCH_CHECK(error.cause != Cause::kMixedDtypes, info.label,
              ": expected all tensors to have the same dtype");
  TORCH_CHECK(false, info.name, " cannot be lowered for the tpu device: ", error.what());
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
