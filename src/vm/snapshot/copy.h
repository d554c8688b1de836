// Makes a second machine in the same state, for workers that start from there.
#pragma once

#include "base/result.h"
#include "vm/boot/boot.h"

namespace slalom::vm {

Result<Booted> copy_of(const Booted& machine);

}  // namespace slalom::vm
