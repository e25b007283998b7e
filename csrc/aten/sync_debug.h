// torch.tpu.set_sync_debug_mode: tells where the host waits for the device.
#pragma once

namespace torch_tpu::aten {

enum class SyncDebugMode : int { kDefault = 0, kWarn = 1, kError = 2 };

void set_sync_debug_mode(SyncDebugMode mode);
SyncDebugMode sync_debug_mode();
// Called where `what` is about to wait for the device: warns or raises RuntimeError where the user asked for that.
void note_sync(const char* what);

}  // namespace torch_tpu::aten
