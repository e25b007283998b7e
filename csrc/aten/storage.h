// Storages: growing and shrinking them, and setting a storage's whole value.
#pragma once

#include <c10/core/Storage.h>

#include "engine/array.h"

namespace torch_tpu::aten {

// Gives the storage `bytes` bytes; the values that fit are kept, new memory is uninitialised.
void resize_storage(const c10::Storage& storage, int64_t bytes);

}  // namespace torch_tpu::aten
