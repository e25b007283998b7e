// Pinned memory: PJRT pins what it transfers by itself, so this is the CPU allocator's memory, counted and recognised.
#include "device/host_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <pthread.h>

#include <map>
#include <mutex>

namespace torch_tpu::device {
namespace {

struct Block {
  c10::DataPtr memory;
  size_t bytes = 0;
};

class HostAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto block = std::make_unique<Block>();
    block->memory = c10::GetCPUAllocator()->allocate(bytes);
    block->bytes = bytes;
    void* address = block->memory.get();
    if (address == nullptr) return {nullptr, c10::Device(c10::DeviceType::CPU)};
    std::lock_guard lock(mutex_);
    blocks_[static_cast<const char*>(address)] = bytes;
    stats_.active_requests.increase(1);
    stats_.active_bytes.increase(bytes);
    stats_.allocations.increase(1);
    stats_.allocated_bytes.increase(bytes);
    ++stats_.num_host_alloc;
    return {address, block.release(), &free_block, c10::Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  // Copies have read their source when they return.
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override {
    std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset_accumulated_stats() override {
    std::lock_guard lock(mutex_);
    for (Stat* stat : stats()) stat->reset_accumulated();
    stats_.num_host_alloc = stats_.num_host_free = 0;
  }
  void reset_peak_stats() override {
    std::lock_guard lock(mutex_);
    for (Stat* stat : stats()) stat->reset_peak();
  }

  bool owns(const void* address) {
    std::lock_guard lock(mutex_);
    const auto* p = static_cast<const char*>(address);
    auto after = blocks_.upper_bound(p);
    if (after == blocks_.begin()) return false;
    const auto& [start, bytes] = *--after;
    return p < start + bytes;
  }
  std::mutex& mutex() { return mutex_; }

 private:
  using Stat = c10::CachingAllocator::Stat;

  static void free_block(void* context);
  std::array<Stat*, 4> stats() {
    return {&stats_.active_requests, &stats_.active_bytes, &stats_.allocations,
            &stats_.allocated_bytes};
  }

  std::mutex mutex_;
  std::map<const char*, size_t> blocks_;
  at::HostStats stats_;
};

HostAllocator& instance() {
  static auto* allocator = [] {
    auto* made = new HostAllocator;  // outlives every tensor
    // A forked child may use pinned tensors: it must not inherit a lock that one of its parent's threads holds.
    pthread_atfork([] { instance().mutex().lock(); }, [] { instance().mutex().unlock(); },
                   [] { instance().mutex().unlock(); });
    return made;
  }();
  return *allocator;
}

void HostAllocator::free_block(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  HostAllocator& self = instance();
  std::lock_guard lock(self.mutex_);
  self.blocks_.erase(static_cast<const char*>(block->memory.get()));
  self.stats_.active_requests.decrease(1);
  self.stats_.active_bytes.decrease(block->bytes);
  self.stats_.allocations.decrease(1);
  self.stats_.allocated_bytes.decrease(block->bytes);
  ++self.stats_.num_host_free;
}

}  // namespace

at::HostAllocator* host_allocator() { return &instance(); }

bool is_host_memory(const void* address) { return instance().owns(address); }

REGISTER_HOST_ALLOCATOR(c10::DeviceType::PrivateUse1, host_allocator())

}  // namespace torch_tpu::device
