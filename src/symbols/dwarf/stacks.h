// Stacks: finds the frames of a process's threads, from the call frame information of its files.
//
// Stops a thread (ptrace) only while it reads the thread's stack. The thread should be waiting, and restarts
// the system call in which it waits. If this process may not trace others, no thread has frames. libdwfl
// unwinds the stacks. Not for several threads at once, nor for code in modules that were loaded after the
// first look.
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

  // Returns the frames from the innermost one outwards, without the outermost one, whose caller is unknown.
  std::vector<StackFrame> frames(pid_t thread);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace slalom
