#include "engine/engine.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <thread>
#include <unordered_map>

#include "engine/client.h"
#include "engine/diagnostics.h"
#include "engine/memory.h"
#include "engine/recorder.h"

namespace torch_tpu::engine {
namespace {

constexpr size_t kMaxQueuedLaunches = 4096;
constexpr size_t kMaxKeptScalars = 256;
constexpr auto kInterruptPeriod = std::chrono::milliseconds(50);
constexpr auto kIdlePeriod = std::chrono::milliseconds(100);
constexpr auto kPause = std::chrono::milliseconds(1);

std::atomic<int> g_process_mode{0};
thread_local int t_thread_mode = -1;
void (*g_interrupt_check)() = nullptr;

struct Queue {
  std::mutex mutex;  // the engine's
  std::condition_variable
      arrived;  // a launch was queued, or a program became ready, or the queue is closing
  std::condition_variable drained;  // a launch left the queue
  std::deque<Launch> launches;
  int64_t bytes = 0;  // of the results of all queued launches
  std::thread worker;
  bool closing = false;
};

struct WordsHash {
  size_t operator()(const std::vector<uint32_t>& words) const {
    ir::KeyHasher hasher;
    hasher.add_bytes(words.data(), words.size() * sizeof(uint32_t));
    return hasher.finish().lo;
  }
};

Queue& queue() {
  static auto* q = new Queue;  // outlives every thread
  return *q;
}

std::unordered_map<std::vector<uint32_t>, ArrayPtr, WordsHash>& kept_scalars() {
  static auto* kept = new std::unordered_map<std::vector<uint32_t>, ArrayPtr, WordsHash>;
  return *kept;  // under the mutex
}

DeviceError failure(const std::string& what, const pjrt::Status& status) {
  const bool out_of_memory = status.code() == pjrt::Code::kResourceExhausted;
  return {"tpu: " + what +
              " failed on the device: " + (out_of_memory ? status.message() : status.str()),
          out_of_memory};
}

[[noreturn]] void raise(const DeviceError& error, const std::string& where = "") {
  TORCH_CHECK_WITH(OutOfMemoryError, !error.out_of_memory, error.message, where);
  TORCH_CHECK(false, error.message, where);
}

// "mm(float32[8, 8], float32[8, 4])", from the arrays it was given.
std::string call_text(const char* op, std::span<const ArrayPtr> inputs) {
  std::string text = std::string(op) + "(";
  for (const ArrayPtr& input : inputs) {
    if (text.back() != '(') text += ", ";
    text += input ? type_text(*input->type) : "donated";
  }
  return text + ")";
}

// A failure seen after the call was over: says where that was, or how to find out.
DeviceError late(DeviceError error, const char* line) {
  error.message += line != nullptr
                       ? std::string("\n  called at ") + line
                       : "\n  For the line that called it, set TORCH_TPU_TRACEBACKS=1 or use "
                         "torch.tpu.EagerMode.DEBUG";
  return error;
}

// Frees what only the engine keeps. With the mutex held.
void free_kept(int device) {
  kept_scalars().clear();
  memory(device).count_retry();
}

pjrt::Status out_of_memory(int device, int64_t wanted, const char* op) {
  memory(device).count_out_of_memory();
  if (history::recording()) [[unlikely]]
    history::out_of_memory(device, wanted, memory(device).room_bytes(), op);
  return {pjrt::Code::kResourceExhausted, out_of_memory_report(device, wanted)};
}

bool is_gone(const Array& array) {
  const auto deleted = pjrt::is_deleted(client().api(), array.buffer);
  return !deleted.ok() || *deleted;
}

// The operator to blame for a launch of `op` that the device refused: the one that should have made an input, where the
// device failed to.
const char* failed_operator(const char* op, std::span<const ArrayPtr> inputs) {
  for (const ArrayPtr& input : inputs) {
    if (!input || input->buffer == nullptr || is_gone(*input)) continue;
    auto ready = pjrt::ready_event(client().api(), input->buffer);
    if (ready.ok() && ready->is_ready() && !ready->await().ok()) return input->made_by;
  }
  return op;
}

// The values that a launch overwrites are its own alone while it runs, so that they may be donated or freed first; those
// that it reads as well are remembered, to be put back if it fails.
class FormerValues {
 public:
  // To be called when the launch is certain to reach the device.
  FormerValues(std::span<const ArrayPtr> inputs, std::span<const ArrayPtr> outputs)
      : inputs_(inputs), outputs_(outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const ArrayPtr former = std::move(outputs[i]->former);
      if (!former) continue;
      size_t input = 0;
      while (input < inputs.size() && inputs[input] != former) ++input;
      given_up_.push_back({i, input});
    }
  }
  // The launch failed: what it left alone can be put back.
  void restore() const {
    for (const auto& [output, input] : given_up_) {
      Array& written = *outputs_[output];
      if (input < inputs_.size() && inputs_[input] && !is_gone(*inputs_[input])) {
        written.former = inputs_[input];
      } else {
        written.written_to = 0;
      }
    }
  }

