// Warns when one operator keeps needing new programs, and names what differs from call to call.
#pragma once

#include "aten/describe.h"

namespace torch_tpu::aten {

// Called for every call whose key is new. Warns once an operator, and for a few operators a process.
void note_new_key(const OpInfo& info, const Stack& stack);

}  // namespace torch_tpu::aten
