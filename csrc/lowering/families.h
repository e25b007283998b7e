// The rows of every operator family. A family file includes this, and ends with
//     const OpRow kPointwiseRows[] = {...};
//     const size_t kPointwiseRowCount = std::size(kPointwiseRows);
#pragma once

#include <cstddef>

#include "lowering/table.h"

// A new family is one line here; table.cc takes its list from it.
#define TORCH_TPU_OPERATOR_FAMILIES(X) \
  X(Pointwise)                         \
  X(PointwiseUnary)                    \
  X(Activation)                        \
  X(Special)                           \
  X(PointwiseBackward)                 \
  X(Foreach)                           \
  X(Optimizer)                         \
  X(Random)                            \
  X(Creation)                          \
  X(Reduction)                         \
  X(Softmax)                           \
  X(Normalization)                     \
  X(Loss)                              \
  X(Matmul)                            \
  X(Attention)                         \
  X(Convolution)                       \
  X(Pooling)                           \
  X(Resize)                            \
  X(Indexing)                          \
  X(Scatter)                           \
  X(Sort)                              \
  X(Shape)                             \
  X(Scan)                              \
  X(Linalg)                            \
  X(Fft)                               \
  X(Recurrent)

namespace torch_tpu::lowering {

#define TORCH_TPU_DECLARE_FAMILY(name) \
  extern const OpRow k##name##Rows[];  \
  extern const size_t k##name##RowCount;
TORCH_TPU_OPERATOR_FAMILIES(TORCH_TPU_DECLARE_FAMILY)
#undef TORCH_TPU_DECLARE_FAMILY

}  // namespace torch_tpu::lowering
