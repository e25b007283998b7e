// Compiled programs: in memory, on disk, and the pool that compiles them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/array.h"
#include "engine/compile_options.h"
#include "ir/key.h"
#include "pjrt/executable.h"

namespace torch_tpu::engine {

// A program and how far it is. Never freed while an entry of the kernel points to it (programs live for the process).
struct Program {
  enum class State : uint8_t { kCompiling, kReady, kFailed };

  ir::Key key;                   // of text, options and plugin
  std::string text;              // StableHLO; dropped once compiled, kept where that failed
  std::string name;              // operator(s), for reports
  std::vector<int64_t> donated;  // parameters whose memory an output may take
  std::vector<size_t> unread;    // parameters whose value the program does not need
  ProgramTraits traits;
  std::atomic<State> state{State::kCompiling};
  pjrt::Executable executable;  // kReady
  DeviceError error;            // kFailed
  bool error_used = false;      // a launch has failed by it; under the engine's mutex
  int64_t temp_bytes = 0;
};

struct CompileStats {
  int64_t compilations = 0, cache_hits = 0, disk_hits = 0, executions = 0, fallbacks = 0,
          disk_errors = 0;
  double compile_seconds = 0;
};

class ProgramCache {
 public:
  static ProgramCache& get();

  // The program of `text`, being loaded or compiled on the pool where it is not there yet. Null where it would have to be
  // compiled and must not. Thread-safe.
  Program* obtain(std::string text, std::string name, std::vector<int64_t> donated,
                  ProgramTraits traits, bool may_compile = true);
  // Compiles a program that failed once more: what it failed for (memory, say) may have passed. Call with the engine's
  // mutex held.
  void retry(Program& program);
  // Called (on a pool thread) whenever a program becomes ready or fails.
  void set_listener(std::function<void()> listener);
  // Finishes what is being compiled and joins the pool; later misses compile on the calling thread.
  void shutdown();

  CompileStats stats() const;
  void reset_stats();
  void count_hit() { hits_.fetch_add(1, std::memory_order_relaxed); }
  void count_execution() { executions_.fetch_add(1, std::memory_order_relaxed); }
  void count_fallback() { fallbacks_.fetch_add(1, std::memory_order_relaxed); }

 private:
  ProgramCache();
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::atomic<int64_t> hits_{0}, executions_{0}, fallbacks_{0};
};

}  // namespace torch_tpu::engine
