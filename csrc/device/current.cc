#include "device/current.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>

#include "engine/client.h"
#include "engine/memory.h"

namespace torch_tpu::device {
namespace {

thread_local int t_device = 0;
thread_local std::array<c10::StreamId, engine::kMaxDevices> t_streams{};
std::atomic<c10::StreamId> g_next_stream{1};

}  // namespace

int current_device() { return t_device; }

int set_current_device(int device) {
  if (device == t_device) return device;
  const int count = engine::device_count();
  TORCH_CHECK(device >= 0 && device < count, "tpu: invalid device ordinal: ", device, " (there ",
              count == 1 ? "is 1 device" : "are " + std::to_string(count) + " devices",
              "; TORCH_TPU_NUM_DEVICES sets the number on the CPU plugin)");
  return std::exchange(t_device, device);
}

c10::Stream current_stream(int device) {
  return c10::Stream(
      c10::Stream::UNSAFE,
      c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)),
      t_streams.at(static_cast<size_t>(device)));
}

c10::Stream exchange_current_stream(c10::Stream stream) {
  const int device = stream.device_index();
  const c10::Stream previous = current_stream(device);
  t_streams.at(static_cast<size_t>(device)) = stream.id();
  return previous;
}

c10::Stream new_stream(int device) {
  return c10::Stream(
      c10::Stream::UNSAFE,
      c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)),
      g_next_stream.fetch_add(1));
}

}  // namespace torch_tpu::device
