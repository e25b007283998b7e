// What the engine counts about device memory, per device. PJRT's CPU plugin has no statistics of its own.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

namespace torch_tpu::engine {

// A quantity of memory in use, its peak, and how much was ever taken and given back.
class MemoryCounter {
 public:
  void add(int64_t amount) {
    const int64_t value = current_.fetch_add(amount, std::memory_order_relaxed) + amount;
    taken_.fetch_add(amount, std::memory_order_relaxed);
    int64_t seen = peak_.load(std::memory_order_relaxed);
    while (value > seen && !peak_.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }
  void remove(int64_t amount) {
    current_.fetch_sub(amount, std::memory_order_relaxed);
    given_back_.fetch_add(amount, std::memory_order_relaxed);
  }
  void reset_peak() { peak_ = current_.load(); }
  void reset_accumulated() { taken_ = given_back_ = 0; }

  int64_t current() const { return current_.load(std::memory_order_relaxed); }
  int64_t peak() const { return peak_; }
  int64_t taken() const { return taken_; }  // since the last reset_accumulated
  int64_t given_back() const { return given_back_; }

 private:
  std::atomic<int64_t> current_{0}, peak_{0}, taken_{0}, given_back_{0};
};

// All arrays, and the two size classes that torch.cuda's statistics tell apart.
enum class MemoryPool { kAll, kSmall, kLarge };
inline constexpr int64_t kSmallestLargeArray = int64_t{1} << 20;  // bytes

class MemoryCounters {
 public:
  void allocated(int64_t bytes) {
    for (const MemoryPool pool : {MemoryPool::kAll, pool_of(bytes)}) {
      bytes_[static_cast<int>(pool)].add(bytes);
      arrays_[static_cast<int>(pool)].add(1);
    }
  }
  void freed(int64_t bytes) {
    for (const MemoryPool pool : {MemoryPool::kAll, pool_of(bytes)}) {
      bytes_[static_cast<int>(pool)].remove(bytes);
      arrays_[static_cast<int>(pool)].remove(1);
    }
  }
  void reset_peak() {
    for (MemoryCounter& counter : bytes_) counter.reset_peak();
    for (MemoryCounter& counter : arrays_) counter.reset_peak();
  }
  void reset_accumulated() {
    for (MemoryCounter& counter : bytes_) counter.reset_accumulated();
    for (MemoryCounter& counter : arrays_) counter.reset_accumulated();
  }
  // 0: only what the device itself refuses.
  void set_limit_bytes(int64_t bytes) { limit_bytes_ = bytes; }
  int64_t limit_bytes() const { return limit_bytes_; }
  bool has_room(int64_t bytes) const {
    const int64_t limit = limit_bytes_.load(std::memory_order_relaxed);
    return limit == 0 || live_bytes() + bytes <= limit;
  }
  // What is left of the limit; 0 without one.
  int64_t room_bytes() const { return std::max<int64_t>(limit_bytes_ - live_bytes(), 0); }
  void count_retry() { ++retries_; }
  void count_out_of_memory() { ++out_of_memory_; }
  int64_t retries() const { return retries_; }  // allocations tried again after memory was freed
  int64_t out_of_memory() const { return out_of_memory_; }  // OutOfMemoryErrors
  const MemoryCounter& bytes(MemoryPool pool) const { return bytes_[static_cast<int>(pool)]; }
  const MemoryCounter& arrays(MemoryPool pool) const { return arrays_[static_cast<int>(pool)]; }
  int64_t live_bytes() const { return bytes(MemoryPool::kAll).current(); }
  int64_t peak_bytes() const { return bytes(MemoryPool::kAll).peak(); }

 private:
  static MemoryPool pool_of(int64_t bytes) {
    return bytes < kSmallestLargeArray ? MemoryPool::kSmall : MemoryPool::kLarge;
  }
  MemoryCounter bytes_[3], arrays_[3];
  std::atomic<int64_t> limit_bytes_{0}, retries_{0}, out_of_memory_{0};
};

// TORCH_TPU_MEMORY_LIMIT, in bytes; 0 where it is not set. Throws ValueError for what is no number of bytes.
int64_t memory_limit_of_environment();
// All memory of a device: the limit of the environment, else what the plugin says, else (a device that is the host) the
// host's. Starts the client.
int64_t device_memory_bytes(int device);
// What an OutOfMemoryError says: what was wanted, what is in use, the largest tensors and who made them. Call with the
// engine's mutex held.
std::string out_of_memory_report(int device, int64_t wanted);

inline constexpr int kMaxDevices = 64;
inline MemoryCounters& memory(int device) {
  static MemoryCounters counters[kMaxDevices];
  return counters[device];
}

}  // namespace torch_tpu::engine
