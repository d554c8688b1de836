// Ports of hardware that this machine does not have, and that kernels probe for. Reads give all ones, writes
// go nowhere: that is what an empty bus does, and what the probes expect. Any other port without a device
// stops the machine, so that a kernel which needs more is not misled: whoever adds a line here says who
// probes.
#pragma once

#include <cstdint>

namespace slalom::vm {

struct AbsentPorts {
  uint16_t first;
  uint16_t last;
  const char* what;
};

// Null: nothing is known about that port.
const AbsentPorts* find_absent(uint16_t port);

}  // namespace slalom::vm