 private:
  std::span<const ArrayPtr> inputs_, outputs_;
  c10::SmallVector<std::pair<size_t, size_t>, 4> given_up_;  // output, input
};

// Runs a ready program whose inputs are all ready. With the mutex held.
pjrt::Status execute(Program& program, std::span<ArrayPtr> inputs,
                     std::span<const ArrayPtr> outputs, const char* op) {
  const FormerValues former_values(inputs, outputs);
  c10::SmallVector<PJRT_Buffer*, 8> args(inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) args[i] = inputs[i]->buffer;
  c10::SmallVector<int64_t, 4> kept;  // donated by the program, but somebody else still needs it
  for (const int64_t i : program.donated) {
    if (inputs[static_cast<size_t>(i)].use_count() > 1) kept.push_back(i);
  }
  c10::SmallVector<PJRT_Buffer*, 4> results(program.executable.num_outputs(), nullptr);
  const int device = inputs.empty() ? outputs.front()->device : inputs.front()->device;
  PJRT_Device* target =
      client().num_devices() > 1 ? client().devices()[static_cast<size_t>(device)].get() : nullptr;
  int64_t wanted = program.temp_bytes;
  for (const ArrayPtr& output : outputs) wanted += output->type->bytes;
  for (const int64_t i : program.donated) {
    const ArrayPtr& input = inputs[static_cast<size_t>(i)];
    if (input.use_count() == 1) wanted -= input->type->bytes;
  }
  if (!memory(device).has_room(wanted)) [[unlikely]] {
    free_kept(device);
    if (!memory(device).has_room(wanted)) {
      former_values.restore();
      return out_of_memory(device, wanted, op);
    }
  }
  if (program.temp_bytes > 0) {
    memory(device).allocated(program.temp_bytes);
    if (history::recording()) [[unlikely]]
      history::temporary(device, program.temp_bytes, op);
  }
  const auto run = [&] {
    return program.executable.execute(args.data(), args.size(), results.data(), kept.data(),
                                      kept.size(), target);
  };
  pjrt::Status status = run();
  if (status.code() == pjrt::Code::kResourceExhausted && kept.size() == program.donated.size())
      [[unlikely]] {  // nothing was donated: it may run again
    free_kept(device);
    status = run();
  }
  if (program.temp_bytes > 0) memory(device).freed(program.temp_bytes);
  if (!status.ok()) {
    former_values.restore();
    return status.code() == pjrt::Code::kResourceExhausted ? out_of_memory(device, wanted, op)
                                                           : status;
  }
  ProgramCache::get().count_execution();
  for (const int64_t i : program.donated) {  // their memory lives on in an output: count it once
    ArrayPtr& input = inputs[static_cast<size_t>(i)];
    if (input.use_count() == 1) input.reset();
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (*outputs[i]->made_by == '\0') outputs[i]->made_by = op;
    outputs[i]->written_to = 0;  // what it replaced is gone
    outputs[i]->set_buffer(results[i]);
  }
  return {};
}

void mark_failed(std::span<const ArrayPtr> outputs, std::shared_ptr<const DeviceError> error) {
  for (const ArrayPtr& output : outputs) {
    ArrayPtr& former = output->former;
    if (former && former->error == error && former->written_to == output->written_to) {
      former = ArrayPtr(former->former);  // written twice in vain
    }
    output->error = error;
    output->state.store(ArrayState::kFailed, std::memory_order_release);
  }
}

// Why an input has no value, where the program reads it. One that it only takes for its memory (an operator that
// overwrites) gets memory instead.
std::shared_ptr<const DeviceError> failed_input(const Program& program,
                                                std::span<ArrayPtr> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Array& input = *inputs[i];
    if (input.state != ArrayState::kFailed) [[likely]]
      continue;
    if (std::find(program.unread.begin(), program.unread.end(), i) == program.unread.end())
      return input.error;
    const std::vector<char> content(static_cast<size_t>(input.type->bytes));
    auto memory =
        pjrt::host_to_device(client(), client().devices()[static_cast<size_t>(input.device)],
                             content.data(), input.type->dtype, input.type->dims);
    if (!memory.ok()) return input.error;
    inputs[i] = c10::make_intrusive<Array>(input.type, input.device, ArrayState::kPending);
    inputs[i]->set_buffer(memory->release());
  }
  return nullptr;
}

