// The futex system call, in the model.
#pragma once

#include <cstdint>

namespace slalom::preload {

// Returns what the kernel would return: a negative errno value on failure.
long futex(const long (&arguments)[6], uint64_t pc);

}  // namespace slalom::preload
