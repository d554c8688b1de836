// A second machine that is equal to the first: for workers that start where it stands.
#pragma once

#include "base/result.h"
#include "vm/boot/boot.h"

namespace slalom::vm {

Result<Booted> copy_of(const Booted& machine);

}  // namespace slalom::vm
