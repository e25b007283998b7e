// The current device and stream of the calling thread.
#pragma once

#include <c10/core/Stream.h>

namespace torch_tpu::device {

int current_device();
// Returns the previous one. Throws for a device that does not exist.
int set_current_device(int device);

// Streams are names: work is ordered by its data and by the launch queue, so they never reorder and add no concurrency.
c10::Stream current_stream(int device);
c10::Stream exchange_current_stream(c10::Stream stream);
c10::Stream new_stream(int device);

}  // namespace torch_tpu::device
