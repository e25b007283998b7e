// Where the user's Python code is.
#pragma once

#include <string>

namespace torch_tpu::python {

// "train.py:12 in forward" for the innermost frame outside torch and torch_tpu, interned for the process; null where there
// is none. Takes Python's lock.
const char* user_line();
// While a backward runs: which node, and where its forward ran if PyTorch knows it (torch.autograd.detect_anomaly). Else
// empty. Takes Python's lock.
std::string backward_origin();

}  // namespace torch_tpu::python
