#include "smp.h"

extern "C" {
extern char smp_trampoline[], smp_trampoline_end[], boot_gdt[];
volatile uint32_t smp_stack;
void smp_main();
}

namespace {

alignas(16) char stacks[8][0x2000];
Function volatile function_to_run;
volatile bool started;

}  // namespace

unsigned cpu_count() {
  uint32_t a = 1, b, c, d;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
  const unsigned count = (b >> 16) & 0xff;
  return (d >> 28 & 1) == 0 || count == 0 ? 1 : count;
}

void send(unsigned target, uint32_t command) {
  apic(kCommandTarget) = target << 24;
  apic(kCommand) = command;
  while (apic(kCommand) & 0x1000) {
  }
}

void start_cpu(unsigned id, Function function) {
  for (long i = 0; i < smp_trampoline_end - smp_trampoline; ++i)
    at<char>(0x8000 + static_cast<word>(i)) = smp_trampoline[i];
  smp_stack = static_cast<uint32_t>(reinterpret_cast<word>(stacks[id] + sizeof stacks[id]));
  function_to_run = function;
  started = false;
  send(id, 0x4500);  // INIT
  spend(1000000);
  send(id, 0x4608);  // start at 0x8000
  while (!started) asm volatile("pause");
}

void smp_main() {
  struct [[gnu::packed]] {
    uint16_t limit;
    word base;
  } table = {256 * 16 - 1, reinterpret_cast<word>(idt)};
  asm volatile("lidt %0" ::"m"(table));
  const Function function = function_to_run;
  started = true;
  function();
}
