// Tensors without a value, views, resizing: operators that touch metadata only.
#include "aten/storage.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "aten/dtypes.h"
#include "aten/empty.h"
#include "device/allocator.h"
#include "device/current.h"
#include "engine/client.h"
#include "engine/engine.h"

namespace torch_tpu::aten {
namespace {

int device_index(std::optional<c10::Device> device) {
  return device && device->has_index() ? device->index() : device::current_device();
}

void check_device(int index) {
  const int count = engine::client().num_devices();
  TORCH_CHECK(index >= 0 && index < count, "tpu: invalid device ordinal: ", index, " (",
              count == 1 ? std::string("there is 1 device")
                         : "there are " + std::to_string(count) + " devices",
              "; TORCH_TPU_NUM_DEVICES sets the number on the CPU plugin)");
}

at::Tensor make(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype, int device,
                int64_t bytes) {
  to_dtype(dtype);  // unsupported ones are refused here
  c10::Storage storage(c10::Storage::use_byte_size_t(), static_cast<size_t>(bytes),
                       engine::make_slot(bytes, device), device::storage_allocator(),
                       /*resizable=*/true);
  at::Tensor t = at::detail::make_tensor_base<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::scalarTypeToTypeMeta(dtype));
  t.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return t;
}

at::Tensor empty_memory_format(c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype,
                               std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                               std::optional<bool> pin_memory,
                               std::optional<c10::MemoryFormat> format) {
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  TORCH_CHECK_NOT_IMPLEMENTED(!layout || *layout == c10::Layout::Strided, "tpu: the layout ",
                              *layout, " is not supported");
  const int index = device_index(device);
  check_device(index);
  at::detail::check_size_nonnegative(sizes);
  at::Tensor t = empty_contiguous(sizes, c10::dtype_or_default(dtype), index);
  if (format && *format != c10::MemoryFormat::Preserve &&
      *format != c10::MemoryFormat::Contiguous) {
    t.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return t;
}

at::Tensor empty_strided_kernel(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                                std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                                std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  const int index = device_index(device);
  check_device(index);
  at::detail::check_size_nonnegative(sizes);
  return empty_strided(sizes, strides, c10::dtype_or_default(dtype), index);
}

// Makes the storage large enough for a tensor of these sizes, before the tensor gets them.
void grow(c10::TensorImpl* impl, c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset) {
  const size_t item = impl->dtype().itemsize();
  const auto start = static_cast<size_t>(offset);
  const auto needed = static_cast<int64_t>(
      strides.data() == nullptr ? at::detail::computeStorageNbytesContiguous(sizes, item, start)
                                : at::detail::computeStorageNbytes(sizes, strides, item, start));
  if (needed > static_cast<int64_t>(impl->unsafe_storage().nbytes()))
    resize_storage(impl->unsafe_storage(), needed);
}

const at::Tensor& resize_(const at::Tensor& self, c10::IntArrayRef sizes,
                          std::optional<c10::MemoryFormat> format) {
  at::detail::check_size_nonnegative(sizes);
  auto* impl = self.unsafeGetTensorImpl();
  if (self.sizes() != sizes) {
    grow(impl, sizes, {}, impl->storage_offset());
    impl->set_sizes_contiguous(sizes);
  }
  if (format) {
    TORCH_CHECK(*format != c10::MemoryFormat::Preserve, "Unsupported memory format ", *format);
    impl->empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor& set_storage_offset(at::Tensor& self, at::Storage source, int64_t offset,
                               c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  const at::Storage former = self.storage();
  at::native::checkSetStorage(self, std::move(source), offset, sizes, strides);
  auto* impl = self.unsafeGetTensorImpl();
  try {
    grow(impl, sizes, strides, offset);
  } catch (...) {
    impl->set_storage_keep_dtype(former);
    throw;
  }
  impl->set_storage_offset(offset);
  if (strides.data() == nullptr) {
    impl->set_sizes_contiguous(sizes);
  } else {
    impl->set_sizes_and_strides(sizes, strides);
  }
  return self;
}

at::Tensor& set_source_storage(at::Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage_offset(self, std::move(source), 0, {count}, {});
}

at::Tensor& set_source_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return set_storage_offset(self, source.storage(), source.storage_offset(), source.sizes(),
                            source.strides());
}

at::Tensor& set_empty(at::Tensor& self) {
  return set_storage_offset(
      self, empty_contiguous({0}, self.scalar_type(), self.device().index()).storage(), 0, {0}, {});
}

bool is_set_to(const at::Tensor& self, const at::Tensor& other) {
  return self.storage().unsafeGetStorageImpl() == other.storage().unsafeGetStorageImpl() &&
         self.storage_offset() == other.storage_offset() && self.sizes() == other.sizes() &&
         self.strides() == other.strides();
}

at::Tensor view(const at::Tensor& self, c10::IntArrayRef sizes) {
  return at::native::view(self, sizes);
}
at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  return at::native::_reshape_alias(self, sizes, strides);
}
at::Tensor as_strided(const at::Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                      std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, sizes, strides, offset);
}
at::Tensor unfold(const at::Tensor& self, int64_t dim, int64_t size, int64_t step) {
  return at::native::unfold(self, dim, size, step);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty_memory_format);
  m.impl("empty_strided", &empty_strided_kernel);
  m.impl("resize_", &resize_);
  m.impl("set_.source_Storage", &set_source_storage);
  m.impl("set_.source_Storage_storage_offset", &set_storage_offset);
  m.impl("set_.source_Tensor", &set_source_tensor);
  m.impl("set_", &set_empty);
  m.impl("is_set_to", &is_set_to);
  m.impl("view", &view);
  m.impl("_reshape_alias", &reshape_alias);
  m.impl("as_strided", &as_strided);
  m.impl("unfold", &unfold);
  // Autograd's stand-in for a zero gradient; the CPU's has no memory.
  m.impl("_efficientzerotensor",
         [](c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype,
            std::optional<c10::Layout> layout, std::optional<c10::Device> device,
            std::optional<bool> pin_memory) {
           return at::zeros(sizes, dtype, layout, device, pin_memory);
         });
  m.impl("record_stream",
         [](at::Tensor&, c10::Stream) {});  // memory lives as long as work that needs it
  m.impl("view_as_real", [](const at::Tensor& self) { return at::native::view_as_real(self); });
  m.impl("view_as_complex",
         [](const at::Tensor& self) { return at::native::view_as_complex(self); });
}

}  // namespace

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype,
                         int device) {
  const auto bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  return make(sizes, strides, dtype, device, static_cast<int64_t>(bytes));
}

