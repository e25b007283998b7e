#include "engine/memory_history.h"

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>

#include "engine/array.h"
#include "engine/memory.h"

namespace torch_tpu::engine::history {
namespace {

constexpr int64_t kAddressStep = 512;

std::atomic<bool> g_recording{false};
std::atomic<Gatherer> g_gatherer{nullptr};
std::atomic<uint64_t> g_next_address{kAddressStep};
thread_local Stack t_call_stack;

struct Record {
  std::mutex mutex;  // taken last: nothing is locked under it
  Settings settings;
  std::shared_ptr<const std::string> metadata;
  std::array<std::deque<Event>, kMaxDevices> events;
};

Record& record() {
  static auto* r = new Record;  // arrays die after static objects
  return *r;
}

void add(int device, Event event) {
  event.time_us = std::chrono::duration_cast<std::chrono::microseconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
  Record& r = record();
  Event dropped;  // stacks are let go of without the mutex
  std::lock_guard lock(r.mutex);
  if (!r.settings.events || r.settings.max_events == 0) return;
  if (r.settings.stacks < Stacks::kAllocations) event.stack.reset();
  event.metadata = r.metadata;
  std::deque<Event>& events = r.events.at(static_cast<size_t>(device));
  if (events.size() >= r.settings.max_events) {
    dropped = std::move(events.front());
    events.pop_front();
  }
  events.push_back(std::move(event));
}

}  // namespace

void set_gatherer(Gatherer gatherer) { g_gatherer = gatherer; }

bool recording() { return g_recording.load(std::memory_order_relaxed); }

void start(const Settings& settings, bool clear) {
  Record& r = record();
  std::array<std::deque<Event>, kMaxDevices> dropped;
  std::lock_guard lock(r.mutex);
  r.settings = settings;
  if (clear) dropped.swap(r.events);
  g_recording = true;
}

void stop() { g_recording = false; }

void set_metadata(std::string text) {
  std::lock_guard lock(record().mutex);
  record().metadata = text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text));
}

std::string metadata() {
  std::lock_guard lock(record().mutex);
  return record().metadata ? *record().metadata : std::string();
}

std::vector<Event> events(int device) {
  std::lock_guard lock(record().mutex);
  const std::deque<Event>& kept = record().events.at(static_cast<size_t>(device));
  return {kept.begin(), kept.end()};
}

void note_call() {
  if (!recording()) [[likely]]
    return;
  bool wanted;
  {
    std::lock_guard lock(record().mutex);
    wanted = record().settings.stacks != Stacks::kNone;
  }
  const Gatherer gatherer = g_gatherer.load(std::memory_order_relaxed);
  t_call_stack = wanted && gatherer != nullptr ? gatherer() : Stack();
}

Stack call_stack() { return t_call_stack; }

uint64_t next_address(int64_t bytes) {
  const int64_t steps = std::max<int64_t>((bytes + kAddressStep - 1) / kAddressStep, 1);
  return g_next_address.fetch_add(static_cast<uint64_t>(steps * kAddressStep),
                                  std::memory_order_relaxed);
}

void allocated(const Array& array) {
  add(array.device, {.action = Action::kAllocated,
                     .address = array.address,
                     .bytes = array.type->bytes,
                     .op = array.made_by,
                     .stack = array.stack});
}

void freed(const Array& array) {
  add(array.device, {.action = Action::kFreed,
                     .address = array.address,
                     .bytes = array.type->bytes,
                     .op = array.made_by});
}

void temporary(int device, int64_t bytes, const char* op) {
  const uint64_t address = next_address(bytes);
  for (const Action action : {Action::kAllocated, Action::kFreed}) {
    add(device, {.action = action, .address = address, .bytes = bytes, .op = op});
  }
}

void out_of_memory(int device, int64_t bytes, int64_t device_free, const char* op) {
  add(device, {.action = Action::kOutOfMemory,
               .bytes = bytes,
               .device_free = device_free,
               .op = op,
               .stack = t_call_stack});
}

void snapshot_taken(int device) { add(device, {.action = Action::kSnapshot}); }

}  // namespace torch_tpu::engine::history
