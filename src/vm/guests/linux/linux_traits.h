// What control of a machine needs to know of a Linux kernel, from version 5.10 on.
#pragma once

#include "vm/control/guest_model.h"

namespace slalom::vm {

const GuestTraits& linux_traits();

}  // namespace slalom::vm
