// What a thread asks to be watched, and where the user's code is when something happens.
#pragma once

#include <string>

namespace torch_tpu::engine {

// The values that programs check on the device.
struct ValueChecks {
  bool ranges = false;            // debug mode: indices and their like
  bool nan = false, inf = false;  // torch.tpu.debug.detect_anomalies()
  static constexpr int kCodes = 8;
  int code() const { return (ranges ? 1 : 0) + (nan ? 2 : 0) + (inf ? 4 : 0); }
};
ValueChecks value_checks();  // of the calling thread
// Looks for NaN (1), infinities (2) or both in this thread; returns the previous setting.
int set_thread_anomalies(int flags);

// Whether a call of this thread that needs a program to be compiled must raise.
bool no_compile_expected();
bool set_no_compile_expected(bool expected);  // returns the previous setting

// The user's line, "train.py:12 in forward", interned for the process; set by the Python module. `backward` says what it
// belongs to while a backward runs. Both may take Python's lock: never call them with the engine's mutex held.
struct LocationSource {
  const char* (*line)() = nullptr;
  std::string (*backward)() = nullptr;
};
void set_location_source(LocationSource source);
// TORCH_TPU_TRACEBACKS=1, or set here: each operator's results remember the line that made them.
bool tracebacks();
bool set_tracebacks(bool enabled);  // returns the previous setting
const char* recorded_line();        // the line where tracebacks are on, else null
// For an error raised now: "\n  at train.py:12 in forward", empty where nothing is known.
std::string where_now();

}  // namespace torch_tpu::engine
