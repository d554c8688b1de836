// Runs in the guest: passes its input to slalom, one buffer at a time, and an empty buffer at the end. A
// serial port needs thousands of instructions for each byte, and carries only text.
#include <unistd.h>

#include "guest/slalom.h"

static char buffer[1 << 16];

int main(void) {
  for (;;) {
    const long size = read(0, buffer, sizeof buffer);
    if (size < 0) return 1;
    slalom_call(SLALOM_OUTPUT, 0, (long)buffer, size);
    if (size == 0) return 0;
  }
}
