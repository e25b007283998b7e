// What ATen asks of an accelerator.
#include "device/hooks.h"

#include <ATen/Context.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "device/current.h"
#include "device/generator.h"
#include "device/host_allocator.h"
#include "engine/array.h"
#include "engine/client.h"

namespace torch_tpu::device {
namespace {

ResizeStorage g_resize = nullptr;

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return engine::device_count() > 0; }
  void init() const override { engine::client(); }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return engine::client_started(); }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(engine::device_count());
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(current_device());
  }
  void setCurrentDevice(c10::DeviceIndex device) const override { set_current_device(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return static_cast<c10::DeviceIndex>(set_current_device(device));
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return exchangeDevice(device);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return default_generator(device < 0 ? current_device() : device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return at::make_generator<TpuGenerator>(
        device < 0 ? static_cast<c10::DeviceIndex>(current_device()) : device);
  }
  c10::Device getDeviceFromPtr(void* data) const override {
    const engine::Slot* slot = engine::find_slot(data);
    TORCH_CHECK(slot != nullptr, "this address is not memory of a tpu device");
    return {c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(slot->device)};
  }
  bool isPinnedPtr(const void* data) const override { return is_host_memory(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return host_allocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t new_bytes) const override {
    g_resize(storage, static_cast<int64_t>(new_bytes));
  }
};

}  // namespace

void register_hooks(ResizeStorage resize) {
  g_resize = resize;
  static Hooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
}

}  // namespace torch_tpu::device
