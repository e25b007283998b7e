// Device buffers: inline, allocation-free functions over PJRT_Buffer* for the hot path, and a RAII
// owner over them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "pjrt/client.h"
#include "pjrt/event.h"
#include "pjrt/status.h"
#include "stablehlo/types.h"

namespace torch_tpu::pjrt {

// The buffer type of an element type; every DType has one.
PJRT_Buffer_Type buffer_type(stablehlo::DType dtype);
// The element type of a buffer type. UNIMPLEMENTED for the types this project does not know
// (tokens, 2-bit integers).
Result<stablehlo::DType> dtype_of(PJRT_Buffer_Type type);

// ---- Over raw pointers. `api` must be that of the plugin that made the buffer. All may be called
// from any thread; destroying a buffer while another thread uses it is the caller's error. ----

// Destroys the buffer. Its memory is freed once work that was issued with it has finished. Null is
// ignored.
inline void destroy(const Api& api, PJRT_Buffer* buffer) {
  if (buffer == nullptr) return;
  PJRT_Buffer_Destroy_Args args = {};
  args.struct_size = PJRT_Buffer_Destroy_Args_STRUCT_SIZE;
  args.buffer = buffer;
  PJRT_Error* error = api.PJRT_Buffer_Destroy(&args);
  if (error != nullptr) [[unlikely]]
    (void)take_error(api, error);
}

// The address of the buffer's memory, valid while the buffer lives and is not donated. The content
// is there once the buffer is ready. Only where Client::host_visible_memory() may the host read it.
inline Result<void*> unsafe_pointer(const Api& api, PJRT_Buffer* buffer) {
  PJRT_Buffer_UnsafePointer_Args args = {};
  args.struct_size = PJRT_Buffer_UnsafePointer_Args_STRUCT_SIZE;
  args.buffer = buffer;
  PJRT_Error* error = api.PJRT_Buffer_UnsafePointer(&args);
  if (error != nullptr) [[unlikely]]
    return take_error(api, error);
  return reinterpret_cast<void*>(args.buffer_pointer);
}

// An event that is ready once the buffer's content is. Fails on a donated or deleted buffer.
inline Result<Event> ready_event(const Api& api, PJRT_Buffer* buffer) {
  PJRT_Buffer_ReadyEvent_Args args = {};
  args.struct_size = PJRT_Buffer_ReadyEvent_Args_STRUCT_SIZE;
  args.buffer = buffer;
  PJRT_Error* error = api.PJRT_Buffer_ReadyEvent(&args);
  if (error != nullptr) [[unlikely]]
    return take_error(api, error);
  return Event(api, args.event);
}

// Blocks until the content is there. Returns the error of the program that should have made it
// where it failed.
inline Status await_ready(const Api& api, PJRT_Buffer* buffer) {
  PJRT_Buffer_ReadyEvent_Args args = {};
  args.struct_size = PJRT_Buffer_ReadyEvent_Args_STRUCT_SIZE;
  args.buffer = buffer;
  PJRT_Error* error = api.PJRT_Buffer_ReadyEvent(&args);
  if (error != nullptr) [[unlikely]]
    return take_error(api, error);
  return Event(api, args.event).await();
}

// Bytes the buffer takes on the device, with the device's padding.
inline Result<size_t> on_device_size(const Api& api, PJRT_Buffer* buffer) {
  PJRT_Buffer_OnDeviceSizeInBytes_Args args = {};
  args.struct_size = PJRT_Buffer_OnDeviceSizeInBytes_Args_STRUCT_SIZE;
  args.buffer = buffer;
  PJRT_Error* error = api.PJRT_Buffer_OnDeviceSizeInBytes(&args);
  if (error != nullptr) [[unlikely]]
    return take_error(api, error);
  return args.on_device_size_in_bytes;
}

// The dimensions: the bound where one is bounded. The span is valid while the buffer lives.
inline Result<std::span<const int64_t>> dimensions(const Api& api, PJRT_Buffer* buffer) {
  PJRT_Buffer_Dimensions_Args args = {};
  args.struct_size = PJRT_Buffer_Dimensions_Args_STRUCT_SIZE;
  args.buffer = buffer;
  PJRT_Error* error = api.PJRT_Buffer_Dimensions(&args);
  if (error != nullptr) [[unlikely]]
    return take_error(api, error);
  return std::span<const int64_t>(args.dims, args.num_dims);
}

inline Result<PJRT_Buffer_Type> element_type(const Api& api, PJRT_Buffer* buffer) {
  PJRT_Buffer_ElementType_Args args = {};
  args.struct_size = PJRT_Buffer_ElementType_Args_STRUCT_SIZE;
  args.buffer = buffer;
  PJRT_Error* error = api.PJRT_Buffer_ElementType(&args);
  if (error != nullptr) [[unlikely]]
    return take_error(api, error);
  return args.type;
}

// Whether the memory was given up: donated to a program or deleted.
inline Result<bool> is_deleted(const Api& api, PJRT_Buffer* buffer) {
  PJRT_Buffer_IsDeleted_Args args = {};
  args.struct_size = PJRT_Buffer_IsDeleted_Args_STRUCT_SIZE;
  args.buffer = buffer;
  PJRT_Error* error = api.PJRT_Buffer_IsDeleted(&args);
  if (error != nullptr) [[unlikely]]
    return take_error(api, error);
  return args.is_deleted;
}

// Copies the content, row-major, into `dst`, whose size must be that of the content; blocks until
// it is there. Waits for the program that makes the content and returns its error where it failed;
// `dst` is then undefined.
Status device_to_host(const Api& api, PJRT_Buffer* buffer, void* dst, size_t size);

// The same without waiting: `dst` must stay valid and untouched until the event is ready, and the
// buffer may be destroyed before that. On failure nothing is written later.
Result<Event> device_to_host_async(const Api& api, PJRT_Buffer* buffer, void* dst, size_t size);

// Bytes that device_to_host writes.
Result<size_t> host_size(const Api& api, PJRT_Buffer* buffer);

// ---- Ownership ----

// Owns a buffer and destroys it. Move-only; not for two threads at once. May be empty.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Api& api, PJRT_Buffer* buffer) : api_(&api), buffer_(buffer) {}
  Buffer(Buffer&& other) noexcept
      : api_(other.api_), buffer_(std::exchange(other.buffer_, nullptr)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      reset();
      api_ = other.api_;
      buffer_ = std::exchange(other.buffer_, nullptr);
    }
    return *this;
  }
  ~Buffer() { reset(); }

  explicit operator bool() const { return buffer_ != nullptr; }
  PJRT_Buffer* get() const { return buffer_; }
  const Api& api() const { return *api_; }
  // Gives up ownership: the caller destroys the pointer.
  PJRT_Buffer* release() { return std::exchange(buffer_, nullptr); }
  void reset() {
    if (buffer_ != nullptr) destroy(*api_, std::exchange(buffer_, nullptr));
  }

 private:
  const Api* api_ = nullptr;
  PJRT_Buffer* buffer_ = nullptr;
};

