// The program's random numbers, for functions that read from descriptors.
#pragma once

#include <cstddef>

namespace slalom::preload {

// Returns whether the descriptor is a random device of the system, opened by the program.
bool is_random_device(int descriptor);
void forget_random_device(int descriptor);  // call when it is closed
void fill_random(void* buffer, size_t size);

}  // namespace slalom::preload
