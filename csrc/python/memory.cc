// Memory history and snapshots, in the form that PyTorch's memory visualiser reads.
#include "python/memory.h"

#include <ATen/core/CachingHostAllocator.h>
#include <torch/csrc/profiler/combined_traceback.h>

#include <map>
#include <unordered_map>

#include "device/current.h"
#include "device/host_allocator.h"
#include "engine/client.h"
#include "engine/engine.h"
#include "engine/memory.h"
#include "engine/memory_history.h"

namespace py = pybind11;

namespace torch_tpu {
namespace {

namespace history = engine::history;
using NoGil = py::call_guard<py::gil_scoped_release>;

constexpr const char* kOperatorFile =
    "torch.tpu";  // the "file" of the frame that names the operator
constexpr const char* kOthers = "kept by the engine (scalars, constants, work in flight)";

history::Stack gather_stack() {
  return torch::CapturedTraceback::gather(/*python=*/true, /*script=*/false, /*cpp=*/false);
}

// One array of a snapshot.
struct Block {
  uint64_t address = 0;
  int64_t bytes = 0;
  uint64_t data_ptr = 0;  // of a storage that holds it
  const char* op = "";
  history::Stack stack;
};

struct DeviceSnapshot {
  std::vector<Block> blocks;  // by address
  std::vector<history::Event> events;
};

DeviceSnapshot take(int device, bool with_events) {
  engine::drain();
  DeviceSnapshot snapshot;
  std::map<uint64_t, Block> blocks;
  int64_t bytes = 0;
  {
    std::lock_guard lock(engine::engine_mutex());
    engine::for_each_slot([&](const engine::Slot& slot) {
      const engine::ArrayPtr& value = slot.value;
      if (slot.device != device || !value || value->buffer == nullptr) return;
      Block& block = blocks[value->address];
      if (block.bytes == 0) bytes += value->type->bytes;
      block = {value->address, value->type->bytes, reinterpret_cast<uint64_t>(slot.address),
               value->made_by, value->stack};
    });
    const int64_t others = engine::memory(device).live_bytes() - bytes;
    if (others > 0) {
      const uint64_t address = history::next_address(others);
      blocks[address] = {.address = address, .bytes = others, .op = kOthers};
    }
  }
  for (auto& [address, block] : blocks) snapshot.blocks.push_back(std::move(block));
  if (with_events) {
    if (history::recording()) history::snapshot_taken(device);
    snapshot.events = history::events(device);
  }
  return snapshot;
}

// Frames of stacks, innermost first, read all at once.
class Frames {
 public:
  void want(const history::Stack& stack) {
    if (stack && index_.emplace(stack.get(), stacks_.size()).second) {
      stacks_.push_back(torch::getCapturedTracebackFromContext(stack));
    }
  }
  void read() {
    const torch::SymbolizedTracebacks symbols = torch::symbolize(stacks_);
    std::vector<py::dict> frames;
    for (const auto& symbol : symbols.all_frames)
      frames.push_back(frame_of(symbol.filename, symbol.lineno, symbol.funcname));
    for (const std::vector<uint64_t>& stack : symbols.tracebacks) {
      py::list& list = read_.emplace_back();
      for (const uint64_t i : stack) list.append(frames[i]);
    }
  }
  // The operator as the innermost frame, then the stack.
  py::list of(const char* op, const history::Stack& stack) const {
    py::list frames;
    if (*op != '\0') frames.append(frame_of(kOperatorFile, 0, op));
    if (stack) {
      for (const py::handle frame : read_.at(index_.at(stack.get()))) frames.append(frame);
    }
    return frames;
  }

 private:
  static py::dict frame_of(const std::string& file, uint64_t line, const std::string& name) {
    py::dict frame;
    frame["filename"] = file;
    frame["line"] = line;
    frame["name"] = name;
    return frame;
  }

