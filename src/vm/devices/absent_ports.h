// Ports of hardware that this machine does not have but kernels probe. Reads return all ones and writes are
// ignored, as on an empty bus, which is what the probes expect. Any other port without a device stops the
// machine, so that a kernel that needs the device is not misled. Each entry must name the kernel that probes
// it.
#pragma once

#include <cstdint>

namespace slalom::vm {

struct AbsentPorts {
  uint16_t first;
  uint16_t last;
  const char* what;
};

// nullptr if the port is not listed.
const AbsentPorts* find_absent(uint16_t port);

}  // namespace slalom::vm
