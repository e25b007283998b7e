#include "engine/diagnostics.h"

#include <atomic>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "engine/engine.h"

namespace torch_tpu::engine {
namespace {

thread_local int t_anomalies = 0;
thread_local bool t_no_compile = false;
LocationSource g_source;

std::atomic<bool>& tracebacks_flag() {
  static std::atomic<bool> flag = [] {
    const char* text = std::getenv("TORCH_TPU_TRACEBACKS");
    return text != nullptr && *text != 0 && std::string_view(text) != "0";
  }();
  return flag;
}

}  // namespace

ValueChecks value_checks() {
  if (eager_mode() != EagerMode::kDebug) return {};
  return {true, (t_anomalies & 1) != 0, (t_anomalies & 2) != 0};
}
int set_thread_anomalies(int flags) { return std::exchange(t_anomalies, flags); }

bool no_compile_expected() { return t_no_compile; }
bool set_no_compile_expected(bool expected) { return std::exchange(t_no_compile, expected); }

void set_location_source(LocationSource source) { g_source = source; }

bool tracebacks() { return tracebacks_flag().load(std::memory_order_relaxed); }
bool set_tracebacks(bool enabled) { return tracebacks_flag().exchange(enabled); }

const char* recorded_line() {
  return tracebacks() && g_source.line != nullptr ? g_source.line() : nullptr;
}

std::string where_now() {
  if (g_source.line == nullptr) return "";
  const char* line = g_source.line();
  std::string text = line == nullptr ? "" : std::string("\n  at ") + line;
  return text + g_source.backward();
}

}  // namespace torch_tpu::engine
