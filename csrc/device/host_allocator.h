// The host allocator of the device: what pin_memory() takes memory from.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

namespace torch_tpu::device {

at::HostAllocator* host_allocator();
// Whether `address` lies in memory of this allocator.
bool is_host_memory(const void* address);

}  // namespace torch_tpu::device
