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

// What stands between the brackets of the first "tensor<3x5xf32>" after `from`.
std::string tensor_text(const std::string& text, size_t from) {
  constexpr std::string_view kOpen = "tensor<";
  const size_t start = text.find(kOpen, from);
  if (start == std::string::npos) return "";
  size_t end = start + kOpen.size();
  for (int depth = 1; end < text.size(); ++end) {
    depth += text[end] == '<' ? 1 : text[end] == '>' ? -1 : 0;
    if (depth == 0) break;
  }
  return text.substr(start + kOpen.size(), end - start - kOpen.size());
}

// "3x5" of it; a scalar's is empty.
std::string shape(const std::string& text, size_t from) {
  const std::string tensor = tensor_text(text, from);
  const size_t last = tensor.find_first_not_of("0123456789x");
  return last == std::string::npos || last == 0 ? "" : tensor.substr(0, last - 1);
}

// PyTorch's name of its element type.
std::string element_type(const std::string& text, size_t from) {
  const std::string tensor = tensor_text(text, from);
  const std::string element =
      tensor.substr(std::min(tensor.find_first_not_of("0123456789x"), tensor.size()));
  static const std::unordered_map<std::string_view, c10::ScalarType> kNames = {
      {"i1", c10::kBool},
      {"i8", c10::kChar},
      {"i16", c10::kShort},
      {"i32", c10::kInt},
      {"i64", c10::kLong},
      {"ui8", c10::kByte},
      {"f16", c10::kHalf},
      {"bf16", c10::kBFloat16},
      {"f32", c10::kFloat},
      {"f64", c10::kDouble},
      {"complex<f32>", c10::kComplexFloat},
      {"complex<f64>", c10::kComplexDouble},
  };
  const auto found = kNames.find(element);
  return found == kNames.end() ? element : c10::toString(found->second);
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
    case lowering::ArgumentError::Kind::kValue:
      break;
  }
  TORCH_CHECK(false, error.what());
}

void raise_build_error(const OpInfo& info, const std::string& problem) {
  const size_t undefined = problem.find(": not defined for ");
  if (undefined != std::string::npos) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, '"', info.label, "\" not implemented for '",
                                element_type(problem, undefined), "' on the tpu device");
  }
  if (const size_t shapes = problem.find("cannot broadcast "); shapes != std::string::npos) {
    const std::string a = shape(problem, shapes),
                      b = shape(problem, problem.find(" with ", shapes));
    TORCH_CHECK(false, info.label, ": The size of tensor a (", a,
                ") must match the size of tensor b (", b, ") at every non-singleton dimension");
  }
  TORCH_CHECK(problem.find("operands must have one element type") == std::string::npos, info.label,
              ": expected all tensors to have the same dtype");
  TORCH_CHECK(false, info.name, " cannot be lowered for the tpu device: ", problem);
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
