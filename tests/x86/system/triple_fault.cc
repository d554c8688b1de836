// A CPU that cannot deliver a double fault shuts down, and the machine is reset.
#include "bare.h"

void run_tests() {
  print("done 0\n");
  struct [[gnu::packed]] {
    uint16_t limit;
    word base;
  } table = {0, 0};
  asm volatile("lidt %0; int3" ::"m"(table));
}