// Why `program` could not be compiled, as the error of one launch.
DeviceError compile_error(Program& program) {
  program.error_used = true;
  return program.error;
}

// The failed operator in words.
std::string blamed(const char* op, std::span<const ArrayPtr> inputs) {
  const char* failed = failed_operator(op, inputs);
  return failed == op ? call_text(op, inputs) : failed;
}

[[noreturn]] void raise_at_call(std::unique_lock<std::mutex>& lock,
                                std::span<const ArrayPtr> outputs, DeviceError reason) {
  const auto error = std::make_shared<const DeviceError>(std::move(reason));
  mark_failed(outputs, error);
  put_back(*error);
  lock.unlock();
  raise(*error, where_now());
}

bool still_there(std::span<const ArrayPtr> inputs) {
  return std::none_of(inputs.begin(), inputs.end(),
                      [](const ArrayPtr& input) { return !input || is_gone(*input); });
}

// Runs a launch whose turn it is, or gives those that take its place.
std::vector<Launch> run_queued(Launch& launch) {
  const char* line = launch.outputs.front()->made_at;
  const auto fail = [&](DeviceError error) -> std::vector<Launch> {
    if (launch.apart && still_there(launch.inputs))
      return launch.apart(launch.inputs, launch.outputs);
    mark_failed(launch.outputs, std::make_shared<DeviceError>(late(std::move(error), line)));
    return {};
  };
  if (const auto error = failed_input(*launch.program, launch.inputs)) {
    if (launch.apart) return launch.apart(launch.inputs, launch.outputs);  // some may not need it
    mark_failed(launch.outputs, error);
    return {};
  }
  if (launch.program->state == Program::State::kFailed) return fail(compile_error(*launch.program));
  const pjrt::Status status = execute(*launch.program, launch.inputs, launch.outputs, launch.op);
  if (!status.ok()) return fail(failure(blamed(launch.op, launch.inputs), status));
  return {};
}

void put_first(std::vector<Launch> launches) {
  Queue& q = queue();
  for (const Launch& launch : launches) q.bytes += bytes_of(launch.outputs);
  q.launches.insert(q.launches.begin(), std::make_move_iterator(launches.begin()),
                    std::make_move_iterator(launches.end()));
}

