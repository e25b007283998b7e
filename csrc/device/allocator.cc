// c10's allocator of the device: storages get slots; memory is taken when something is written.
#include "device/allocator.h"

#include <c10/core/CachingDeviceAllocator.h>

#include "device/current.h"
#include "engine/array.h"
#include "engine/client.h"
#include "engine/engine.h"
#include "engine/memory.h"

namespace torch_tpu::device {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;
using engine::MemoryPool;

Stat stat(const engine::MemoryCounter& counter) {
  Stat stat;
  stat.current = counter.current();
  stat.peak = counter.peak();
  stat.allocated = counter.taken();
  stat.freed = counter.given_back();
  return stat;
}

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
    engine::drain();
    const engine::MemoryCounters& m = engine::memory(device);
    DeviceStats stats;
    // Each array is a block and a segment of its own: nothing is cached, split or rounded.
    for (const auto& [type, pool] : {std::pair(StatType::AGGREGATE, MemoryPool::kAll),
                                     std::pair(StatType::SMALL_POOL, MemoryPool::kSmall),
                                     std::pair(StatType::LARGE_POOL, MemoryPool::kLarge)}) {
      const auto i = static_cast<size_t>(type);
      for (StatArray* bytes : {&stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes,
                               &stats.requested_bytes}) {
        (*bytes)[i] = stat(m.bytes(pool));
      }
      for (StatArray* count : {&stats.allocation, &stats.segment, &stats.active}) {
        (*count)[i] = stat(m.arrays(pool));
      }
    }
    stats.num_alloc_retries = m.retries();
    stats.num_ooms = m.out_of_memory();
    stats.num_device_alloc = m.arrays(MemoryPool::kAll).taken();
    stats.num_device_free = m.arrays(MemoryPool::kAll).given_back();
    return stats;
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const auto [free, total] = memory_info(device);
    return {static_cast<size_t>(free), static_cast<size_t>(total)};
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    engine::memory(device).reset_accumulated();
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    engine::drain();
    engine::memory(device).reset_peak();
  }
};

Allocator& instance() {
  static Allocator allocator;
  return allocator;
}

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &instance());

}  // namespace

std::pair<int64_t, int64_t> memory_info(int device) {
  const int64_t total = engine::device_memory_bytes(device);
  return {std::max<int64_t>(total - engine::memory(device).live_bytes(), 0), total};
}

c10::Allocator* storage_allocator() { return &instance(); }

}  // namespace torch_tpu::device
