// Autocast on tpu: the operators that run in the lower precision, those that need float32, and those that take the widest
// type of their arguments. The lists are PyTorch's own.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace torch_tpu::device {
namespace {

using at::autocast::CastPolicy;

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define TT_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(TT_LOWER_PRECISION)
#undef TT_LOWER_PRECISION
#define TT_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(TT_FP32)
#undef TT_FP32
#define TT_FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(TT_FP32_SET_OPT_DTYPE)
#undef TT_FP32_SET_OPT_DTYPE
  KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE(
      at::norm, "norm.Scalar", at::Tensor(const at::Tensor&, const at::Scalar&),
      at::Tensor(const at::Tensor&, const std::optional<at::Scalar>&, at::ScalarType),
      fp32_append_dtype)
  KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE(
      at::norm, "norm.ScalarOpt_dim",
      at::Tensor(const at::Tensor&, const std::optional<at::Scalar>&, at::IntArrayRef, bool),
      at::Tensor(const at::Tensor&, const std::optional<at::Scalar>&, at::IntArrayRef, bool,
                 at::ScalarType),
      fp32_append_dtype)
#define TT_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(TT_PROMOTE)
#undef TT_PROMOTE
  m.impl(
      "binary_cross_entropy",
      [](const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
         int64_t) -> at::Tensor {
        TORCH_CHECK(
            false,
            "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. "
            "Use "
            "torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss");
      });
}

}  // namespace
}  // namespace torch_tpu::device
