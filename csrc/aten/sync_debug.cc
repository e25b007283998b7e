#include "aten/sync_debug.h"

#include <c10/util/Exception.h>

#include <atomic>

namespace torch_tpu::aten {
namespace {

std::atomic<SyncDebugMode> g_mode{SyncDebugMode::kDefault};

}  // namespace

void set_sync_debug_mode(SyncDebugMode mode) { g_mode = mode; }
SyncDebugMode sync_debug_mode() { return g_mode; }

void note_sync(const char* what) {
  switch (g_mode.load(std::memory_order_relaxed)) {
    case SyncDebugMode::kDefault:
      return;
    case SyncDebugMode::kWarn:
      TORCH_WARN("called a synchronizing tpu operation: ", what);
      return;
    case SyncDebugMode::kError:
      TORCH_CHECK(false, "called a synchronizing tpu operation: ", what);
  }
}

}  // namespace torch_tpu::aten