  std::unordered_map<const c10::GatheredContext*, size_t> index_;
  std::vector<torch::CapturedTraceback*> stacks_;
  std::vector<py::list> read_;
};

py::dict segment_of(int device, const Block& block, const Frames& frames) {
  const py::list stack = frames.of(block.op, block.stack);
  py::dict inner;
  inner["address"] = block.address;
  inner["size"] = block.bytes;
  inner["requested_size"] = block.bytes;
  inner["state"] = "active_allocated";
  inner["frames"] = stack;
  inner["operator"] = block.op;
  inner["data_ptr"] = block.data_ptr;
  py::list blocks;
  blocks.append(inner);
  py::dict segment;
  segment["device"] = device;
  segment["address"] = block.address;
  for (const char* size : {"total_size", "allocated_size", "active_size", "requested_size"})
    segment[size] = block.bytes;
  segment["stream"] = 0;
  segment["segment_type"] = block.bytes < engine::kSmallestLargeArray ? "small" : "large";
  segment["segment_pool_id"] = py::make_tuple(0, 0);
  segment["is_expandable"] = false;
  segment["frames"] = stack;
  segment["blocks"] = blocks;
  return segment;
}

void append_event(py::list& out, const history::Event& event, const Frames& frames) {
  const auto append = [&](const char* action) {
    py::dict entry;
    entry["action"] = action;
    if (event.action == history::Action::kOutOfMemory) {
      entry["device_free"] = event.device_free;
    } else {
      entry["addr"] = event.address;
    }
    entry["size"] = event.bytes;
    entry["stream"] = 0;
    entry["time_us"] = event.time_us;
    entry["frames"] = frames.of(event.op, event.stack);
    entry["operator"] = event.op;
    entry["compile_context"] = "N/A";
    entry["user_metadata"] = event.metadata ? *event.metadata : std::string();
    entry["pool_id"] = py::make_tuple(0, 0);
    out.append(entry);
  };
  switch (event.action) {
    case history::Action::kAllocated:
      return append("alloc");
    case history::Action::kFreed:  // nothing is freed late: both of CUDA's events in one moment
      append("free_requested");
      return append("free_completed");
    case history::Action::kOutOfMemory:
      return append("oom");
    case history::Action::kSnapshot:
      return append("snapshot");
  }
}

py::dict memory_snapshot(bool with_events) {
  std::vector<DeviceSnapshot> devices;
  {
    const py::gil_scoped_release release;
    for (int i = 0; i < engine::device_count(); ++i) devices.push_back(take(i, with_events));
  }
  Frames frames;
  for (const DeviceSnapshot& device : devices) {
    for (const Block& block : device.blocks) frames.want(block.stack);
    for (const history::Event& event : device.events) frames.want(event.stack);
  }
  frames.read();
  py::list segments, traces;
  for (size_t i = 0; i < devices.size(); ++i) {
    for (const Block& block : devices[i].blocks)
      segments.append(segment_of(static_cast<int>(i), block, frames));
    py::list trace;
    for (const history::Event& event : devices[i].events) append_event(trace, event, frames);
    traces.append(trace);
  }
  py::dict out;
  out["segments"] = segments;
  out["device_traces"] = traces;
  return out;
}

// The frames of the call that made the memory at `data_ptr`, or None.
py::object allocation_traceback(uintptr_t data_ptr) {
  engine::ArrayPtr value;
  {
    const py::gil_scoped_release release;
    engine::drain();
    std::lock_guard lock(engine::engine_mutex());
    const engine::Slot* slot = engine::find_slot(reinterpret_cast<const void*>(data_ptr));
    if (slot != nullptr && reinterpret_cast<uintptr_t>(slot->address) == data_ptr)
      value = slot->value;
  }
  if (!value || !value->stack) return py::none();
  Frames frames;
  frames.want(value->stack);
  frames.read();
  return frames.of(value->made_by, value->stack);
}

py::dict host_memory_stats() {
  const at::HostStats stats = device::host_allocator()->get_stats();
  const auto quantity = [](const c10::CachingAllocator::Stat& stat) {
    py::dict out;
    out["current"] = stat.current;
    out["peak"] = stat.peak;
    out["allocated"] = stat.allocated;
    out["freed"] = stat.freed;
    return out;
  };
  py::dict out;
  out["allocations"] = quantity(stats.allocations);
  out["allocated_bytes"] = quantity(stats.allocated_bytes);
  out["active_requests"] = quantity(stats.active_requests);
  out["active_bytes"] = quantity(stats.active_bytes);
  out["num_host_alloc"] = stats.num_host_alloc;
  out["num_host_free"] = stats.num_host_free;
  return out;
}

}  // namespace

void bind_memory(py::module_& m) {
  history::set_gatherer(&gather_stack);
  m.def("drain", &engine::drain, NoGil());
  m.def("set_memory_fraction", [](int index, double fraction) {
    const auto total = static_cast<double>(engine::device_memory_bytes(index));
    // A limit of 0 is none at all.
    engine::memory(index).set_limit_bytes(
        std::max<int64_t>(static_cast<int64_t>(fraction * total), 1));
  });
  m.def("memory_snapshot", &memory_snapshot, py::arg("with_events"));
  m.def(
      "start_memory_history",
      [](bool events, int stacks, size_t max_events, bool clear) {
        history::start({events, static_cast<history::Stacks>(stacks), max_events}, clear);
      },
      NoGil());
  m.def("stop_memory_history", &history::stop);
  m.def("set_memory_metadata", &history::set_metadata);
  m.def("memory_metadata", &history::metadata);
  m.def("allocation_traceback", &allocation_traceback);
  m.def("host_memory_stats", &host_memory_stats);
  m.def("reset_peak_host_memory_stats", [] { device::host_allocator()->reset_peak_stats(); });
  m.def("reset_accumulated_host_memory_stats",
        [] { device::host_allocator()->reset_accumulated_stats(); });
}

}  // namespace torch_tpu