// ---- Making buffers. All may be called from any thread. ----

// Copies host memory to `device`. `data` may be freed or changed as soon as the call returns.
// `byte_strides` has one entry per dimension, or is empty for a row-major array. The content
// arrives asynchronously; later programs wait for it.
Result<Buffer> host_to_device(const Client& client, const Device& device, const void* data,
                              stablehlo::DType dtype, std::span<const int64_t> dims,
                              std::span<const int64_t> byte_strides = {});

// How long the plugin may read host memory that was handed to host_to_device_borrowed.
enum class Borrow {
  kUntilTransferCompletes,  // until the copy is made
  kZeroCopy,  // until the buffer is freed, where the plugin can use the memory in place
};

// Transfers host memory without a copy during the call: `data` must stay valid and unchanged until
// `done` is called, once, possibly on a thread of the plugin, with the status of the transfer. On
// failure `done` is not called.
Result<Buffer> host_to_device_borrowed(const Client& client, const Device& device, const void* data,
                                       stablehlo::DType dtype, std::span<const int64_t> dims,
                                       std::span<const int64_t> byte_strides, Borrow borrow,
                                       std::function<void(Status)> done);

// Copies a buffer to another device of the same client, asynchronously; the source may be destroyed
// at once. On the device it already lives on, some plugins answer with an error.
Result<Buffer> copy_to_device(const Api& api, PJRT_Buffer* buffer, const Device& device);

}  // namespace torch_tpu::pjrt
