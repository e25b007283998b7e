// Which operators the boxed kernel takes.
#pragma once

namespace torch_tpu::aten {

// Walks the dispatcher and registers the boxed kernel for every operator that has a row (its in-place and out= forms
// too), every structured operator, and the fallback for the rest. Once, when the extension module is loaded.
void register_operators();

}  // namespace torch_tpu::aten
