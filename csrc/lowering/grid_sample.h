// grid_sampler_2d and grid_sampler_3d with their gradients; their rows are among the resize family's.
#pragma once

#include "lowering/call.h"

namespace torch_tpu::lowering {

Values lower_grid_sample(Call& c);
Values lower_grid_sample_backward(Call& c);

}  // namespace torch_tpu::lowering
