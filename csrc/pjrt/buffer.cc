// Element types, transfers and copies of buffers.
#include "pjrt/buffer.h"

#include <array>

namespace torch_tpu::pjrt {
namespace {

using stablehlo::DType;

constexpr size_t kInlineRank = 16;

// Row-major as the C API wants it: the dimensions from the fastest to the slowest.
class RowMajorLayout {
 public:
  explicit RowMajorLayout(size_t rank) {
    int64_t* minor_to_major = inline_.data();
    if (rank > kInlineRank) {
      spilled_.resize(rank);
      minor_to_major = spilled_.data();
    }
    for (size_t i = 0; i < rank; ++i) minor_to_major[i] = static_cast<int64_t>(rank - 1 - i);
    layout_.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE;
    layout_.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
    layout_.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
    layout_.tiled.minor_to_major = minor_to_major;
    layout_.tiled.minor_to_major_size = rank;
  }
  RowMajorLayout(const RowMajorLayout&) = delete;
  RowMajorLayout& operator=(const RowMajorLayout&) = delete;

  PJRT_Buffer_MemoryLayout* get() { return &layout_; }

 private:
  PJRT_Buffer_MemoryLayout layout_ = {};
  std::array<int64_t, kInlineRank> inline_ = {};
  std::vector<int64_t> spilled_;
};

// Starts a transfer; `done` receives the event that tells when the host memory is free again.
Result<Buffer> transfer(const Client& client, const Device& device, const void* data, DType dtype,
                        std::span<const int64_t> dims, std::span<const int64_t> byte_strides,
                        PJRT_HostBufferSemantics semantics, Event& done) {
  if (!byte_strides.empty() && byte_strides.size() != dims.size()) {
    return Status(Code::kInvalidArgument, std::to_string(byte_strides.size()) + " strides for " +
                                              std::to_string(dims.size()) + " dimensions");
  }
  PJRT_Client_BufferFromHostBuffer_Args args = {};
  args.struct_size = PJRT_Client_BufferFromHostBuffer_Args_STRUCT_SIZE;
  args.client = client.get();
  args.data = data;
  args.type = buffer_type(dtype);
  args.dims = dims.data();
  args.num_dims = dims.size();
  args.byte_strides = byte_strides.data();
  args.num_byte_strides = byte_strides.size();
  args.host_buffer_semantics = semantics;
  args.device = device.get();
  const Api& api = client.api();
  PJRT_Error* error = api.PJRT_Client_BufferFromHostBuffer(&args);
  if (error != nullptr) [[unlikely]]
    return take_error(api, error);
  done = Event(api, args.done_with_host_buffer);
  return Buffer(api, args.buffer);
}

}  // namespace

PJRT_Buffer_Type buffer_type(DType dtype) {
  switch (dtype) {
    case DType::kPred:
      return PJRT_Buffer_Type_PRED;
    case DType::kI8:
      return PJRT_Buffer_Type_S8;
    case DType::kI16:
      return PJRT_Buffer_Type_S16;
    case DType::kI32:
      return PJRT_Buffer_Type_S32;
    case DType::kI64:
      return PJRT_Buffer_Type_S64;
    case DType::kU8:
      return PJRT_Buffer_Type_U8;
    case DType::kU16:
      return PJRT_Buffer_Type_U16;
    case DType::kU32:
      return PJRT_Buffer_Type_U32;
    case DType::kU64:
      return PJRT_Buffer_Type_U64;
    case DType::kF16:
      return PJRT_Buffer_Type_F16;
    case DType::kBF16:
      return PJRT_Buffer_Type_BF16;
    case DType::kF32:
      return PJRT_Buffer_Type_F32;
    case DType::kF64:
      return PJRT_Buffer_Type_F64;
    case DType::kC64:
      return PJRT_Buffer_Type_C64;
    case DType::kC128:
      return PJRT_Buffer_Type_C128;
    case DType::kF8E4M3FN:
      return PJRT_Buffer_Type_F8E4M3FN;
    case DType::kF8E5M2:
      return PJRT_Buffer_Type_F8E5M2;
    case DType::kI4:
      return PJRT_Buffer_Type_S4;
    case DType::kU4:
      return PJRT_Buffer_Type_U4;
  }
  return PJRT_Buffer_Type_INVALID;
}

Result<DType> dtype_of(PJRT_Buffer_Type type) {
  switch (type) {
    case PJRT_Buffer_Type_PRED:
      return DType::kPred;
    case PJRT_Buffer_Type_S8:
      return DType::kI8;
    case PJRT_Buffer_Type_S16:
      return DType::kI16;
    case PJRT_Buffer_Type_S32:
      return DType::kI32;
    case PJRT_Buffer_Type_S64:
      return DType::kI64;
    case PJRT_Buffer_Type_U8:
      return DType::kU8;
    case PJRT_Buffer_Type_U16:
      return DType::kU16;
    case PJRT_Buffer_Type_U32:
      return DType::kU32;
    case PJRT_Buffer_Type_U64:
      return DType::kU64;
    case PJRT_Buffer_Type_F16:
      return DType::kF16;
    case PJRT_Buffer_Type_BF16:
      return DType::kBF16;
    case PJRT_Buffer_Type_F32:
      return DType::kF32;
    case PJRT_Buffer_Type_F64:
      return DType::kF64;
    case PJRT_Buffer_Type_C64:
      return DType::kC64;
    case PJRT_Buffer_Type_C128:
      return DType::kC128;
    case PJRT_Buffer_Type_F8E4M3FN:
      return DType::kF8E4M3FN;
    case PJRT_Buffer_Type_F8E5M2:
      return DType::kF8E5M2;
    case PJRT_Buffer_Type_S4:
      return DType::kI4;
    case PJRT_Buffer_Type_U4:
      return DType::kU4;
    default:
      return Status(Code::kUnimplemented, "no element type for PJRT buffer type " +
                                              std::to_string(static_cast<int>(type)));
  }
}

Result<Event> device_to_host_async(const Api& api, PJRT_Buffer* buffer, void* dst, size_t size) {
  const Result<std::span<const int64_t>> dims = dimensions(api, buffer);
  if (!dims.ok()) return dims.status();
  RowMajorLayout layout(dims->size());
  PJRT_Buffer_ToHostBuffer_Args args = {};
  args.struct_size = PJRT_Buffer_ToHostBuffer_Args_STRUCT_SIZE;
  args.src = buffer;
  args.host_layout = layout.get();
  args.dst = dst;
  args.dst_size = size;
  PJRT_Error* error = api.PJRT_Buffer_ToHostBuffer(&args);
  if (error != nullptr) [[unlikely]]
    return take_error(api, error);
  return Event(api, args.event);
}

Status device_to_host(const Api& api, PJRT_Buffer* buffer, void* dst, size_t size) {
  const Result<Event> event = device_to_host_async(api, buffer, dst, size);
  return event.ok() ? event->await() : event.status();
}

Result<size_t> host_size(const Api& api, PJRT_Buffer* buffer) {
  const Result<std::span<const int64_t>> dims = dimensions(api, buffer);
  if (!dims.ok()) return dims.status();
  RowMajorLayout layout(dims->size());
  PJRT_Buffer_ToHostBuffer_Args args = {};
  args.struct_size = PJRT_Buffer_ToHostBuffer_Args_STRUCT_SIZE;
  args.src = buffer;
  args.host_layout = layout.get();
  if (PJRT_Error* error = api.PJRT_Buffer_ToHostBuffer(&args)) return take_error(api, error);
  return args.dst_size;
}

Result<Buffer> host_to_device(const Client& client, const Device& device, const void* data,
                              DType dtype, std::span<const int64_t> dims,
                              std::span<const int64_t> byte_strides) {
  Event done;
  return transfer(client, device, data, dtype, dims, byte_strides,
                  PJRT_HostBufferSemantics_kImmutableOnlyDuringCall, done);
}

Result<Buffer> host_to_device_borrowed(const Client& client, const Device& device, const void* data,
                                       DType dtype, std::span<const int64_t> dims,
                                       std::span<const int64_t> byte_strides, Borrow borrow,
                                       std::function<void(Status)> done) {
  const PJRT_HostBufferSemantics semantics =
      borrow == Borrow::kZeroCopy ? PJRT_HostBufferSemantics_kImmutableZeroCopy
                                  : PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
  Event event;
  Result<Buffer> buffer =
      transfer(client, device, data, dtype, dims, byte_strides, semantics, event);
  if (!buffer.ok()) return buffer;
  Status status = event.on_ready(std::move(done));
  if (!status.ok()) {
    // Nobody could be told when the memory is free, so the call fails, and only once it is.
    buffer->reset();
    (void)event.await();
    return status;
  }
  return buffer;
}

Result<Buffer> copy_to_device(const Api& api, PJRT_Buffer* buffer, const Device& device) {
  PJRT_Buffer_CopyToDevice_Args args = {};
  args.struct_size = PJRT_Buffer_CopyToDevice_Args_STRUCT_SIZE;
  args.buffer = buffer;
  args.dst_device = device.get();
  if (PJRT_Error* error = api.PJRT_Buffer_CopyToDevice(&args)) return take_error(api, error);
  return Buffer(api, args.dst_buffer);
}

}  // namespace torch_tpu::pjrt
