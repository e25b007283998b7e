#include "aten/plan.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>

#include <unordered_map>

#include "aten/dtypes.h"
#include "aten/node.h"
#include "aten/op_cache.h"
#include "engine/engine.h"
#include "lowering/view.h"

namespace torch_tpu::aten {
namespace {

ir::ViewSpec view_of_meta(const ResultMeta& meta) {
  ir::ViewSpec view;
  view.dtype = to_dtype(meta.dtype);
  for (const int64_t s : meta.sizes) view.sizes.emplace_back(s);
  view.strides.assign(meta.strides.begin(), meta.strides.end());
  return view;
}

int64_t bytes_of(const ResultMeta& meta) {
  int64_t last = 0;
  for (size_t i = 0; i < meta.sizes.size(); ++i) {
    if (meta.sizes[i] == 0) return 0;
    last += (meta.sizes[i] - 1) * meta.strides[i];
  }
  return (last + 1) * static_cast<int64_t>(c10::elementSize(meta.dtype));
}

// The inferred results of the row: fresh ones first, then (where they could be told) the written ones.
Inferred infer_row(const OpInfo& info, const Walk& walk, c10::ArrayRef<c10::IValue> args) {
  // An in-place form's own composite kernel tells nothing of the results of a list.
  const bool by_functional = info.form == Form::kOut || info.in_turn;
  if (!by_functional || !info.functional) return infer_results(info, walk, args);
  Stack inputs;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!info.args[i].is_out) inputs.push_back(args[i]);
  }
  const OpInfo& functional = op_info(*info.functional);
  Walk functional_walk;
  {
    std::lock_guard lock(engine::engine_mutex());
    walk_arguments(functional, inputs, functional_walk);
  }
  return infer_results(functional, functional_walk, inputs);
}

// Sums and products compute in the dtype of out= where none is asked for.
constexpr std::string_view kTakeDtypeOfOut[] = {"sum", "nansum", "prod", "cumsum", "cumprod"};

std::vector<c10::IValue> with_dtype_of_out(const OpInfo& info, c10::ArrayRef<c10::IValue> given) {
  std::vector<c10::IValue> args(given.begin(), given.end());
  if (info.form != Form::kOut ||
      std::ranges::find(kTakeDtypeOfOut, info.label) == std::ranges::end(kTakeDtypeOfOut)) {
    return args;
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (info.args[i].name == "dtype" && args[i].isNone())
      args[i] = args[static_cast<size_t>(info.written.front())].toTensor().scalar_type();
  }
  return args;
}

class Planner {
 public:
  Planner(const OpInfo& info, const Walk& walk, int first_result)
      : info_(info), walk_(walk), first_(first_result) {}

  void fresh(const ResultMeta& meta) {
    ir::Result result;
    if (!meta.defined) {
      result.undefined = true;
    } else {
      result.view = view_of_meta(meta);
      result.storage_bytes = bytes_of(meta);
      result.value = lowering::value_after_write(result.view, nullptr, result.storage_bytes);
    }
    plan_.node.results.push_back(std::move(result));
    plan_.fresh.results.push_back(meta);
  }

  void written(int index, const ResultMeta* meta, const std::vector<int>& values) {
    const OperandRef& operand = walk_.operands[static_cast<size_t>(index)];
    if (!info_.writes_expanded) at::assert_no_internal_overlap(operand.impl);
    ir::Result result;
    result.written = true;
    result.view = view_of(operand.impl, operand.offset);
    result.storage_bytes = operand.slot != nullptr ? operand.slot->bytes : 0;
    if (meta != nullptr) {
      check_cast(*meta, operand);
      if (c10::IntArrayRef(meta->sizes) != operand.impl->sizes()) {
        resize(index, *meta);
        return place(index, std::move(result));
      }
    }
    const int root = operand.same_slot >= 0 ? operand.same_slot : index;
    const auto earlier = last_write_.find(root);
    if (earlier != last_write_.end()) {
      const ir::Result& before = plan_.node.results[static_cast<size_t>(earlier->second)];
      result.base = first_ + earlier->second;
      result.value = lowering::value_after_write(result.view, &before.value, result.storage_bytes);
    } else if (operand.type != nullptr) {
      const ir::ValueSpec old = engine::spec_of(operand.type);
      result.base = values[static_cast<size_t>(index)];
      result.value = lowering::value_after_write(result.view, &old, result.storage_bytes);
    } else {
      result.value = lowering::value_after_write(result.view, nullptr, result.storage_bytes);
    }
    place(index, std::move(result));
  }

