#include "engine/recorder.h"

#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>
#include <c10/util/flat_hash_map.h>

#include <algorithm>

#include "engine/diagnostics.h"
#include "engine/engine.h"
#include "engine/memory.h"
#include "ir/join.h"
#include "ir/key.h"
#include "lowering/module.h"

namespace torch_tpu::engine {
namespace {

constexpr size_t kMaxRecorded = 4096;                    // calls
constexpr int64_t kMaxRecordedBytes = int64_t{2} << 30;  // of results
// Groups are cut after a call whose last few contents hash to a multiple of kCutEvery, at these lengths.
constexpr size_t kMinGroup = 24, kMaxGroup = 96;
constexpr uint64_t kCutEvery = 16;
constexpr int kCutWindow = 4;                  // calls
constexpr uint64_t kMix = 0x9E3779B97F4A7C15;  // of their hash
constexpr size_t kMaxGroups = 1 << 14;         // remembered
// A group whose calls have programs of their own is compiled when it has come up this often.
constexpr int kSightings = 4;
// One fused program compiles in the time of this many programs of one call.
constexpr size_t kCallsPerCompile = 8;

constexpr int64_t kLargeInput = 1 << 16;  // bytes

constexpr uint32_t kMade = 1u << 31;  // in Array::group_index: made in the group, not from outside

struct Call {
  std::shared_ptr<Step> step;
  c10::SmallVector<ArrayPtr, 4> inputs;
  c10::SmallVector<ArrayPtr, 2> outputs;
  c10::SmallVector<uint32_t, 6> words;
};

class Recipe;

struct Group {
  Program* program = nullptr;
  std::shared_ptr<const Recipe> recipe;
  int sightings = 0;
};

struct Recorder {
  std::vector<Call> calls;
  std::vector<size_t> cuts;  // a group ends before each
  std::array<uint64_t, kCutWindow> window{};
  int64_t bytes = 0;
  uint64_t group_number = 0;
  int64_t total = 0;  // calls ever recorded
  ska::flat_hash_map<ir::Key, Group> groups;
  FusionStats stats;
};

Recorder& recorder() {
  static auto* r = new Recorder;
  return *r;
}

bool belongs_apart(const Call& before, const Step& step, int device) {
  return before.step->precision() != step.precision() ||
         before.step->user_options() != step.user_options() ||
         before.outputs.front()->device != device;
}

// A group's values: which arrays come from outside, which of its own are needed afterwards.
class GroupShape {
 public:
  explicit GroupShape(std::span<Call> calls) : calls_(calls) { scan(); }

  const ir::Key& key() const { return key_; }
  std::vector<ArrayPtr>& externals() { return externals_; }
  const std::vector<ArrayPtr>& needed() const { return needed_; }
  size_t made() const { return made_.size(); }
  // The call that makes an array of the group, and as which of its outputs.
  std::pair<int, int> place_of(const Array& array) const {
    const Made& made = made_[array.group_index & ~kMade];
    return {made.call, made.output};
  }

  ir::Graph graph() const {
    std::vector<ir::ValueSpec> inputs;
    for (const ArrayPtr& array : externals_) inputs.push_back(spec_of(array->type));
    std::vector<ir::Part> parts;
    for (const Call& call : calls_) {
      ir::Part& part = parts.emplace_back();
      part.graph = &call.step->graph();
      for (const ArrayPtr& input : call.inputs) part.inputs.push_back(source_of(*input));
    }
    std::vector<ir::Source> outputs;
    for (const ArrayPtr& output : needed_) outputs.push_back(source_of(*output));
    return ir::join(std::move(inputs), parts, outputs, donations_);
  }

 private:
  struct Made {
    int call, output;
    int root;  // the external whose memory it may take over, or -1
  };
  ir::Source source_of(const Array& array) const {
    if ((array.group_index & kMade) == 0) return {-1, static_cast<int>(array.group_index)};
    const auto [call, output] = place_of(array);
    return {call, output};
  }

