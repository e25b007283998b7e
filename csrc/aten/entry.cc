#include "aten/entry.h"

#include <algorithm>

#include "aten/capture.h"
#include "aten/fallback.h"
#include "aten/plan.h"
#include "engine/recorder.h"
#include "lowering/module.h"
#include "lowering/view.h"

namespace torch_tpu::aten {
namespace {

constexpr size_t kMaxVariants =
    8;  // fixed offsets tried before a key's further offsets share one program
constexpr size_t kMaxVerified = 1 << 16;  // remembered offsets a dynamic operand
constexpr size_t kManyKernels =
    8;  // results of one node from which equal ones are worth compiling once

// Lowers the graph: what is wrong with it is raised here, at the call.
void make_step(ir::Graph graph, const OpInfo& info, engine::ValueChecks checks, Variant& variant) {
  lowering::ModuleOptions options;
  options.precision = matmul_precision();
  options.check_values = checks.ranges;
  options.check_nan = checks.nan;
  options.check_inf = checks.inf;
  std::string text;
  lowering::ModuleTraits module;
  try {
    if (checks.ranges) {
      const std::string problem = ir::verify(graph);
      TORCH_INTERNAL_ASSERT(problem.empty(), info.name, ": ", problem);
    }
    text = lowering::lower_module(graph, options, &module);
  } catch (const lowering::ArgumentError& e) {
    raise_argument_error(e);
  } catch (const stablehlo::BuildError& e) {
    raise_build_error(info, e);
  }
  variant.user_options = engine::user_options();
  if (module.has_contractions) variant.precision = options.precision;
  engine::ProgramTraits traits;
  traits.user_options = variant.user_options;
  traits.only_short_trailing_reductions = module.only_short_trailing_reductions;
  traits.many_equal_kernels =
      graph.nodes.size() == 1 && graph.nodes.front().results.size() >= kManyKernels;
  variant.checks = std::move(module.checks);
  variant.step = std::make_shared<engine::Step>(std::move(graph), std::move(text),
                                                info.label.c_str(), traits, options.precision);
}

c10::SmallVector<int64_t, 6> offsets_of(const Walk& walk) {
  c10::SmallVector<int64_t, 6> offsets;
  for (const OperandRef& operand : walk.operands) offsets.push_back(operand.offset);
  return offsets;
}

// What the lowering refuses of a call without elements to compute, which needs no program.
void check_arguments(const ir::Node& node, const std::vector<stablehlo::DType>& scalars) {
  try {
    lowering::infer_by_lowering(node, scalars);
  } catch (const stablehlo::BuildError&) {  // it has no form for sizes of zero, and needs none
  }
}

}  // namespace

std::shared_ptr<Entry> build_entry(const OpInfo& info, const Walk& walk,
                                   c10::ArrayRef<c10::IValue> args) {
  auto entry = std::make_shared<Entry>();
  if (info.form == Form::kOut) {
    entry->shares_memory = std::ranges::any_of(
        walk.operands, [](const OperandRef& operand) { return operand.same_slot >= 0; });
  }
  if (info.row == nullptr) {
    if (!capture_entry(info, walk, args, *entry)) return nullptr;
  } else {
    std::vector<int> values(walk.operands.size(), -1);
    for (size_t i = 0; i < walk.operands.size(); ++i) {
      const OperandRef& operand = walk.operands[i];
      if (operand.type == nullptr) continue;
      if (operand.same_array >= 0) {
        values[i] = values[static_cast<size_t>(operand.same_array)];
        continue;
      }
      values[i] = static_cast<int>(entry->graph.inputs.size());
      entry->graph.inputs.push_back(engine::spec_of(operand.type));
      entry->inputs.push_back(static_cast<int>(i));
    }
    const int first = static_cast<int>(entry->graph.inputs.size());
    NodePlan plan =
        plan_node(info, walk, args, values, first, entry->scalars, /*numbers_as_constants=*/false);
    entry->random_draws = info.row->random ? 1 : 0;
    entry->resizes = plan.resizes;
    if (!entry->resizes.empty()) return entry;
    entry->list_sizes = plan.fresh.list_sizes;
    const auto add_output = [&](int result, int operand) {
      const ir::Result& r = plan.node.results[static_cast<size_t>(result)];
      OutputPlan out;
      out.operand = operand;
      out.storage_bytes = r.storage_bytes;
      if (r.storage_bytes > 0) {
        out.type = engine::type_of(r.value);
        out.program_output = static_cast<int>(entry->graph.outputs.size());
        entry->graph.outputs.push_back(first + result);
        // Storages may share a value (copy_ lets them): it is given away once.
        const bool given = std::ranges::any_of(
            entry->graph.donations, [&](const auto& donation) { return donation.first == r.base; });
        if (r.base >= 0 && r.base < first && !given &&
            engine::type_of(entry->graph.inputs[static_cast<size_t>(r.base)]) == out.type) {
          entry->graph.donations.emplace_back(r.base, out.program_output);
        }
      }
      entry->outputs.push_back(out);
    };
    for (size_t i = 0; i < plan.fresh.results.size(); ++i) {
      const ResultMeta& meta = plan.fresh.results[i];
      FreshPlan fresh;
      fresh.defined = meta.defined;
      if (meta.defined) {
        fresh.output = static_cast<int>(entry->outputs.size());
        fresh.dtype = c10::scalarTypeToTypeMeta(meta.dtype);
        fresh.sizes = meta.sizes;
        fresh.strides = meta.strides;
        add_output(static_cast<int>(i), -1);
      }
      entry->fresh.push_back(std::move(fresh));
    }
    for (const auto& [operand, result] : plan.writes) add_output(result, operand);
    if (entry->graph.outputs.empty()) check_arguments(plan.node, entry->scalars);
    entry->graph.nodes.push_back(std::move(plan.node));
    entry->graph.scalars = entry->scalars;
  }
  return entry;
}

bool fits(Variant& variant, const Entry& entry, const Walk& walk) {
  if (variant.user_options != engine::user_options() ||
      (variant.precision && *variant.precision != matmul_precision())) {
    return false;
  }
  for (size_t i = 0; i < walk.operands.size(); ++i) {
    if (walk.operands[i].offset == variant.offsets[i]) continue;
    const auto at = std::find(variant.dynamic.begin(), variant.dynamic.end(), static_cast<int>(i));
    if (at == variant.dynamic.end()) return false;
    auto& verified = variant.verified[static_cast<size_t>(at - variant.dynamic.begin())];
    const int64_t offset = walk.operands[i].offset;
    if (verified.contains(offset)) continue;
    const OperandRef& operand = walk.operands[i];
    if (operand.type == nullptr) return false;
    ir::ViewSpec compiled = entry.graph.nodes.front().operands[i].view;
    compiled.offset = variant.offsets[i];
    ir::ViewSpec wanted = compiled;
    wanted.offset = offset;
    if (!lowering::same_form(engine::spec_of(operand.type), compiled, wanted)) return false;
    if (verified.size() >= kMaxVerified) verified.clear();
    verified.insert(offset);
  }
  return true;
}

Variant& add_variant(const OpInfo& info, Entry& entry, const Walk& walk,
                     engine::ValueChecks checks) {
  Variant variant;
  variant.offsets = offsets_of(walk);
  ir::Graph graph = entry.graph;
  if (graph.nodes.size() == 1 && info.row != nullptr) {
    ir::Node& node = graph.nodes.front();
    for (size_t i = 0; i < walk.operands.size(); ++i) {
      if (walk.operands[i].slot == nullptr) continue;
      node.operands[i].view.offset = walk.operands[i].offset;
    }
    size_t target = entry.fresh.size();  // results: fresh ones, then the written operands in order
    std::vector<int> written;
    for (const int argument : info.written) {
      for (size_t i = 0; i < walk.operands.size(); ++i) {
        if (walk.operands[i].argument == argument) written.push_back(static_cast<int>(i));
      }
    }
    for (const int operand : written) {
      node.results[target++].view.offset = walk.operands[static_cast<size_t>(operand)].offset;
    }
    if (!entry.variants.empty()) {
      const Variant& before = entry.variants.back();
      std::vector<int> slots(walk.operands.size(), -1);
      for (size_t i = 0; i < walk.operands.size(); ++i) {
        const OperandRef& operand = walk.operands[i];
        if (operand.type == nullptr) continue;
        const bool was = std::find(before.dynamic.begin(), before.dynamic.end(),
                                   static_cast<int>(i)) != before.dynamic.end();
        if (!was && operand.offset == before.offsets[i]) continue;
        ir::ViewSpec& view = node.operands[i].view;
        ir::ViewSpec other = view;
        other.offset = before.offsets[i];
        if (!lowering::same_form(engine::spec_of(operand.type), view, other)) continue;
        slots[i] = static_cast<int>(graph.scalars.size());
        graph.scalars.push_back(stablehlo::DType::kI64);
        view.offset_slot = slots[i];
        variant.dynamic.push_back(static_cast<int>(i));
        variant.verified.emplace_back();
        variant.verified.back().insert({operand.offset, before.offsets[i]});
      }
      target = entry.fresh.size();
      for (const int operand : written) {
        node.results[target++].view.offset_slot = slots[static_cast<size_t>(operand)];
      }
    }
  }
  if (!graph.outputs.empty()) make_step(std::move(graph), info, checks, variant);
  if (entry.variants.size() >= kMaxVariants) entry.variants.erase(entry.variants.begin());
  entry.variants.push_back(std::move(variant));
  return entry.variants.back();
}

}  // namespace torch_tpu::aten