  NodePlan finish() {
    for (const auto& [root, result] : last_write_) plan_.writes.emplace_back(root, result);
    return std::move(plan_);
  }
  NodePlan& plan() { return plan_; }

 private:
  void place(int index, ir::Result result) {
    const OperandRef& operand = walk_.operands[static_cast<size_t>(index)];
    last_write_[operand.same_slot >= 0 ? operand.same_slot : index] =
        static_cast<int>(plan_.node.results.size());
    plan_.node.results.push_back(std::move(result));
  }

  void check_cast(const ResultMeta& meta, const OperandRef& operand) const {
    const auto wanted = operand.impl->dtype().toScalarType();
    TORCH_CHECK(c10::canCast(meta.dtype, wanted), "result type ", meta.dtype,
                " can't be cast to the desired output type ", wanted);
  }

  void resize(int index, const ResultMeta& meta) {
    const OperandRef& operand = walk_.operands[static_cast<size_t>(index)];
    TORCH_CHECK(info_.form == Form::kOut, "output with shape ", operand.impl->sizes(),
                " doesn't match the broadcast shape ", c10::IntArrayRef(meta.sizes));
    plan_.resizes.push_back({index, meta.sizes, meta.strides});
  }

  const OpInfo& info_;
  const Walk& walk_;
  int first_;
  NodePlan plan_;
  std::unordered_map<int, int> last_write_;  // first operand of a storage -> result
};

}  // namespace

void apply_resizes(const std::vector<ResizePlan>& resizes, const Walk& walk) {
  for (const ResizePlan& resize : resizes) {
    c10::TensorImpl* impl = walk.operands[static_cast<size_t>(resize.operand)].impl;
    if (!at::native::resize_output(borrow(impl), resize.sizes)) continue;
    impl->set_sizes_and_strides(resize.sizes, resize.strides);
    if (!impl->is_non_overlapping_and_dense()) impl->set_sizes_contiguous(resize.sizes);
  }
}

NodePlan plan_node(const OpInfo& info, const Walk& walk, c10::ArrayRef<c10::IValue> given,
                   const std::vector<int>& values, int first_result,
                   std::vector<stablehlo::DType>& scalars, bool numbers_as_constants) {
  const std::vector<c10::IValue> args = with_dtype_of_out(info, given);
  const Inferred inferred = infer_row(info, walk, args);
  Planner planner(info, walk, first_result);
  planner.plan().node = make_node(info, walk, args, values, scalars, numbers_as_constants);
  planner.plan().fresh.list_sizes = inferred.list_sizes;
  if (info.row->random) {
    planner.plan().node.seed_slot = static_cast<int>(scalars.size());
    scalars.insert(scalars.end(), {DType::kI64, DType::kI64});
  }

  std::vector<int> targets;  // written operands, in the order of the written arguments
  for (const int argument : info.written) {
    for (size_t i = 0; i < walk.operands.size(); ++i) {
      if (walk.operands[i].argument == argument) targets.push_back(static_cast<int>(i));
    }
  }
  // In-place and out= forms hand their written arguments back: all inferred results then belong to those.
  bool any_fresh = false;
  for (const ReturnInfo& r : info.returns)
    any_fresh |= r.kind == ReturnKind::kFresh || r.kind == ReturnKind::kFreshList;
  size_t fresh = any_fresh ? inferred.results.size() : 0;
  if (any_fresh && inferred.results.size() > targets.size() &&
      (info.row->infer == lowering::Infer::kLowering ||
       info.row->infer == lowering::Infer::kLoweringLikeFirst)) {
    fresh = inferred.results.size() - targets.size();
  }
  for (size_t i = 0; i < fresh; ++i) planner.fresh(inferred.results[i]);
  for (size_t i = 0; i < targets.size(); ++i) {
    const size_t known = fresh + i;
    const bool told = known < inferred.results.size() && inferred.results[known].defined;
    planner.written(targets[i], told ? &inferred.results[known] : nullptr, values);
  }
  return planner.finish();
}

}  // namespace torch_tpu::aten