  void scan() {
    const uint64_t number = ++recorder().group_number;
    ir::KeyHasher hasher;
    for (size_t c = 0; c < calls_.size(); ++c) {
      Call& call = calls_[c];
      hasher.add(call.step->content());
      for (const ArrayPtr& input : call.inputs) {
        if (input->group != number) {
          input->group = number;
          input->group_index = static_cast<uint32_t>(externals_.size());
          input->group_uses = 0;
          externals_.push_back(input);
        }
        ++input->group_uses;
        hasher.add(input->group_index);
      }
      for (size_t i = 0; i < call.outputs.size(); ++i) {
        Array& output = *call.outputs[i];
        output.group = number;
        output.group_index = kMade | static_cast<uint32_t>(made_.size());
        output.group_uses = 1;
        made_.push_back({static_cast<int>(c), static_cast<int>(i), root_of(call, i)});
      }
    }
    std::vector<bool> dead;  // externals that nobody else holds: the calls and the list here do
    for (const ArrayPtr& array : externals_) {
      dead.push_back(array.use_count() == array->group_uses + 1);
      hasher.add(dead.back());
    }
    for (const Made& made : made_) {
      const ArrayPtr& array =
          calls_[static_cast<size_t>(made.call)].outputs[static_cast<size_t>(made.output)];
      const bool is_needed = array.use_count() > array->group_uses;
      hasher.add(is_needed);
      if (!is_needed) continue;
      const int root = made.root;
      if (root >= 0 && dead[static_cast<size_t>(root)] &&
          externals_[static_cast<size_t>(root)]->type == array->type) {
        dead[static_cast<size_t>(root)] = false;  // taken
        donations_.emplace_back(root, static_cast<int>(needed_.size()));
      }
      needed_.push_back(array);
    }
    donate_the_rest(dead);
    key_ = hasher.finish();
  }

  // Large inputs that nobody needs afterwards give their memory to results of their type. Follows from what is in the key.
  void donate_the_rest(std::vector<bool>& dead) {
    std::vector<bool> taken(needed_.size());
    for (const auto& [input, output] : donations_) taken[static_cast<size_t>(output)] = true;
    for (size_t i = 0; i < externals_.size(); ++i) {
      if (!dead[i] || externals_[i]->type->bytes < kLargeInput) continue;
      for (size_t o = 0; o < needed_.size(); ++o) {
        if (taken[o] || needed_[o]->type != externals_[i]->type) continue;
        donations_.emplace_back(static_cast<int>(i), static_cast<int>(o));
        taken[o] = true;
        break;
      }
    }
  }

  int root_of(const Call& call, size_t output) const {
    for (const auto& [from, to] : call.step->graph().donations) {
      if (to != static_cast<int>(output)) continue;
      const uint32_t index = call.inputs[static_cast<size_t>(from)]->group_index;
      return (index & kMade) == 0 ? static_cast<int>(index) : made_[index & ~kMade].root;
    }
    return -1;
  }

  std::span<Call> calls_;
  std::vector<ArrayPtr> externals_, needed_;
  std::vector<Made> made_;
  std::vector<std::pair<int, int>> donations_;
  ir::Key key_;
};

std::string group_name(std::span<const Call> calls) {
  return std::to_string(calls.size()) + " operators, " + calls.front().step->name() + " to " +
         calls.back().step->name();
}

std::vector<int64_t> donated_inputs(const ir::Graph& graph) {
  std::vector<int64_t> donated;
  for (const auto& [input, output] : graph.donations) donated.push_back(input);
  return donated;
}

Program* obtain(std::span<const Call> calls, const ir::Graph& graph, bool may_compile) {
  lowering::ModuleOptions options;
  options.precision = calls.front().step->precision();
  lowering::ModuleTraits module;
  std::string text = lowering::lower_module(graph, options, &module);
  ProgramTraits traits;
  traits.user_options = calls.front().step->user_options();
  traits.many_equal_kernels = true;  // groups repeat layers and updates, and run faster so
  traits.only_short_trailing_reductions = module.only_short_trailing_reductions;
  return ProgramCache::get().obtain(std::move(text), group_name(calls), donated_inputs(graph),
                                    traits, may_compile);
}

void add_words(c10::SmallVectorImpl<ArrayPtr>& inputs, std::span<const uint32_t> words,
               int device) {
  if (!words.empty()) inputs.push_back(scalar_words(words, device, /*reuse=*/false));
}

void about_to_launch(std::span<const ArrayPtr> outputs) {
  for (const ArrayPtr& output : outputs)
    output->state.store(ArrayState::kPending, std::memory_order_release);
}

Launch launch_of(Call& call) {
  about_to_launch({call.outputs.data(), call.outputs.size()});
  Launch launch{call.step->obtain(), {}, {}, call.step->name(), nullptr};
  for (ArrayPtr& input : call.inputs) launch.inputs.push_back(std::move(input));
  add_words(launch.inputs, call.words, call.outputs.front()->device);
  for (ArrayPtr& output : call.outputs) launch.outputs.push_back(std::move(output));
  return launch;
}

void run_apart(std::span<Call> calls) {
  for (Call& call : calls) launch_quietly(launch_of(call));
}

// The calls of a group that runs fused, without its arrays: what is needed to run them one by one after all.
class Recipe {
 public:
  Recipe(std::span<const Call> calls, const GroupShape& shape) {
    for (const Call& call : calls) {
      Part& part = parts_.emplace_back();
      part.step = call.step;
      part.words = call.words.size();
      for (const ArrayPtr& input : call.inputs) part.inputs.push_back(input->group_index);
      for (const ArrayPtr& output : call.outputs) {
        part.outputs.push_back({output->type, output->made_at, -1});
      }
      device_ = call.outputs.front()->device;
    }
    for (size_t i = 0; i < shape.needed().size(); ++i) {
      const auto [part, output] = shape.place_of(*shape.needed()[i]);
      parts_[static_cast<size_t>(part)].outputs[static_cast<size_t>(output)].needed =
          static_cast<int>(i);
    }
  }

