// Runs in the guest: hands what it reads to slalom, a buffer at a time, and an empty one at the end. A serial
// line takes thousands of instructions for every byte, and can carry text only.
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
