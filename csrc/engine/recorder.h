// DeferAndFuse: calls are recorded, cut into groups where their content says, and each group runs as one program.
//
// Everything here is called with the engine's mutex held.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/array.h"
#include "engine/program.h"
#include "ir/graph.h"
#include "stablehlo/builder.h"

namespace torch_tpu::engine {

// What one call runs: its graph, for joining with others, and the program of it alone, compiled when it is first wanted.
// Made by the kernel, once a key.
class Step {
 public:
  // `name` lives for the process.
  Step(ir::Graph graph, std::string text, const char* name, ProgramTraits traits,
       stablehlo::Precision precision);

  const ir::Graph& graph() const { return graph_; }
  const char* name() const { return name_; }
  stablehlo::Precision precision() const { return precision_; }
  int user_options() const { return traits_.user_options; }
  // The same in every process for the same content.
  uint64_t content() const { return content_; }
  // The call's own program: null until it is obtained, which gives null where it would have to be compiled and must not.
  Program* program() const { return program_; }
  Program* obtain(bool may_compile = true);
  bool has_ready_program() const {
    return program_ != nullptr && program_->state == Program::State::kReady;
  }

 private:
  ir::Graph graph_;
  std::string text_;  // until the program is obtained
  const char* name_;
  ProgramTraits traits_;
  stablehlo::Precision precision_;
  uint64_t content_;
  Program* program_ = nullptr;
};

enum class FlushReason : int {
  kHostRead,     // item(), cpu(), printing, a comparison in Python
  kSynchronize,  // synchronize(), events, memory statistics
  kOtherMode,    // an operator ran in another mode, or the mode ended
  kLength,       // kMaxRecorded calls were recorded
  kBytes,        // their results would take kMaxRecordedBytes
  kMemory,       // the device was full
  kUser,         // torch.tpu.flush()
  kIdle,         // nothing was recorded for kIdlePeriod
  kCount
};

// Records a call: `outputs` are pending from now on. The step's scalars are `words`.
void record(const std::shared_ptr<Step>& step, std::span<ArrayPtr> inputs,
            std::span<const ArrayPtr> outputs, std::span<const uint32_t> words);
// Hands all recorded calls to the device. Never throws: what fails is raised where a result is read.
void flush(FlushReason reason);
size_t recorded();       // calls that wait
int64_t calls_so_far();  // recorded since the start: tells whether the recorder is idle

struct FusionStats {
  std::array<int64_t, static_cast<size_t>(FlushReason::kCount)> flushes{};
  int64_t calls = 0;            // recorded
  int64_t groups = 0;           // that ran
  int64_t fused = 0;            // of them: as one program
  int64_t compiled_groups = 0;  // different ones that were compiled
  int64_t values_kept_out = 0;  // results that never took memory
  int64_t bytes_kept_out = 0;
};
FusionStats fusion_stats();
void reset_fusion_stats();

}  // namespace torch_tpu::engine