void work() {
  Queue& q = queue();
  std::unique_lock lock(q.mutex);
  auto held_since = std::chrono::steady_clock::now();
  for (;;) {
    const auto due = [&] {
      return q.launches.empty() ? q.closing
                                : q.launches.front().program->state != Program::State::kCompiling;
    };
    while (!due()) {
      const int64_t before = calls_so_far();
      if (recorded() == 0) {
        q.arrived.wait(lock);
      } else if (q.arrived.wait_for(lock, kIdlePeriod) == std::cv_status::timeout &&
                 calls_so_far() == before) {
        flush(FlushReason::kIdle);
      }
    }
    if (q.launches.empty()) return;
    std::vector<Launch> instead = run_queued(q.launches.front());
    q.bytes -= bytes_of(q.launches.front().outputs);
    q.launches.pop_front();
    put_first(std::move(instead));
    q.drained.notify_all();
    // A long queue of ready programs leaves the mutex to others now and then, so that Ctrl-C is answered.
    if (const auto now = std::chrono::steady_clock::now(); now - held_since > kInterruptPeriod) {
      lock.unlock();
      std::this_thread::sleep_for(kPause);
      lock.lock();
      held_since = now;
    }
  }
}

// Waits on the queue until `done`, answering Ctrl-C.
template <typename Done>
void wait_on_queue(std::unique_lock<std::mutex>& lock, Done done) {
  Queue& q = queue();
  while (!done()) {
    if (q.drained.wait_for(lock, kInterruptPeriod, done)) return;
    if (g_interrupt_check == nullptr) continue;
    lock.unlock();
    g_interrupt_check();
    lock.lock();
  }
}

// Waits for the device, answering Ctrl-C. Without the mutex.
pjrt::Status await(const pjrt::Event& event) {
  struct Waiter {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  if (event.is_ready() || g_interrupt_check == nullptr) return event.await();
  const auto waiter = std::make_shared<Waiter>();
  const pjrt::Status asked = event.on_ready([waiter](const pjrt::Status&) {
    const std::lock_guard lock(waiter->mutex);
    waiter->done = true;
    waiter->changed.notify_all();
  });
  if (!asked.ok()) return event.await();
  for (;;) {
    {
      std::unique_lock lock(waiter->mutex);
      if (waiter->changed.wait_for(lock, kInterruptPeriod, [&] { return waiter->done; })) break;
    }
    g_interrupt_check();
  }
  return event.await();
}

void start_worker(Queue& q) {
  if (q.worker.joinable()) return;
  ProgramCache::get().set_listener([&q] {
    {
      std::lock_guard lock(q.mutex);
    }  // the worker is either before its check or waiting
    q.arrived.notify_all();
  });
  q.worker = std::thread(work);
}

void enqueue(Launch launch) {
  Queue& q = queue();
  start_worker(q);
  q.bytes += bytes_of(launch.outputs);
  q.launches.push_back(std::move(launch));
  q.arrived.notify_all();
}

Program::State state_to_launch(Program& program) {
  if (program.state.load(std::memory_order_acquire) == Program::State::kFailed &&
      program.error_used) [[unlikely]] {
    ProgramCache::get().retry(program);  // a launch has reported it; this one may fare better
  }
  return program.state.load(std::memory_order_acquire);
}

}  // namespace

EagerMode eager_mode() {
  const int mode =
      t_thread_mode >= 0 ? t_thread_mode : g_process_mode.load(std::memory_order_relaxed);
  return static_cast<EagerMode>(mode);
}
void set_process_eager_mode(EagerMode mode) { g_process_mode = static_cast<int>(mode); }
int set_thread_eager_mode(int mode) { return std::exchange(t_thread_mode, mode); }

std::mutex& engine_mutex() { return queue().mutex; }

void set_interrupt_check(void (*check)()) { g_interrupt_check = check; }

