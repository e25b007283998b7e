#include "aten/recompiles.h"

#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "aten/fallback.h"

namespace torch_tpu::aten {
namespace {

constexpr size_t kRecentCalls = 8;     // of an operator, that a new one is compared with
constexpr int kKeysUntilWarning = 16;  // that differ in the same parts
constexpr int kWarnings = 5;           // a process

using Parts = std::vector<std::pair<std::string, std::string>>;

struct Difference {
  std::string parts;     // "self.shape[1], other.shape[1]"
  std::string examples;  // "self.shape[1] 17 -> 18"
  size_t count = 0;
};

// In which parts `now` differs from `before`; none where they are not of the same kind.
Difference compare(const Parts& before, const Parts& now) {
  Difference found;
  if (before.size() != now.size()) return found;
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i].first != before[i].first) return {};
    if (now[i].second != before[i].second && now[i].first.ends_with(".dtype")) return {};
    if (now[i].second == before[i].second) continue;
    ++found.count;
    found.parts += (found.count == 1 ? "" : ", ") + now[i].first;
    found.examples += (found.count == 1 ? "" : ", ") + now[i].first + " " + before[i].second +
                      " -> " + now[i].second;
  }
  return found;
}

struct History {
  std::deque<Parts> recent;
  std::map<std::string, int> counts;  // by the parts that differ
  bool warned = false;
};

}  // namespace

void note_new_key(const OpInfo& info, const Stack& stack) {
  static auto* mutex = new std::mutex;
  static auto* histories = new std::unordered_map<const OpInfo*, History>;
  static int warnings = 0;
  Parts now = key_parts(info, stack);
  std::string message;
  {
    std::lock_guard lock(*mutex);
    History& history = (*histories)[&info];
    if (history.warned || warnings >= kWarnings) return;
    Difference nearest;
    for (const Parts& before : history.recent) {
      Difference difference = compare(before, now);
      if (difference.count > 0 && (nearest.count == 0 || difference.count <= nearest.count))
        nearest = std::move(difference);
    }
    history.recent.push_back(std::move(now));
    if (history.recent.size() > kRecentCalls) history.recent.pop_front();
    if (nearest.count == 0 || ++history.counts[nearest.parts] < kKeysUntilWarning) return;
    history.warned = true;
    ++warnings;
    message = "torch.tpu: " + overload_name(info.handle.schema()) + " has needed a new program " +
              std::to_string(kKeysUntilWarning) + " times because of " + nearest.parts +
              " (last: " + nearest.examples +
              "). Each new value may cost a compilation: pad to a few sizes where you can. "
              "torch.tpu.compile_stats() counts them";
    if (warnings == kWarnings) message += ". Further warnings of this kind are not shown";
  }
  warn(message);
}

}  // namespace torch_tpu::aten
