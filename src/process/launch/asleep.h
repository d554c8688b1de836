// Sleeper: the thread of an execution that sleeps in a system call, although it is its turn. All others wait
// for theirs, in the Channel. Asked from /proc while nothing happens; where that cannot be read nobody is
// found.
//
// Not for threads that wait as the model of the threading API has them wait: those give their turn away.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "preload/protocol.h"

namespace slalom {

struct Sleeper {
  std::string where;     // the thread, the call and its arguments, as the kernel has them
  std::string what;      // "in msgrcv()", in words for the user
  bool limited = false;  // the call has a time limit of its own, perhaps
};

// `channel`: where it is in the process.
std::optional<Sleeper> find_sleeper(pid_t process, preload::Range channel);

}  // namespace slalom
