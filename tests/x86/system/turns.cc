// Two CPUs and an unfair lock: neither may starve the other. The first CPU's loop has 1,000 instructions and
// holds the lock in nearly all of them. The second CPU only tries an XCHG in a loop. If all turns had a
// multiple of 1,000 instructions, they would end at the same place of the first loop, and the second CPU
// would never find the lock free.
#include "smp.h"

namespace {

unsigned rounds = 50;

extern "C" {
volatile unsigned turn_lock, turn_taken, turn_passes;
}

void take_and_give_back() {
  for (unsigned i = 0; i < rounds; ++i) {
    unsigned value = 1;
    do asm volatile("xchgl %0, turn_lock" : "+r"(value)::"memory");
    while (value != 0);
    turn_taken = turn_taken + 1;
    const unsigned passes = turn_passes;
    turn_lock = 0;
    while (turn_passes == passes) asm volatile("pause");  // meanwhile the other CPU has the lock
  }
}

// Runs until the other CPU is done. 1,000 instructions from 1: to the last one.
void hold_most_of_the_time() {
  asm volatile(
      "1: mov $1, %%eax\n"
      "2: xchgl %%eax, turn_lock\n"
      "test %%eax, %%eax\n"
      "jnz 2b\n"
      "incl turn_passes\n"
      "mov $495, %%ecx\n"
      "3: dec %%ecx\n"
      "jnz 3b\n"
      "movl $0, turn_lock\n"
      "nop\n"
      "cmpl %0, turn_taken\n"
      "jb 1b" ::"r"(rounds)
      : "eax", "ecx", "cc", "memory");
}

}  // namespace

void run_tests() {
  if (!under_slalom()) rounds = 0;  // there the host decides which CPU runs, and may be busy
  start_cpu(1, take_and_give_back);
  hold_most_of_the_time();
  check("the other CPU had the lock as often as it wanted", turn_taken, rounds);
}
