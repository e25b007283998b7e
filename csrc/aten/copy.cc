// Copies: within the device, between devices, and to and from the host; single numbers read by the host.
#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "aten/capture.h"
#include "aten/dtypes.h"
#include "aten/empty.h"
#include "aten/infer.h"
#include "aten/kernel.h"
#include "aten/op_cache.h"
#include "aten/sync_debug.h"
#include "engine/client.h"
#include "engine/diagnostics.h"
#include "engine/engine.h"

namespace torch_tpu::aten {
namespace {

using engine::ArrayPtr;

bool on_device(const at::Tensor& t) { return t.device().type() == c10::DeviceType::PrivateUse1; }

// The tensor is all of its storage, densely, in some order of its dimensions.
bool covers_storage(const at::Tensor& t) {
  return t.storage_offset() == 0 && t.is_non_overlapping_and_dense() &&
         static_cast<size_t>(t.numel()) * t.dtype().itemsize() == t.storage().nbytes();
}

engine::Slot* slot_of(const at::Tensor& t) { return engine::slot_of(t.storage().data_ptr()); }

// Sizes in memory order: largest stride first.
std::vector<int64_t> memory_dims(const at::Tensor& t) {
  std::vector<size_t> order(static_cast<size_t>(t.dim()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto key = [&](size_t i) { return std::pair(t.strides()[i], t.sizes()[i]); };
    return key(a) > key(b);
  });
  std::vector<int64_t> dims;
  for (const size_t i : order) dims.push_back(t.sizes()[i]);
  return dims;
}

void check_broadcast(const at::Tensor& self, const at::Tensor& src) {
  if (self.sizes() != src.sizes()) src.expand(self.sizes());  // raises PyTorch's error
}

void copy_on_device(at::Tensor& self, const at::Tensor& src) {
  // Conjugate and negative views: their bits are no part of an array, so the copy is between the plain tensors.
  if (self.is_conj() || src.is_conj()) {
    at::Tensor target = self.is_conj() ? self.conj() : self;
    const at::Tensor plain = src.is_conj() ? src.conj() : src;
    return copy_on_device(target,
                          self.is_conj() == src.is_conj() ? plain : at::_conj_physical(plain));
  }
  if (self.is_neg() || src.is_neg()) {
    at::Tensor target = self.is_neg() ? at::_neg_view(self) : self;
    const at::Tensor plain = src.is_neg() ? at::_neg_view(src) : src;
    return copy_on_device(target, self.is_neg() == src.is_neg() ? plain : at::neg(plain));
  }
  if (self.dtype() == src.dtype() && self.sizes() == src.sizes() &&
      self.strides() == src.strides() && covers_storage(self) && covers_storage(src)) {
    // Arrays never change: both storages may have the same one until either is written to.
    std::lock_guard lock(engine::engine_mutex());
    engine::Slot* from = slot_of(src);
    if (engine::Slot* to = slot_of(self); from != nullptr && to != nullptr) to->value = from->value;
    return;
  }
  static const OpInfo& info =
      op_info(c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", ""));
  Stack stack{self, src, false};
  run_operator(info, &stack);
}

void copy_from_host(at::Tensor& self, const at::Tensor& src) {
  at::Tensor host = src.to(self.scalar_type()).resolve_conj().resolve_neg().expand(self.sizes());
  if (self.numel() == 0) return;
  if (engine::value_checks().nan && (host.is_floating_point() || host.is_complex())) {
    TORCH_CHECK(!host.isnan().any().item<bool>(), "the copy of a ", c10::str(host.sizes()),
                " tensor from the host brings in NaN", engine::where_now());
  }
  if (!covers_storage(self)) {
    at::Tensor staged = empty_contiguous(self.sizes(), self.scalar_type(), self.device().index());
    copy_from_host(staged, host);
    return copy_on_device(self, staged);
  }
  if (host.strides() != self.strides() || !host.is_non_overlapping_and_dense()) {
    at::Tensor ordered = at::empty_strided(self.sizes(), self.strides(), host.options());
    host = ordered.copy_(host);
  }
  const engine::ArrayType* type =
      engine::intern_type(to_dtype(self.scalar_type()), memory_dims(self));
  ArrayPtr array = engine::from_host(host.const_data_ptr(), type, self.device().index(), "copy_");
  std::lock_guard lock(engine::engine_mutex());
  slot_of(self)->value = std::move(array);
}

ArrayPtr value_of(const at::Tensor& t, const char* op) {
  const engine::Slot* slot = slot_of(t);
  if (slot == nullptr) return {};
  engine::check_fork();
  std::unique_lock lock(engine::engine_mutex());
  ArrayPtr value = slot->value;
  lock.unlock();
  if (value && value->state == engine::ArrayState::kCaptured) throw NeedsValue(op);
  return value;
}

void copy_to_host(at::Tensor& self, const at::Tensor& src) {
  if (src.numel() == 0) return;
  note_sync("a copy to the host");
  const ArrayPtr value = value_of(src, "a copy to the host");
  if (!value) {  // uninitialised
    self.zero_();
    return;
  }
  const auto host_options = src.options().device(c10::kCPU);
  if (const void* pointer = engine::host_pointer(value)) {
    auto* first = static_cast<char*>(const_cast<void*>(pointer)) +
                  src.storage_offset() * static_cast<int64_t>(src.dtype().itemsize());
    at::Tensor alias = at::from_blob(first, src.sizes(), src.strides(), host_options);
    if (src.is_conj()) alias._set_conj(true);
    if (src.is_neg()) alias._set_neg(true);
    self.copy_(alias);
    return;
  }
  const at::Tensor dense = src.contiguous();
  at::Tensor host = at::empty(dense.sizes(), host_options);
  engine::to_host(value_of(dense, "a copy to the host"), host.mutable_data_ptr(),
                  dense.storage_offset() * static_cast<int64_t>(dense.dtype().itemsize()),
                  static_cast<int64_t>(host.nbytes()));
  if (dense.is_conj()) host._set_conj(true);
  if (dense.is_neg()) host._set_neg(true);
  self.copy_(host);
}

at::Tensor& copy_(at::Tensor& self, const at::Tensor& src, bool) {
  engine::history::note_call();
  if (self.unsafeGetTensorImpl() == src.unsafeGetTensorImpl()) return self;
  check_broadcast(self, src);
  if (on_device(self)) at::assert_no_internal_overlap(self);
  if (InferScope::active()) return self;
  if (!on_device(self)) {
    copy_to_host(self, src);
  } else if (!on_device(src)) {
    TORCH_CHECK(src.device().type() == c10::DeviceType::CPU, "tpu: cannot copy from device ",
                src.device());
    copy_from_host(self, src);
  } else if (self.device() != src.device()) {
    const at::Tensor dense = src.contiguous();
    at::Tensor arrived = empty_contiguous(src.sizes(), src.scalar_type(), self.device().index());
    if (const ArrayPtr value =
            value_of(covers_storage(dense) ? dense : dense.clone(), "a copy to another device")) {
      slot_of(arrived)->value = engine::to_device(value, self.device().index());
    }
    copy_on_device(self, arrived);
  } else {
    copy_on_device(self, src);
  }
  return self;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  at::Tensor target = dst;
  return copy_(target, self, non_blocking);
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  if (self.sizes() != dst.sizes()) at::native::resize_output(dst, self.sizes());
  at::Tensor target = dst;
  return copy_(target, self, false);
}

c10::Scalar local_scalar_dense(const at::Tensor& self) {
  TORCH_CHECK(self.numel() > 0, "_local_scalar_dense: Empty tensor not supported");
  if (InferScope::active() || CaptureScope::active() != nullptr) throw NeedsValue("item()");
  note_sync("item()");
  at::Tensor host = at::zeros({}, self.options().device(c10::kCPU));
  if (const ArrayPtr value = value_of(self, "item()")) {
    const auto item = static_cast<int64_t>(self.dtype().itemsize());
    engine::to_host(value, host.mutable_data_ptr(), self.storage_offset() * item, item);
  }
  if (self.is_conj()) host._set_conj(true);
  if (self.is_neg()) host._set_neg(true);
  return host.item();
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("copy_", &copy_);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar_dense);
}

}  // namespace
}  // namespace torch_tpu::aten
