// Sleeper: a thread of an execution that sleeps in a system call although it has the turn. All other threads
// wait for their turns in the Channel. Read from /proc while nothing happens; none is found if /proc cannot
// be read.
//
// Not for threads that wait in the model of the threading API, because those give their turn away.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "preload/protocol.h"

namespace slalom {

struct Sleeper {
  std::string where;     // the thread, the call and its arguments, as the kernel reports them
  std::string what;      // text for the user, such as "in msgrcv()"
  bool limited = false;  // the call may have a time limit of its own
};

// `channel` is the Channel's address range in the process.
std::optional<Sleeper> find_sleeper(pid_t process, preload::Range channel);

}  // namespace slalom
