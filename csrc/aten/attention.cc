// Which attention kernel scaled_dot_product_attention takes on the device.
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>

namespace torch_tpu::aten {
namespace {

// One fused program, but for grouped heads, which PyTorch's own formula repeats first.
int64_t choose_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const std::optional<at::Tensor>&, double, bool, std::optional<double>,
                         bool) {
  const bool plain = query.dim() == 4 && key.dim() == 4 && value.dim() == 4 &&
                     query.size(1) == key.size(1) && key.size(1) == value.size(1) &&
                     query.scalar_type() == key.scalar_type() &&
                     at::isFloatingType(query.scalar_type());
  return static_cast<int64_t>(plain ? sdp::SDPBackend::overrideable : sdp::SDPBackend::math);
}

}  // namespace
}  // namespace torch_tpu::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &torch_tpu::aten::choose_attention)
}  // namespace at::native
