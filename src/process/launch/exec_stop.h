// The stop of a child when it has just executed its program, before the first instruction of that: there the
// random bytes that the kernel gives every process (AT_RANDOM) become the same for all. glibc makes the
// canaries on stacks of them and the guard that it hides pointers with, so a program that reads what it does
// not own finds the same in every process.
//
// Where nobody may trace the child there is no stop, and the program has the kernel's bytes.
#pragma once

#include <sys/types.h>

namespace slalom {

// In the child: will it stop? Then its parent has to pass the stop, in the thread that forked.
bool ask_for_exec_stop();

// Waits until the child has executed its program (and sets it going), or has ended (and leaves it to
// waitpid()).
void pass_exec_stop(pid_t child);

}  // namespace slalom
