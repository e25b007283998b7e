// One OpInfo an operator, made when it is first called.
#pragma once

#include "aten/op_info.h"

namespace torch_tpu::aten {

const OpInfo& op_info(const c10::OperatorHandle& handle);

}  // namespace torch_tpu::aten
