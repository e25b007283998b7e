// The allocator of tpu storages.
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <utility>

namespace torch_tpu::device {

c10::Allocator* storage_allocator();

// Free and total bytes of a device: the plugin's limit, or the host's memory where the plugin has none.
std::pair<int64_t, int64_t> memory_info(int device);

}  // namespace torch_tpu::device
