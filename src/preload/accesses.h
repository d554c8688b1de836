// Memory accesses, for those who tell of them on behalf of code that is not instrumented (libc's functions,
// the heap), and for those who give a thread's storage to another one.
#pragma once

#include <cstdint>

#include "trace/op.h"

namespace slalom::preload {

// Where in the user's code an instrumented function is that returns there; cheap.
uint64_t access_place(void* return_address);
// The nearest caller of an instrumented function that is the user's own; `otherwise`: there is none.
[[gnu::noinline]] uint64_t caller_place(uint64_t otherwise);
// Plain accesses to all of a range, about to be made by the running agent. May stop before any of them.
void tell_range(OpKind op, const void* address, uint64_t size, uint64_t pc);

void forget_accesses();  // the calling thread is a new one
uint32_t call_depth();   // how deep it is in functions that were built with -fsanitize=thread
void set_call_depth(uint32_t depth);

}  // namespace slalom::preload
