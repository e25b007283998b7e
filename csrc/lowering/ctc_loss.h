// Connectionist temporal classification and its gradient; their rows are among the loss family's.
#pragma once

#include "lowering/call.h"

namespace torch_tpu::lowering {

Values lower_ctc_loss(Call& c);
Values lower_ctc_loss_backward(Call& c);

}  // namespace torch_tpu::lowering
