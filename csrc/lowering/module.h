// A graph as a StableHLO module: parameters are the inputs, then the packed scalars (ui32) where there are any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "lowering/call.h"
#include "lowering/table.h"

namespace torch_tpu::lowering {

struct ModuleOptions {
  stablehlo::Precision precision = stablehlo::Precision::kHighest;
  bool check_values = false;                  // debug mode: index ranges and their like
  bool check_nan = false, check_inf = false;  // results that first hold one
};

// What the choice of compile options depends on.
struct ModuleTraits {
  bool only_short_trailing_reductions = false;  // all of at most kShortReduction elements
  bool has_contractions = false;                // ModuleOptions::precision is part of the program
  // Where there are any, the program has one output more: two i64 a check, whether it failed and the offending value.
  std::vector<DeviceCheck> checks;
};
inline constexpr int64_t kShortReduction = 4096;

// Throws BuildError (our bug) or ArgumentError (the user's).
std::string lower_module(const ir::Graph& graph, const ModuleOptions& options,
                         ModuleTraits* traits = nullptr);
// Runs one node's lowering on placeholder operands (of their views' logical types) and returns its result types;
// nullopt for a result the lowering leaves undefined.
std::vector<std::optional<stablehlo::Type>> infer_by_lowering(
    const ir::Node& node, const std::vector<stablehlo::DType>& scalars);

}  // namespace torch_tpu::lowering