  std::vector<Launch> launches(std::span<ArrayPtr> externals, std::span<const ArrayPtr> needed,
                               std::span<const uint32_t> words) const {
    std::vector<ArrayPtr> made;
    std::vector<Launch> launches;
    for (const Part& part : parts_) {
      Call call;
      call.step = part.step;
      call.words.append(words.begin(), words.begin() + static_cast<int64_t>(part.words));
      words = words.subspan(part.words);
      for (const uint32_t index : part.inputs) {
        call.inputs.push_back((index & kMade) == 0 ? externals[index] : made[index & ~kMade]);
      }
      for (const Output& output : part.outputs) {
        ArrayPtr array = output.needed >= 0 ? needed[static_cast<size_t>(output.needed)]
                                            : c10::make_intrusive<Array>(output.type, device_,
                                                                         ArrayState::kPending);
        array->made_by = part.step->name();
        array->made_at = output.line;
        made.push_back(array);
        call.outputs.push_back(std::move(array));
      }
      launches.push_back(launch_of(call));
    }
    return launches;
  }

 private:
  struct Output {
    const ArrayType* type;
    const char* line;
    int needed;
  };
  struct Part {
    std::shared_ptr<Step> step;
    size_t words;
    c10::SmallVector<uint32_t, 4> inputs;
    c10::SmallVector<Output, 2> outputs;
  };
  std::vector<Part> parts_;
  int device_ = 0;
};

int64_t bytes_of(std::span<const Call> calls) {
  int64_t bytes = 0;
  for (const Call& call : calls)
    bytes += bytes_of(std::span<const ArrayPtr>(call.outputs.data(), call.outputs.size()));
  return bytes;
}

void run_group(std::span<Call> calls, FlushReason reason) {
  Recorder& r = recorder();
  ++r.stats.groups;
  GroupShape shape(calls);
  r.stats.values_kept_out += static_cast<int64_t>(shape.made() - shape.needed().size());
  r.stats.bytes_kept_out += bytes_of(calls) - bytes_of(shape.needed());
  if (shape.needed().empty()) return;  // nobody will ever look
  if (r.groups.size() >= kMaxGroups) r.groups.clear();
  Group& group = r.groups[shape.key()];
  if (reason != FlushReason::kIdle) ++group.sightings;  // where an idle moment cuts is chance
  const auto without = static_cast<size_t>(std::count_if(
      calls.begin(), calls.end(), [](const Call& c) { return !c.step->has_ready_program(); }));
  if (group.program == nullptr && calls.size() > 1) {
    const ir::Graph graph = shape.graph();
    // A program on disk is as good as one in memory. Else compile at once what is cheaper fused than apart, and what has
    // come up again.
    const bool worth = without * kCallsPerCompile >= calls.size() || group.sightings >= kSightings;
    try {
      group.program =
          obtain(calls, graph, worth && reason != FlushReason::kIdle && !no_compile_expected());
    } catch (const stablehlo::BuildError& error) {  // our mistake, and the calls can do without
      TORCH_WARN_ONCE("torch.tpu: ", group_name(calls), " could not be fused: ", error.what());
    }
    if (group.program != nullptr) ++r.stats.compiled_groups;
  }
  if (group.program == nullptr && without > 0 && no_compile_expected()) {
    return fail(shape.needed(),
                "torch.tpu.expect_no_compile(): the recorded " + group_name(calls) +
                    " need programs that are neither in memory nor in the disk cache");
  }
  const bool usable = group.program != nullptr && group.program->state != Program::State::kFailed;
  if (group.program != nullptr && !usable) {
    TORCH_WARN_ONCE("torch.tpu: the fused program of ", group_name(calls),
                    " could not be compiled; its operators run one by one. ",
                    group.program->error.message);
  }
  if (!usable || (group.program->state == Program::State::kCompiling && without == 0)) {
    shape.externals().clear();
    return run_apart(calls);
  }
  ++r.stats.fused;
  if (group.recipe == nullptr || tracebacks()) {  // lines differ from time to time
    group.recipe = std::make_shared<Recipe>(calls, shape);
  }
  Launch launch;
  launch.program = group.program;
  launch.op = group.program->name.c_str();
  for (ArrayPtr& external : shape.externals()) launch.inputs.push_back(std::move(external));
  launch.outputs.append(shape.needed().begin(), shape.needed().end());
  std::vector<uint32_t> words;
  for (Call& call : calls) words.insert(words.end(), call.words.begin(), call.words.end());
  add_words(launch.inputs, words, launch.outputs.front()->device);
  about_to_launch({launch.outputs.data(), launch.outputs.size()});
  for (Call& call : calls) {
    call.inputs.clear();
    call.outputs.clear();
  }
  launch.apart = [recipe = group.recipe, words = std::move(words)](
                     std::span<ArrayPtr> externals, std::span<const ArrayPtr> needed) {
    return recipe->launches(externals, needed, words);
  };
  launch_quietly(std::move(launch));
}

}  // namespace

Step::Step(ir::Graph graph, std::string text, const char* name, ProgramTraits traits,
           stablehlo::Precision precision)
    : graph_(std::move(graph)),
      text_(std::move(text)),
      name_(name),
      traits_(traits),
      precision_(precision) {
  ir::KeyHasher hasher;
  hasher.add_bytes(text_);
  hasher.add(static_cast<uint64_t>(traits_.user_options));
  content_ = hasher.finish().lo;
}

Program* Step::obtain(bool may_compile) {
  if (program_ != nullptr) return program_;
  program_ = ProgramCache::get().obtain(text_, name_, donated_inputs(graph_), traits_, may_compile);
  if (program_ != nullptr) text_ = {};
  return program_;
}

void record(const std::shared_ptr<Step>& step, std::span<ArrayPtr> inputs,
            std::span<const ArrayPtr> outputs, std::span<const uint32_t> words) {
  Recorder& r = recorder();
  ++r.stats.calls;
  ++r.total;
  if (r.calls.empty()) expect_idleness();
  const size_t length = r.calls.size() - (r.cuts.empty() ? 0 : r.cuts.back());
  if (length > 0 && belongs_apart(r.calls.back(), *step, outputs.front()->device)) [[unlikely]]
    r.cuts.push_back(r.calls.size());
  Call& call = r.calls.emplace_back();
  call.step = step;
  for (ArrayPtr& input : inputs) call.inputs.push_back(std::move(input));
  for (const ArrayPtr& output : outputs) {
    output->state.store(ArrayState::kRecorded, std::memory_order_release);
    output->former.reset();  // only launches can put it back
    output->written_to = 0;
    r.bytes += output->type->bytes;
    call.outputs.push_back(output);
  }
  call.words.append(words.begin(), words.end());
  uint64_t mixed = 0;
  for (int i = 0; i + 1 < kCutWindow; ++i) {
    r.window[static_cast<size_t>(i)] = r.window[static_cast<size_t>(i) + 1];
    mixed = (mixed ^ r.window[static_cast<size_t>(i)]) * kMix;
  }
  r.window.back() = step->content();
  mixed = (mixed ^ step->content()) * kMix;
  if (length + 1 >= kMaxGroup || (length + 1 >= kMinGroup && (mixed >> 32) % kCutEvery == 0))
    r.cuts.push_back(r.calls.size());
  if (r.calls.size() >= kMaxRecorded) [[unlikely]]
    flush(FlushReason::kLength);
  const int64_t limit = memory(outputs.front()->device).limit_bytes();
  if (r.bytes >= (limit > 0 ? std::min(kMaxRecordedBytes, limit / 4) : kMaxRecordedBytes))
      [[unlikely]]
    flush(FlushReason::kBytes);
}

void flush(FlushReason reason) {
  Recorder& r = recorder();
  if (r.calls.empty()) return;
  ++r.stats.flushes[static_cast<size_t>(reason)];
  if (r.cuts.empty() || r.cuts.back() != r.calls.size()) r.cuts.push_back(r.calls.size());
  size_t first = 0;
  for (const size_t end : r.cuts) {
    const std::span calls = std::span(r.calls).subspan(first, end - first);
    try {
      run_group(calls, reason);
    } catch (const std::exception& error) {  // no room for its numbers, say
      for (const Call& call : calls) fail({call.outputs.data(), call.outputs.size()}, error.what());
    }
    first = end;
  }
  r.calls.clear();
  r.cuts.clear();
  r.bytes = 0;
  r.window = {};
}

int64_t calls_so_far() { return recorder().total; }
size_t recorded() { return recorder().calls.size(); }
FusionStats fusion_stats() { return recorder().stats; }
void reset_fusion_stats() { recorder().stats = {}; }

}  // namespace torch_tpu::engine
