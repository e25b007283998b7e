#include "aten/infer.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>

#include "aten/dtypes.h"
#include "aten/empty.h"
#include "aten/node.h"
#include "lowering/module.h"

namespace torch_tpu::aten {
namespace {

using lowering::Infer;

ResultMeta meta_of(const at::Tensor& t) {
  if (!t.defined()) return {false, c10::ScalarType::Undefined, {}, {}};
  return {true, t.scalar_type(), c10::DimVector(t.sizes()), c10::DimVector(t.strides())};
}

c10::DimVector dense_strides(c10::IntArrayRef sizes) {
  c10::DimVector strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

// PyTorch's C++ composite kernel, run with every nested operator inferring only.
Inferred by_composite(const OpInfo& info, c10::ArrayRef<c10::IValue> args, c10::DispatchKey key) {
  Stack stack(args.begin(), args.end());
  {
    InferScope scope;
    at::AutoDispatchBelowADInplaceOrView below;  // nothing is written: no version counts up
    info.handle.callBoxedForDispatchKey(key, stack);
  }
  Inferred inferred;
  for (size_t i = 0; i < info.returns.size(); ++i) {
    if (info.returns[i].kind == ReturnKind::kFresh) {
      inferred.results.push_back(stack[i].isTensor() ? meta_of(stack[i].toTensor())
                                                     : ResultMeta{false, {}, {}, {}});
    } else if (info.returns[i].kind == ReturnKind::kFreshList) {
      const auto list = stack[i].toTensorVector();
      inferred.list_sizes.push_back(static_cast<int>(list.size()));
      for (const at::Tensor& t : list) inferred.results.push_back(meta_of(t));
    }
  }
  return inferred;
}

// Broadcast sizes, promoted dtype and preserved strides, as TensorIterator gives them.
Inferred by_iterator(const Walk& walk, c10::ScalarType dtype) {
  InferScope scope;
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false).check_all_same_dtype(false).check_all_same_device(false);
  at::Tensor out;
  config.add_owned_output(out);
  int device = std::max(walk.device, 0);
  for (const OperandRef& operand : walk.operands) {
    // A 0-d stand-in on the device for a number.
    config.add_owned_const_input(
        operand.slot != nullptr || operand.number < 0
            ? borrow(operand.impl)
            : make_valueless({true, operand.impl->dtype().toScalarType(), {}, {}}, device));
  }
  config.declare_static_dtype_and_device(
      dtype, c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)));
  const auto iterator = config.build();
  Inferred inferred;
  ResultMeta meta = meta_of(iterator.output());
  meta.dtype = dtype;
  inferred.results.push_back(std::move(meta));
  return inferred;
}

// The strides TensorIterator gives a result of the tensor's sizes.
c10::DimVector kept_strides(const c10::TensorImpl* impl) {
  if (impl->is_non_overlapping_and_dense()) return c10::DimVector(impl->strides());
  return c10::DimVector(at::infer_dense_strides(impl->sizes(), impl->strides()));
}

Inferred like_first(const Walk& walk) {
  TORCH_INTERNAL_ASSERT(!walk.operands.empty());
  const c10::TensorImpl* first = walk.operands.front().impl;
  ResultMeta meta{true, first->dtype().toScalarType(), c10::DimVector(first->sizes()),
                  kept_strides(first)};
  Inferred inferred;
  inferred.results.push_back(std::move(meta));
  return inferred;
}

// Strides of result `index` of a lowering: its operands' where the row says so, else of a contiguous tensor.
c10::DimVector lowered_strides(const OpInfo& info, const Walk& walk, size_t index,
                               const ResultMeta& meta) {
  const bool pointwise = info.row->tolerance == lowering::Tolerance::kElementwise ||
                         info.row->tolerance == lowering::Tolerance::kTranscendental;
  const bool list = !info.returns.empty() && info.returns.front().kind == ReturnKind::kFreshList;
  const size_t like = list ? index : 0;
  if (walk.operands.empty() || like >= walk.operands.size() ||
      !(pointwise || info.row->infer == Infer::kLoweringLikeFirst)) {
    return dense_strides(meta.sizes);
  }
  const c10::TensorImpl* first = walk.operands[like].impl;
  const bool all = pointwise && !list && index == 0 &&
                   std::ranges::all_of(walk.operands, [&](const OperandRef& operand) {
                     return at::is_expandable_to(operand.impl->sizes(), meta.sizes);
                   });
  if (all) {
    Inferred together = by_iterator(walk, meta.dtype);
    if (together.results.front().sizes == meta.sizes) return together.results.front().strides;
  }
  return meta.sizes == first->sizes() ? kept_strides(first) : dense_strides(meta.sizes);
}

Inferred by_lowering(const OpInfo& info, const Walk& walk, c10::ArrayRef<c10::IValue> args) {
  std::vector<DType> scalars;
  const std::vector<int> values(walk.operands.size(), 0);
  ir::Node node = make_node(info, walk, args, values, scalars, /*numbers_as_constants=*/false);
  if (info.row->random) {
    node.seed_slot = static_cast<int>(scalars.size());
    scalars.insert(scalars.end(), {DType::kI64, DType::kI64});
  }
  const auto types = lowering::infer_by_lowering(node, scalars);
  Inferred inferred;
  for (const auto& type : types) {
    if (!type) {
      inferred.results.push_back({false, {}, {}, {}});
      continue;
    }
    ResultMeta meta{true, to_scalar_type(type->dtype), {}, {}};
    for (const auto& d : type->dims) meta.sizes.push_back(d.fixed());
    meta.strides = lowered_strides(info, walk, inferred.results.size(), meta);
    inferred.results.push_back(std::move(meta));
  }
  // One list return takes all results that no other return needs.
  size_t singles = 0;
  for (const ReturnInfo& r : info.returns) singles += r.kind == ReturnKind::kFresh;
  for (const ReturnInfo& r : info.returns) {
    if (r.kind == ReturnKind::kFreshList) {
      inferred.list_sizes.push_back(
          static_cast<int>(inferred.results.size() - singles - info.written.size()));
    }
  }
  return inferred;
}

}  // namespace

bool& InferScope::flag() {
  thread_local bool active = false;
  return active;
}

bool can_infer(const OpInfo& info) {
  return info.structured || info.composite || info.row != nullptr;
}

Inferred infer_results(const OpInfo& info, const Walk& walk, c10::ArrayRef<c10::IValue> args) {
  const Infer rule = info.row != nullptr ? info.row->infer : Infer::kComposite;
  if (rule == Infer::kComposite) {
    if (info.structured)
      return by_composite(info, args, c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
    if (info.composite)
      return by_composite(info, args, c10::DispatchKey::CompositeExplicitAutograd);
  }
  if (rule == Infer::kPointwise) return by_iterator(walk, promoted_type(info, walk));
  if (rule == Infer::kCompare) return by_iterator(walk, c10::ScalarType::Bool);
  if (rule == Infer::kLikeFirst) return like_first(walk);
  TORCH_INTERNAL_ASSERT(info.row != nullptr, info.name);
  return by_lowering(info, walk, args);
}

at::Tensor make_valueless(const ResultMeta& meta, int device) {
  if (!meta.defined) return {};
  return empty_strided(meta.sizes, meta.strides, meta.dtype, device);
}

}  // namespace torch_tpu::aten
