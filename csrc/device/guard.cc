// c10's device guard: devices, streams and events.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>
#include <memory>

#include "device/current.h"
#include "engine/client.h"
#include "engine/engine.h"

namespace torch_tpu::device {
namespace {

// An event remembers when the work issued before it had finished. Recording a timed event waits for that work; one
// without timing has nothing to wait for, since reads order themselves.
struct Event {
  std::chrono::steady_clock::time_point finished;
  bool timed = false;
  int device = 0;
};

class GuardImpl final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
  c10::Device exchangeDevice(c10::Device d) const override {
    return device(set_current_device(d.index()));
  }
  c10::Device getDevice() const override { return device(current_device()); }
  void setDevice(c10::Device d) const override {
    set_current_device(d.has_index() ? d.index() : 0);
  }
  void uncheckedSetDevice(c10::Device d) const noexcept override {
    try {
      setDevice(d);
    } catch (...) {  // c10 wants no exception here
    }
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    try {
      return static_cast<c10::DeviceIndex>(engine::device_count());
    } catch (...) {
      return 0;
    }
  }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = 0;
    auto& has = capability.capability_data.supported_scalar_types;
    has.has_Bool = has.has_Byte = has.has_Char = has.has_Short = has.has_Int = has.has_Long = 1;
    has.has_UInt16 = has.has_UInt32 = has.has_UInt64 = 1;
    has.has_Half = has.has_BFloat16 = has.has_Float = has.has_Double = 1;
    has.has_ComplexFloat = has.has_ComplexDouble = 1;
    has.has_Float8_e4m3fn = has.has_Float8_e5m2 = 1;
    return capability;
  }

  c10::Stream getStream(c10::Device d) const override { return current_stream(index(d)); }
  c10::Stream getDefaultStream(c10::Device d) const override {
    return c10::Stream(c10::Stream::DEFAULT, device(index(d)));
  }
  c10::Stream getNewStream(c10::Device d, int) const override { return new_stream(index(d)); }
  c10::Stream getStreamFromGlobalPool(c10::Device d, bool) const override {
    return new_stream(index(d));
  }
  c10::Stream exchangeStream(c10::Stream s) const override { return exchange_current_stream(s); }
  bool queryStream(const c10::Stream& stream) const override {
    synchronizeStream(stream);
    return true;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    engine::synchronize(stream.device_index());
  }
  void synchronizeDevice(c10::DeviceIndex index) const override { engine::synchronize(index); }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex,
              c10::EventFlag flag) const override {
    if (*event == nullptr) *event = new Event;
    auto* e = static_cast<Event*>(*event);
    e->device = stream.device_index();
    e->timed = flag == c10::EventFlag::BACKEND_DEFAULT;
    engine::issue();
    if (e->timed) engine::synchronize(e->device);
    e->finished = std::chrono::steady_clock::now();
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void* event) const override {
    synchronizeEvent(event);
    return true;
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) engine::synchronize(static_cast<Event*>(event)->device);
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  double elapsedTime(void* first, void* second, c10::DeviceIndex) const override {
    TORCH_CHECK(first != nullptr && second != nullptr,
                "Both events must be recorded before calculating elapsed time.");
    const auto* a = static_cast<Event*>(first);
    const auto* b = static_cast<Event*>(second);
    TORCH_CHECK(a->timed && b->timed,
                "Both events must be created with argument 'enable_timing=True'.");
    return std::chrono::duration<double, std::milli>(b->finished - a->finished).count();
  }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}

 private:
  static c10::Device device(int index) {
    return {c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(index)};
  }
  static int index(c10::Device d) { return d.has_index() ? d.index() : current_device(); }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, GuardImpl);

}  // namespace
}  // namespace torch_tpu::device
