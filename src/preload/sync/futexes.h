// The futex system call, in the model.
#pragma once

#include <cstdint>

namespace slalom::preload {

// As the kernel would answer: a negative errno value where it fails.
long futex(const long (&arguments)[6], uint64_t pc);

}  // namespace slalom::preload
