// What the engine counts about device memory, per device. PJRT's CPU plugin has no statistics of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace torch_tpu::engine {

class MemoryCounters {
 public:
  void allocated(int64_t bytes) {
    raise_peak(peak_bytes_, live_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
    raise_peak(peak_arrays_, live_arrays_.fetch_add(1, std::memory_order_relaxed) + 1);
    total_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    total_arrays_.fetch_add(1, std::memory_order_relaxed);
  }
  void freed(int64_t bytes) {
    live_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    live_arrays_.fetch_sub(1, std::memory_order_relaxed);
  }
  void reset_peak() {
    peak_bytes_ = live_bytes_.load();
    peak_arrays_ = live_arrays_.load();
  }
  void reset_accumulated() {
    total_bytes_ = 0;
    total_arrays_ = 0;
  }
  // 0: only what the device itself refuses.
  void set_limit_bytes(int64_t bytes) { limit_bytes_ = bytes; }
  int64_t limit_bytes() const { return limit_bytes_; }
  bool has_room(int64_t bytes) const {
    const int64_t limit = limit_bytes_.load(std::memory_order_relaxed);
    return limit == 0 || live_bytes_.load(std::memory_order_relaxed) + bytes <= limit;
  }
  void count_retry() { ++retries_; }
  void count_out_of_memory() { ++out_of_memory_; }
  int64_t retries() const { return retries_; }  // allocations tried again after memory was freed
  int64_t out_of_memory() const { return out_of_memory_; }  // OutOfMemoryErrors
  int64_t live_bytes() const { return live_bytes_; }
  int64_t peak_bytes() const { return peak_bytes_; }
  int64_t total_bytes() const {
    return total_bytes_;
  }  // ever allocated since the last reset_accumulated
  int64_t live_arrays() const { return live_arrays_; }
  int64_t peak_arrays() const { return peak_arrays_; }
  int64_t total_arrays() const { return total_arrays_; }

 private:
  static void raise_peak(std::atomic<int64_t>& peak, int64_t value) {
    int64_t seen = peak.load(std::memory_order_relaxed);
    while (value > seen && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }
  std::atomic<int64_t> live_bytes_{0}, peak_bytes_{0}, total_bytes_{0};
  std::atomic<int64_t> limit_bytes_{0}, retries_{0}, out_of_memory_{0};
  std::atomic<int64_t> live_arrays_{0}, peak_arrays_{0}, total_arrays_{0};
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
