// Stacks: the frames of a process's threads, from the call frame information of its files.
//
// Threads are stopped (ptrace) only while they are looked at; they should wait anyway, and system calls in
// which they wait are made again. Where this process may not trace others, no thread has frames. Reading is
// libdwfl's. Not for several threads at once, nor for code in modules that were loaded after the first look.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "symbols/dwarf/dwarf.h"

namespace slalom {

class Stacks {
 public:
  explicit Stacks(pid_t process);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  // From the innermost one outwards, without the outermost one, whose caller is not known.
  std::vector<StackFrame> frames(pid_t thread);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace slalom
