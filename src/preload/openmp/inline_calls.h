// System calls that a library makes with a syscall instruction instead of a call of libc. OpenMP's library
// (libgomp) waits on futexes this way, which preloading cannot intercept.
#pragma once

#include <link.h>

namespace slalom::preload {

// Redirects the system calls of the module to the runtime, if it is libgomp.
void take_inline_calls(const dl_phdr_info& module);
void take_all_inline_calls();  // in all loaded modules

// The object that waits in such calls are for, in reports. The running thread sets it around its call of
// libgomp. 0 means the word of memory itself.
extern constinit thread_local uint64_t inline_wait_object;

}  // namespace slalom::preload
