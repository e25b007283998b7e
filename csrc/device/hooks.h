// Makes ATen know this backend; called once when the extension module is loaded.
#pragma once

#include <c10/core/Storage.h>

namespace torch_tpu::device {

// Gives a storage another size, keeping the values that fit: what `untyped_storage().resize_()` calls.
using ResizeStorage = void (*)(const c10::Storage& storage, int64_t bytes);

void register_hooks(ResizeStorage resize);

}  // namespace torch_tpu::device