void launch(std::unique_lock<std::mutex>& lock, Program& program, std::span<ArrayPtr> inputs,
            std::span<const ArrayPtr> outputs, const char* op) {
  Queue& q = queue();
  Program::State state = state_to_launch(program);
  const bool must_wait = state == Program::State::kCompiling || !q.launches.empty();
  if (must_wait && !memory(outputs.front()->device).has_room(q.bytes + bytes_of(outputs)))
      [[unlikely]] {  // it may not fit: that is to be raised at the call
    wait_on_queue(lock, [&] {
      state = program.state.load(std::memory_order_acquire);
      return q.launches.empty() && state != Program::State::kCompiling;
    });
  }
  if (q.launches.empty() && state != Program::State::kCompiling) [[likely]] {
    if (const auto error = failed_input(program, inputs)) [[unlikely]]
      return mark_failed(outputs, error);
    if (state == Program::State::kFailed) [[unlikely]]
      raise_at_call(lock, outputs, compile_error(program));
    const pjrt::Status status = execute(program, inputs, outputs, op);
    if (!status.ok()) [[unlikely]] {
      raise_at_call(lock, outputs, failure(blamed(op, inputs), status));
    }
    return;
  }
  Launch queued{&program, {}, {}, op, nullptr};
  for (ArrayPtr& input : inputs) queued.inputs.push_back(std::move(input));
  queued.outputs.append(outputs.begin(), outputs.end());
  enqueue(std::move(queued));
}

void launch_quietly(Launch launch) {
  if (state_to_launch(*launch.program) == Program::State::kCompiling || !queue().launches.empty())
    return enqueue(std::move(launch));
  for (Launch& instead : run_queued(launch)) enqueue(std::move(instead));
}

void fail(std::span<const ArrayPtr> outputs, std::string message) {
  mark_failed(outputs, std::make_shared<DeviceError>(DeviceError{std::move(message)}));
}

void expect_idleness() {
  start_worker(queue());
  queue().arrived.notify_all();
}

void make_room(std::unique_lock<std::mutex>& lock) {
  const auto& launches = queue().launches;
  if (launches.size() < kMaxQueuedLaunches) [[likely]]
    return;
  wait_on_queue(lock, [&] { return launches.size() <= kMaxQueuedLaunches / 2; });
}

void wait(const ArrayPtr& array) {
  check_fork();  // its launch may be in a queue that the parent's threads serve
  if (array->state.load(std::memory_order_acquire) == ArrayState::kRecorded) {
    std::unique_lock lock(queue().mutex);
    flush(FlushReason::kHostRead);
  }
  if (array->state.load(std::memory_order_acquire) == ArrayState::kPending) {
    std::unique_lock lock(queue().mutex);
    wait_on_queue(lock, [&] { return array->state.load() != ArrayState::kPending; });
  }
  if (array->state == ArrayState::kFailed) {
    // What depends on it and is still queued fails first; then all that was written in vain is put back at once.
    std::unique_lock lock(queue().mutex);
    wait_on_queue(lock, [] { return queue().launches.empty(); });
    put_back(*array->error);
    lock.unlock();
    raise(*array->error);
  }
  const auto ready = pjrt::ready_event(client().api(), array->buffer);
  const pjrt::Status status = ready.ok() ? await(*ready) : ready.status();
  if (status.ok()) [[likely]]
    return;
  const auto error = std::make_shared<DeviceError>(
      late(failure(std::string(array->made_by) + ", or an operator whose result it used,", status),
           array->made_at));
  std::unique_lock lock(queue().mutex);
  mark_failed({&array, 1}, error);  // reported: what is computed from it blames the same operator
  lock.unlock();
  raise(*error);
}

void issue() {
  if (!client_started() || in_bad_fork()) return;
  std::unique_lock lock(queue().mutex);
  flush(FlushReason::kSynchronize);
}

void drain() {
  if (!client_started() || in_bad_fork()) return;
  std::unique_lock lock(queue().mutex);
  flush(FlushReason::kSynchronize);
  wait_on_queue(lock, [] { return queue().launches.empty(); });
}

void synchronize(int device) {
  if (!client_started()) return;
  check_fork();
  std::unique_lock lock(queue().mutex);
  flush(FlushReason::kSynchronize);
  wait_on_queue(lock, [] { return queue().launches.empty(); });
  const std::vector<ArrayPtr> live = live_arrays(device);
  lock.unlock();
  for (const ArrayPtr& array : live) {
    if (array->state == ArrayState::kReady) wait(array);  // a failed one raises where it is read
  }
}

