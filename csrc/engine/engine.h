// The engine: launches programs in order, moves data, and answers for device errors.
//
// One mutex guards slots' values and the launch queue. It is never held while waiting for the compiler, for the device
// or for Python's lock.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/util/SmallVector.h>

#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/array.h"
#include "engine/program.h"

namespace torch_tpu::engine {

enum class EagerMode : int { kStrict = 0, kDebug = 1, kDeferAndFuse = 2 };

// The mode of the calling thread: its own where it set one, else the process's.
EagerMode eager_mode();
void set_process_eager_mode(EagerMode mode);
// -1 returns to the process's mode. Returns the previous setting of this thread.
int set_thread_eager_mode(int mode);

std::mutex& engine_mutex();

// One launch: `inputs` become the program's parameters, `outputs` its results. Call with the mutex held. Runs at once
// where nothing is queued and the program is ready; else it is queued and the outputs are pending. An input that the
// program may donate is donated when the launch holds the only reference to it. Throws when the queue is empty and the
// launch fails, after the storages of outputs with `written_to` got their former values back; a queued launch that fails
// marks its outputs.
void launch(std::unique_lock<std::mutex>& lock, Program& program, std::span<ArrayPtr> inputs,
            std::span<const ArrayPtr> outputs, const char* op);
// A launch by itself, and the ones that do the same work in its place.
struct Launch;
using Apart = std::function<std::vector<Launch>(std::span<ArrayPtr> inputs,
                                                std::span<const ArrayPtr> outputs)>;
struct Launch {
  Program* program;
  c10::SmallVector<ArrayPtr, 6> inputs, outputs;
  const char* op;
  // Of a program that does the work of several calls: the calls one by one, where it cannot be compiled or run and its
  // inputs are still there. Called with the mutex held.
  Apart apart;
};
// As above, but never throws: a failure marks the outputs.
void launch_quietly(Launch launch);
// Marks arrays as failed; reading one raises RuntimeError. With the mutex held.
void fail(std::span<const ArrayPtr> outputs, std::string message);
// Something was recorded: it is flushed when nothing more comes for a while.
void expect_idleness();

// Blocks while very many launches are queued. Call with the mutex held, before the operands' values are looked at; the
// mutex is free while it waits.
void make_room(std::unique_lock<std::mutex>& lock);

// Blocks until the array's content is there; throws the error of the launch that should have made it. Then every storage
// that was written in vain because of that error has its former value back.
void wait(const ArrayPtr& array);
// Hands what is recorded to the device.
void issue();
// Blocks until every queued launch has been issued to the device: the memory counters are then up to date.
void drain();
// Blocks until everything issued so far has finished.
void synchronize(int device);
// Blocks until the queue is empty and joins the threads; for the interpreter's exit.
void shutdown();
// Called while waiting, without the mutex: raises KeyboardInterrupt where one is due. Set by the Python module.
void set_interrupt_check(void (*check)());

// An array with a copy of row-major host memory.
ArrayPtr from_host(const void* data, const ArrayType* type, int device, const char* op);
// Copies `bytes` bytes from byte `offset` of the array's row-major content. Waits.
void to_host(const ArrayPtr& array, void* dst, int64_t offset, int64_t bytes);
// The host-readable address of a ready array's content, or null where the device's memory is its own. Waits.
const void* host_pointer(const ArrayPtr& array);
// Dynamic scalars as a device array of 32-bit words; repeated values share one array.
ArrayPtr scalar_words(std::span<const uint32_t> words, int device, bool reuse);
// A copy on another device of this process.
ArrayPtr to_device(const ArrayPtr& array, int device);

}  // namespace torch_tpu::engine
