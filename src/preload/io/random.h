// Random numbers of the program, for those who read from descriptors.
#pragma once

#include <cstddef>

namespace slalom::preload {

// Is it one of the system's random devices, opened by the program?
bool is_random_device(int descriptor);
void forget_random_device(int descriptor);  // it is closed
void fill_random(void* buffer, size_t size);

}  // namespace slalom::preload
