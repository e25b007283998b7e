#include "engine/memory.h"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "engine/array.h"
#include "engine/client.h"

namespace torch_tpu::engine {
namespace {

constexpr size_t kReportedTensors = 8;

std::string size_text(int64_t bytes) {
  char text[32];
  if (bytes < int64_t{1} << 20) {
    std::snprintf(text, sizeof text, "%.1f KiB", static_cast<double>(bytes) / 1024);
  } else if (bytes < int64_t{1} << 30) {
    std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  } else {
    std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  }
  return text;
}

}  // namespace

int64_t memory_limit_of_environment() {
  const char* text = std::getenv("TORCH_TPU_MEMORY_LIMIT");
  if (text == nullptr || *text == 0) return 0;
  char* end = nullptr;
  const long long bytes = std::strtoll(text, &end, 10);
  TORCH_CHECK_VALUE(*end == 0 && bytes > 0, "TORCH_TPU_MEMORY_LIMIT=", text,
                    " is not a number of bytes");
  return bytes;
}

int64_t device_memory_bytes(int device) {
  if (const int64_t limit = memory_limit_of_environment(); limit > 0) return limit;
  const auto stats = client().devices().at(static_cast<size_t>(device)).memory_stats();
  if (stats.ok() && stats->bytes_limit) return *stats->bytes_limit;
  if (!client().host_visible_memory()) return 0;
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

std::string out_of_memory_report(int device, int64_t wanted) {
  const MemoryCounters& counters = memory(device);
  std::string text = "tpu:" + std::to_string(device) + " is out of memory: " + size_text(wanted) +
                     " more are wanted, " + size_text(counters.live_bytes()) + " are in use";
  if (const int64_t limit = counters.limit_bytes(); limit > 0) {
    text += " of a limit of " + size_text(limit);
  }
  std::vector<ArrayPtr> live = live_arrays(device);
  std::erase_if(live, [](const ArrayPtr& array) { return array->buffer == nullptr; });
  std::sort(live.begin(), live.end(), [](const ArrayPtr& a, const ArrayPtr& b) {
    return std::pair(a->type->bytes, a.get()) > std::pair(b->type->bytes, b.get());
  });
  live.erase(std::unique(live.begin(), live.end()), live.end());
  if (!live.empty()) text += ". The largest tensors:";
  for (size_t i = 0; i < std::min(live.size(), kReportedTensors); ++i) {
    const Array& array = *live[i];
    text += "\n  " + size_text(array.type->bytes) + "  " + type_text(*array.type) + "  made by " +
            (*array.made_by == 0 ? "?" : array.made_by);
    if (array.made_at != nullptr) text += std::string(" at ") + array.made_at;
  }
  if (live.size() > kReportedTensors) {
    text += "\n  and " + std::to_string(live.size() - kReportedTensors) + " more";
  }
  text +=
      "\nWhat helps: a smaller batch, activation checkpointing (torch.utils.checkpoint), bfloat16, "
      "deleting tensors that are no longer needed";
  if (counters.limit_bytes() > 0) {
    text += ", a higher TORCH_TPU_MEMORY_LIMIT or torch.tpu.set_per_process_memory_fraction";
  }
  if (!live.empty() && live.front()->made_at == nullptr) {
    text += ". TORCH_TPU_TRACEBACKS=1 adds the lines that made these tensors";
  }
  return text;
}

}  // namespace torch_tpu::engine
