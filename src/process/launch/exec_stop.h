// Stops a child just after its exec, before the first instruction of the new program. There the random bytes
// that the kernel gives every process (AT_RANDOM) are replaced by fixed ones. glibc derives stack canaries
// and its pointer guard from them, so a program that reads memory that it does not own finds the same bytes
// in every process.
//
// If tracing is forbidden there is no stop, and the program has the kernel's bytes.
#pragma once

#include <sys/types.h>

namespace slalom {

// Call in the child. Returns whether it will stop. If so, its parent must call pass_exec_stop() in the thread
// that forked.
bool ask_for_exec_stop();

// Waits until the child has stopped after its exec, and resumes it. If the child has ended, leaves it to
// waitpid().
void pass_exec_stop(pid_t child);

}  // namespace slalom
