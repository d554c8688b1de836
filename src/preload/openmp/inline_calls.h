// System calls that a library makes with an instruction of its own, instead of asking libc: OpenMP's
// (libgomp) waits by futexes so, and nothing can be preloaded for that.
#pragma once

#include <link.h>

namespace slalom::preload {

// Has the calls of that module come here, if it is one of those.
void take_inline_calls(const dl_phdr_info& module);
void take_all_inline_calls();  // of all that are loaded

// What waits that such a call makes are about, for reports: the running thread sets it around what it calls.
// 0: the word of memory itself.
extern constinit thread_local uint64_t inline_wait_object;

}  // namespace slalom::preload
