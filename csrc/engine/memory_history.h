// What made each piece of device memory and when it went: recorded on request, for memory snapshots.
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace torch_tpu::engine {

struct Array;

namespace history {

// A captured call stack; the Python module makes them and reads them.
using Stack = std::shared_ptr<c10::GatheredContext>;

// Which stacks are kept: of live memory, or of allocations in the record too. Frees have none: they happen on any
// thread, under locks that Python's must not be waited for with.
enum class Stacks { kNone, kLive, kAllocations };

struct Settings {
  bool events =
      false;  // keep a record of allocations and frees, not only the stacks of live memory
  Stacks stacks = Stacks::kAllocations;
  size_t max_events = 0;  // a device; the oldest go first
};

enum class Action { kAllocated, kFreed, kOutOfMemory, kSnapshot };

struct Event {
  Action action;
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t device_free = 0;  // kOutOfMemory: bytes
  int64_t time_us = 0;      // since the epoch
  const char* op = "";
  Stack stack;
  std::shared_ptr<const std::string> metadata;
};

// Captures the calling thread's stack; takes Python's lock.
using Gatherer = Stack (*)();
void set_gatherer(Gatherer gatherer);

bool recording();
void start(const Settings& settings, bool clear);
// Stops; what was recorded stays.
void stop();
// Kept with all later events; empty for none.
void set_metadata(std::string text);
std::string metadata();
// Oldest first.
std::vector<Event> events(int device);

// An operator's call begins: the stack of arrays this thread makes until the next call. Takes Python's lock, so it must
// come before the engine's mutex.
void note_call();
Stack call_stack();

// Names for memory, in order of allocation: never used twice, so that a record of allocations is unambiguous.
uint64_t next_address(int64_t bytes);

void allocated(const Array& array);
void freed(const Array& array);
// Memory that a program takes while it runs.
void temporary(int device, int64_t bytes, const char* op);
void out_of_memory(int device, int64_t bytes, int64_t device_free, const char* op);
void snapshot_taken(int device);

}  // namespace history
}  // namespace torch_tpu::engine