void shutdown() {
  if (!client_started() || in_bad_fork()) return;
  Queue& q = queue();
  {
    std::lock_guard lock(q.mutex);
    q.closing = true;
  }
  q.arrived.notify_all();
  if (q.worker.joinable()) q.worker.join();
  ProgramCache::get().shutdown();
}

namespace {

ArrayPtr upload(const void* data, const ArrayType* type, int device, const char* op) {
  auto array = c10::make_intrusive<Array>(type, device, ArrayState::kPending);
  array->made_by = op;
  auto buffer = pjrt::host_to_device(client(), client().devices().at(static_cast<size_t>(device)),
                                     data, type->dtype, type->dims);
  if (!buffer.ok()) raise(failure(op, buffer.status()));
  array->set_buffer(buffer->release());
  return array;
}

}  // namespace

ArrayPtr from_host(const void* data, const ArrayType* type, int device, const char* op) {
  if (!memory(device).has_room(type->bytes)) [[unlikely]] {
    drain();
    std::unique_lock lock(queue().mutex);
    free_kept(device);
    if (!memory(device).has_room(type->bytes)) {
      const DeviceError error = failure(op, out_of_memory(device, type->bytes, op));
      lock.unlock();
      raise(error, where_now());
    }
  }
  ArrayPtr array = upload(data, type, device, op);
  array->made_at = recorded_line();
  return array;
}

const void* host_pointer(const ArrayPtr& array) {
  wait(array);
  if (!client().host_visible_memory()) return nullptr;
  auto pointer = pjrt::unsafe_pointer(client().api(), array->buffer);
  return pointer.ok() ? *pointer : nullptr;
}

void to_host(const ArrayPtr& array, void* dst, int64_t offset, int64_t bytes) {
  if (const void* src = host_pointer(array)) {
    std::memcpy(dst, static_cast<const char*>(src) + offset, static_cast<size_t>(bytes));
    return;
  }
  const auto total = static_cast<size_t>(array->type->bytes);
  if (offset == 0 && bytes == array->type->bytes) {
    const pjrt::Status status = pjrt::device_to_host(client().api(), array->buffer, dst, total);
    if (!status.ok()) raise(failure(array->made_by, status));
    return;
  }
  std::vector<char> whole(total);
  const pjrt::Status status =
      pjrt::device_to_host(client().api(), array->buffer, whole.data(), total);
  if (!status.ok()) raise(failure(array->made_by, status));
  std::memcpy(dst, whole.data() + offset, static_cast<size_t>(bytes));
}

ArrayPtr scalar_words(std::span<const uint32_t> words, int device, bool reuse) {
  auto& kept = kept_scalars();
  std::vector<uint32_t> key(words.begin(), words.end());
  key.push_back(static_cast<uint32_t>(device));
  if (reuse) {
    if (const auto it = kept.find(key); it != kept.end()) return it->second;
  }
  const ArrayType* type = intern_type(DType::kU32, {static_cast<int64_t>(words.size())});
  ArrayPtr array = upload(words.data(), type, device, "scalar arguments");
  if (reuse) {
    if (kept.size() >= kMaxKeptScalars) kept.clear();
    kept.emplace(std::move(key), array);
  }
  return array;
}

ArrayPtr to_device(const ArrayPtr& array, int device) {
  wait(array);
  auto buffer = pjrt::copy_to_device(client().api(), array->buffer,
                                     client().devices().at(static_cast<size_t>(device)));
  if (!buffer.ok()) raise(failure("a copy to another device", buffer.status()));
  auto copy = c10::make_intrusive<Array>(array->type, device, ArrayState::kPending);
  copy->made_by = "copy_";
  copy->set_buffer(buffer->release());
  return copy;
}

}  // namespace torch_tpu::engine
