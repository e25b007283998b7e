// Immutable device arrays, and the slots (storages) that hold them.
// A storage is a variable: its slot names the array that is its current value. c10 only.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/memory_history.h"
#include "ir/graph.h"
#include "pjrt/buffer.h"
#include "stablehlo/types.h"

namespace torch_tpu::engine {

using stablehlo::DType;

// Element type and row-major dimensions of an array. Interned: equal types are the same object, so keys hash the address.
struct ArrayType {
  DType dtype;
  std::vector<int64_t> dims;
  int64_t bytes;
};
std::string type_text(const ArrayType& type);  // "float32[2, 3]"
const ArrayType* intern_type(DType dtype, const std::vector<int64_t>& dims);
// The same of a graph's value, whose sizes are all fixed.
const ArrayType* type_of(const ir::ValueSpec& spec);
ir::ValueSpec spec_of(const ArrayType* type);

enum class ArrayState : uint8_t {
  kRecorded,  // a recorded call will fill it, once it is flushed
  kPending,   // a queued launch will fill it
  kReady,     // buffer is set (the device may still be computing it)
  kFailed,    // its launch failed; `error` says why
  kCaptured,  // a value of a graph being captured; there is no buffer
};

// Why a launch failed.
struct DeviceError {
  std::string message;
  bool out_of_memory = false;
};

struct Array final : c10::intrusive_ptr_target {
  Array(const ArrayType* type, int device, ArrayState state)
      : type(type), device(device), state(state) {
    if (history::recording()) [[unlikely]]
      stack = history::call_stack();
  }
  ~Array() override;

  // Takes over `b` and accounts for its memory.
  void set_buffer(PJRT_Buffer* b);

  const ArrayType* type;
  int device;
  std::atomic<ArrayState> state;
  PJRT_Buffer* buffer = nullptr;
  const char* made_by = "";       // operator, for reports; lives for the process
  const char* made_at = nullptr;  // the user's line, where it was recorded; lives for the process
  uint64_t address = 0;           // its memory's name in snapshots, once there is a buffer
  history::Stack stack;           // of the call that made it, while memory history is recorded
  int captured = -1;              // kCaptured: the value's number in the graph
  std::shared_ptr<const DeviceError> error;
  // The storage (its serial) that this array was written to, and the value it replaced there: put back when the launch
  // fails. 0 where there is nothing to put back; `former` null where that memory was uninitialised.
  uint64_t written_to = 0;
  c10::intrusive_ptr<Array> former;
  // Scratch of the kernel's argument walk, under the engine's mutex: which walk saw this array, as which operand.
  uint64_t seen_walk = 0;
  uint32_t seen_index = 0;
  // Scratch of the recorder, under the same mutex: the group that uses this array, as which value, how often.
  uint64_t group = 0;
  uint32_t group_index = 0;
  uint32_t group_uses = 0;
};
using ArrayPtr = c10::intrusive_ptr<Array>;
int64_t bytes_of(std::span<const ArrayPtr> arrays);

// The context of a storage's DataPtr. `value` null: uninitialised memory (reads as zeros).
struct Slot {
  ArrayPtr value;
  int64_t bytes = 0;
  uint64_t serial = 0;  // never used again in this process; 0 is no slot's
  char* address = nullptr;
  int device = 0;
  uint64_t seen_walk = 0;  // as in Array
  uint32_t seen_index = 0;
};

// Storage memory: a unique, never readable address whose context is a new slot. The slot dies with the DataPtr.
c10::DataPtr make_slot(int64_t bytes, int device);
// The slot behind a storage's DataPtr; also for foreign DataPtrs that point into our address range (at::from_blob over
// data_ptr()). Null when the pointer is not ours.
Slot* find_slot(const c10::DataPtr& ptr);
Slot* find_slot(const void* address);
// The deleter by which our DataPtrs are known.
void delete_slot(void* slot);
// Visits all live slots, of all devices. Call with the engine's mutex held; `visit` must not make or drop storages.
void for_each_slot(const std::function<void(const Slot&)>& visit);
// The values of all live slots on `device`. Call with the engine's mutex held.
std::vector<ArrayPtr> live_arrays(int device);
// The storages that launches failed by `error` should have written get their former values back. Call with the engine's
// mutex held.
void put_back(const DeviceError& error);
inline Slot* slot_of(const c10::DataPtr& ptr) {
  return ptr.get_deleter() == &delete_slot ? static_cast<Slot*>(ptr.get_context()) : find_slot(ptr);
}

}  // namespace torch_tpu::engine
