#include "engine/compile_options.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

#include "engine/client.h"
#include "pjrt/executable.h"

namespace torch_tpu::engine {
namespace {

using UserOptions = std::map<std::string, std::string>;

constexpr const char* kTrialProgram = R"(module @options {
  func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
    return %arg0 : tensor<f32>
  }
})";

std::atomic<int> g_process_options{0};
thread_local int t_thread_options = -1;

struct OptionSets {
  std::mutex mutex;
  std::deque<UserOptions> sets{{}};  // never moved, never changed
};

OptionSets& option_sets() {
  static auto* sets = new OptionSets;  // the pool's threads outlive static objects
  return *sets;
}

// The plugin reads numbers from text, but not what XLA_FLAGS takes for a bool.
void set_option(pjrt::CompileOptions& options, const std::string& name, const std::string& value) {
  if (value == "true" || value == "false") {
    options.env_option_overrides[name] = value == "true";
  } else {
    options.env_option_overrides[name] = value;
  }
}

const UserOptions& user_option_set(int set) {
  std::lock_guard lock(option_sets().mutex);
  return option_sets().sets.at(static_cast<size_t>(set));
}

}  // namespace

pjrt::CompileOptions compile_options(const ProgramTraits& traits) {
  pjrt::CompileOptions options;
  options.compile_portable_executable = client().num_devices() > 1;
  auto& xla = options.env_option_overrides;
  xla["xla_allow_excess_precision"] = false;  // bf16 and f16 round where PyTorch rounds
  if (client().platform_name() == "cpu") {
    xla["xla_cpu_enable_fast_min_max"] = false;  // else maximum and minimum drop NaN
    xla["xla_cpu_use_xnnpack"] =
        false;  // it keeps packed right operands by address: stale after a donated update
    // docs/compile-options.md has the measurements behind these.
    xla["xla_cpu_parallel_codegen_split_count"] = int64_t{1};
    if (!traits.many_equal_kernels) xla["xla_cpu_use_fusion_emitters"] = false;
    if (traits.only_short_trailing_reductions)
      xla["xla_disable_hlo_passes"] = std::string("tree_reduction_rewriter");
  }
  for (const auto& [name, value] : user_option_set(traits.user_options))
    set_option(options, name, value);
  return options;
}

int intern_user_options(const UserOptions& options) {
  OptionSets& all = option_sets();
  {
    std::lock_guard lock(all.mutex);
    for (size_t i = 0; i < all.sets.size(); ++i) {
      if (all.sets[i] == options) return static_cast<int>(i);
    }
  }
  pjrt::CompileOptions trial = compile_options({});
  for (const auto& [name, value] : options) set_option(trial, name, value);
  const auto compiled = pjrt::compile(client(), kTrialProgram, trial);
  TORCH_CHECK_VALUE(compiled.ok(),
                    "the compiler does not take these options: ", compiled.status().message());
  std::lock_guard lock(all.mutex);
  all.sets.push_back(options);
  return static_cast<int>(all.sets.size() - 1);
}

int user_options() {
  return t_thread_options >= 0 ? t_thread_options
                               : g_process_options.load(std::memory_order_relaxed);
}
void set_process_user_options(int set) { g_process_options = set; }
int set_thread_user_options(int set) { return std::exchange(t_thread_options, set); }

}  // namespace torch_tpu::engine