at::Tensor empty_contiguous(c10::IntArrayRef sizes, c10::ScalarType dtype, int device) {
  c10::DimVector strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return empty_strided(sizes, strides, dtype, device);
}

void resize_storage(const c10::Storage& storage, int64_t bytes) {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  TORCH_CHECK(impl->resizable(), "Trying to resize storage that is not resizable");
  if (static_cast<int64_t>(impl->nbytes()) == bytes) return;
  engine::Slot* old = engine::slot_of(impl->data_ptr());
  const int device = old != nullptr ? old->device : impl->device().index();
  const engine::ArrayPtr value = old != nullptr ? old->value : engine::ArrayPtr();
  at::Tensor kept;
  if (value && bytes > 0) {  // the part that fits, through a flat view of both
    const c10::ScalarType dtype = to_scalar_type(value->type->dtype);
    const auto item = static_cast<int64_t>(c10::elementSize(dtype));
    const int64_t count = std::min<int64_t>(value->type->bytes, bytes) / item;
    const c10::ScalarType flat_dtype = bytes % item == 0 ? dtype : c10::ScalarType::Byte;
    const int64_t flat_count =
        bytes % item == 0 ? count : std::min<int64_t>(value->type->bytes, bytes);
    const auto flat = [&](const c10::Storage& s) {
      at::Tensor t = at::detail::make_tensor_base<c10::TensorImpl>(
          c10::Storage(s), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
          c10::scalarTypeToTypeMeta(flat_dtype));
      t.unsafeGetTensorImpl()->set_sizes_contiguous({flat_count});
      return t;
    };
    kept = make({0}, {1}, c10::ScalarType::Byte, device, bytes);
    flat(kept.storage()).copy_(flat(storage));
    std::unique_lock lock(engine::engine_mutex());
    const engine::ArrayPtr copy = engine::slot_of(kept.storage().data_ptr())->value;
    lock.unlock();
    engine::wait(copy);  // the old memory is given up: a failure must be known before
  }
  c10::DataPtr fresh = engine::make_slot(bytes, device);
  if (kept.defined()) {
    std::lock_guard lock(engine::engine_mutex());
    static_cast<engine::Slot*>(fresh.get_context())->value =
        engine::slot_of(kept.storage().data_ptr())->value;
  }
  impl->set_data_ptr_noswap(std::move(fresh));
  impl->set_nbytes(static_cast<size_t>(bytes));
}

}  // namespace torch_tpu::aten
