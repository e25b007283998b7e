// A call in words: for errors, and for what tells two calls of one operator apart.
#pragma once

#include <ATen/core/stack.h>

#include <string>
#include <utility>
#include <vector>

#include "aten/op_info.h"

namespace torch_tpu::aten {

using torch::jit::Stack;

// "add_.Tensor(self: float32[2, 3], other: float32[3], alpha: 2)"; the arguments on top of `stack`.
std::string describe_call(const OpInfo& info, const Stack& stack);

// What a key is made of, in small parts: ("self.dtype", "float32"), ("self.shape[0]", "2"), ("dim", "1"), ...; numbers that
// travel as values are left out.
std::vector<std::pair<std::string, std::string>> key_parts(const OpInfo& info, const Stack& stack);

}  // namespace torch_tpu::aten
