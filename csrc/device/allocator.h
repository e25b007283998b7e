// The allocator of tpu storages.
#pragma once

#include <c10/core/Allocator.h>

namespace torch_tpu::device {

c10::Allocator* storage_allocator();

}  // namespace torch_tpu::device
