// The compile options of programs, and where each comes from.
#pragma once

#include <map>
#include <string>

#include "pjrt/compile_options.h"

namespace torch_tpu::engine {

// What a program is like and what the user asked for, as far as its options depend on it.
struct ProgramTraits {
  bool many_equal_kernels =
      false;  // one update for each of many tensors (foreach and fused optimizers)
  bool only_short_trailing_reductions = false;  // lowering::ModuleTraits
  int user_options = 0;                         // a set of XLA options from intern_user_options
};

pjrt::CompileOptions compile_options(const ProgramTraits& traits);

// XLA options by name, which override ours; values as in XLA_FLAGS. Equal sets have equal numbers, the empty set has 0. Throws ValueError for
// an option that the plugin's compiler does not take; compiles a small program to find out.
int intern_user_options(const std::map<std::string, std::string>& options);
// The set for programs that the calling thread asks for: its own where it has one, else the process's.
int user_options();
void set_process_user_options(int set);
// -1 returns to the process's. Returns the previous setting of this thread.
int set_thread_user_options(int set);

}  // namespace torch_tpu::engine
