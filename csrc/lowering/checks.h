// Conditions on values that a program checks while it runs: debug mode's index ranges, NaNs and infinities.
#pragma once

#include <vector>

#include "lowering/call.h"
#include "lowering/module.h"

namespace torch_tpu::lowering {

// Adds the checks that a node's results hold no NaN (no infinity) that its operands did not hold.
void check_anomalies(Builder& b, const ir::Node& node, const std::vector<Value>& operands,
                     const Values& results, const ModuleOptions& options,
                     std::vector<PendingCheck>& checks);

// Two i64 a check: 1 where it failed, and the first offending value.
Value pack_checks(Builder& b, const std::vector<PendingCheck>& checks);

}  // namespace torch_tpu::lowering
