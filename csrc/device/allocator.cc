// c10's allocator of the device: storages get slots; memory is taken when something is written.
#include "device/allocator.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <unistd.h>

#include "device/current.h"
#include "engine/array.h"
#include "engine/client.h"
#include "engine/memory.h"

namespace torch_tpu::device {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    engine::check_fork();
    return engine::make_slot(static_cast<int64_t>(bytes), current_device());
  }
  c10::DeleterFnPtr raw_deleter() const override { return &engine::delete_slot; }
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK(false, "tpu: memory cannot be copied by address; copy tensors instead");
  }

  bool initialized() override { return engine::client_started(); }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const engine::MemoryCounters& m = engine::memory(device);
    DeviceStats stats;
    const auto fill = [](Stat& stat, int64_t current, int64_t peak, int64_t total) {
      stat.current = current;
      stat.peak = peak;
      stat.allocated = total;
      stat.freed = total - current;
    };
    constexpr auto kAll = static_cast<size_t>(StatType::AGGREGATE);
    fill(stats.allocated_bytes[kAll], m.live_bytes(), m.peak_bytes(), m.total_bytes());
    fill(stats.reserved_bytes[kAll], m.live_bytes(), m.peak_bytes(), m.total_bytes());
    fill(stats.active_bytes[kAll], m.live_bytes(), m.peak_bytes(), m.total_bytes());
    fill(stats.requested_bytes[kAll], m.live_bytes(), m.peak_bytes(), m.total_bytes());
    fill(stats.allocation[kAll], m.live_arrays(), m.peak_arrays(), m.total_arrays());
    return stats;
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const auto [free, total] = memory_info(device);
    return {static_cast<size_t>(free), static_cast<size_t>(total)};
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    engine::memory(device).reset_accumulated();
  }
  void resetPeakStats(c10::DeviceIndex device) override { engine::memory(device).reset_peak(); }
};

Allocator& instance() {
  static Allocator allocator;
  return allocator;
}

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &instance());

}  // namespace

std::pair<int64_t, int64_t> memory_info(int device) {
  const pjrt::Client& client = engine::client();
  auto stats = client.devices().at(static_cast<size_t>(device)).memory_stats();
  const int64_t total = stats.ok() && stats->bytes_limit
                            ? *stats->bytes_limit
                            : static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return {total - engine::memory(device).live_bytes(), total};
}

c10::Allocator* storage_allocator() { return &instance(); }

}  // namespace torch_tpu::device
