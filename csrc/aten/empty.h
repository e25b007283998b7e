// Tensors without a value on the device.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_tpu::aten {

// Uninitialised (reads as zeros); no device memory is taken until something is written.
at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype,
                         int device);
at::Tensor empty_contiguous(c10::IntArrayRef sizes, c10::ScalarType dtype, int device);

}  // namespace torch_tpu::aten
