#include "engine/client.h"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "engine/memory.h"

namespace torch_tpu::engine {
namespace {

std::mutex& start_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
pjrt::PluginCandidates g_candidates;
std::string g_startup_error;
std::atomic<const pjrt::Client*> g_client{nullptr};
std::atomic<bool> g_bad_fork{false};

// The number of devices the user asked for; 1 without TORCH_TPU_NUM_DEVICES.
int requested_devices() {
  const char* text = std::getenv("TORCH_TPU_NUM_DEVICES");
  if (text == nullptr || *text == 0) return 1;
  char* end = nullptr;
  const long n = std::strtol(text, &end, 10);
  TORCH_CHECK_VALUE(*end == 0 && n >= 1 && n <= kMaxDevices, "TORCH_TPU_NUM_DEVICES=", text,
                    " is not a number from 1 to ", kMaxDevices);
  return static_cast<int>(n);
}

[[noreturn]] void fail(const pjrt::Status& status) { TORCH_CHECK(false, status.message()); }

}  // namespace

void set_plugin_candidates(pjrt::PluginCandidates candidates) {
  std::lock_guard lock(start_mutex());
  g_candidates = std::move(candidates);
}

void set_startup_error(std::string message) {
  std::lock_guard lock(start_mutex());
  g_startup_error = std::move(message);
}

bool client_started() { return g_client.load(std::memory_order_acquire) != nullptr; }

bool in_bad_fork() { return g_bad_fork.load(std::memory_order_relaxed); }

void check_fork() {
  TORCH_CHECK(!in_bad_fork(),
              "Cannot re-initialize tpu in forked subprocess. To use tpu with multiprocessing, you "
              "must use the "
              "'spawn' start method");
}

const pjrt::Client& client() {
  if (const auto* ready = g_client.load(std::memory_order_acquire)) {
    check_fork();
    return *ready;
  }
  std::lock_guard lock(start_mutex());
  if (const auto* ready = g_client.load(std::memory_order_acquire)) return *ready;
  TORCH_CHECK_VALUE(g_startup_error.empty(), g_startup_error);
  const int64_t memory_limit = memory_limit_of_environment();
  auto choice = pjrt::discover(g_candidates);
  if (!choice.ok()) fail(choice.status());
  auto plugin = pjrt::Plugin::load(choice->path);
  if (!plugin.ok()) fail(plugin.status());
  pjrt::ClientOptions options;
  options.cpu_device_count = requested_devices();
  auto created = pjrt::Client::create(**plugin, options);
  if (!created.ok()) fail(created.status());
  TORCH_CHECK((*created)->num_devices() > 0, "the PJRT plugin ", choice->path, " has no devices");
  for (int i = 0; i < kMaxDevices; ++i) memory(i).set_limit_bytes(memory_limit);
  pthread_atfork(nullptr, nullptr, [] { g_bad_fork = true; });
  const auto* made = std::move(created).value().release();  // lives to the end of the process
  g_client.store(made, std::memory_order_release);
  return *made;
}

int device_count() {
  if (const auto* ready = g_client.load(std::memory_order_acquire))
    return std::min(ready->num_devices(), kMaxDevices);
  pjrt::PluginCandidates candidates;
  {
    std::lock_guard lock(start_mutex());
    candidates = g_candidates;
  }
  auto choice = pjrt::discover(candidates);
  if (!choice.ok()) return 0;
  if (choice->is_tpu) return client().num_devices();
  return requested_devices();
}

}  // namespace torch_tpu::engine
