// What accesses.cc knows of a thread, for those who give a thread's storage to another one.
#pragma once

#include <cstdint>

namespace slalom::preload {

void forget_accesses();  // the calling thread is a new one
uint32_t call_depth();   // how deep it is in functions that were built with -fsanitize=thread
void set_call_depth(uint32_t depth);

}  // namespace slalom::preload
