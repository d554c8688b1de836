// Local APIC, IO-APIC, NMI, and messages between CPUs. With one CPU, the part about other CPUs is left out.
#include "smp.h"

namespace {

constexpr unsigned kLow = 0x50, kMiddle = 0x60, kHigh = 0x80;
constexpr uint32_t kToSelf = 0x40000, kToOthers = 0xc0000;

volatile unsigned order[8], arrived;
bool bit(unsigned registers, unsigned vector) {
  return (apic(registers + vector / 32 * 0x10) >> (vector % 32)) & 1;
}
void let_in() {
  asm volatile("sti; nop; nop; cli");
}

void note(Frame* frame) {
  if (arrived < 8) order[arrived] = static_cast<unsigned>(frame->vector);
  ++arrived;
  apic(kEndOfInterrupt) = 0;
}

void basics() {
  check("APIC base", read_msr(0x1b) & 0xfffff900, 0xfee00900);
  check("APIC id of the first CPU", this_cpu(), 0);
  check("APIC version", (apic(0x30) & 0xff) >= 0x10, 1);
  apic(kSpurious) = 0x1ff;
  apic(kTaskPriority) = 0;
  hooks[kLow] = hooks[kMiddle] = hooks[kHigh] = note;
  send(0, kToSelf | kMiddle);
  check("IF off: it waits", arrived, 0);
  check("... as requested", bit(kRequested, kMiddle), 1);
  let_in();
  check("IF on: it comes", arrived, 1);
  check("... no longer requested", bit(kRequested, kMiddle), 0);
  check("... nor in service", bit(kInService, kMiddle), 0);
}

void priorities() {
  arrived = 0;
  apic(kTaskPriority) = 0x60;
  send(0, kToSelf | kMiddle);
  let_in();
  check("task priority of the same class holds it back", arrived, 0);
  check("processor priority", apic(kProcessorPriority) & 0xf0, 0x60);
  send(0, kToSelf | kHigh);
  let_in();
  check("... but not a higher one", arrived == 1 && order[0] == kHigh, 1);
  word cr8;
  asm volatile("mov %%cr8, %0" : "=r"(cr8));
  check("CR8 is the task priority", cr8, 6);
  asm volatile("mov %0, %%cr8" ::"r"(word{5}));
  check("... the other way round", apic(kTaskPriority), 0x50);
  let_in();
  check("a lower task priority lets it in", arrived == 2 && order[1] == kMiddle, 1);
  apic(kTaskPriority) = 0;
  arrived = 0;
  send(0, kToSelf | kLow);
  send(0, kToSelf | kHigh);
  send(0, kToSelf | kMiddle);
  asm volatile("sti; nop; nop; nop; nop; cli");
  check("the highest first", order[0] == kHigh && order[1] == kMiddle && order[2] == kLow, 1);
  // Within a handler only interrupts of higher priority arrive.
  arrived = 0;
  hooks[kMiddle] = [](Frame*) {
    check("in service", bit(kInService, kMiddle), 1);
    check("processor priority in the handler", apic(kProcessorPriority), kMiddle & 0xf0);
    send(0, kToSelf | kLow);
    send(0, kToSelf | kHigh);
    let_in();
    check("a higher one interrupts the handler", arrived == 1 && order[0] == kHigh, 1);
    apic(kEndOfInterrupt) = 0;
    let_in();
    check("after its end a lower one comes", arrived == 2 && order[1] == kLow, 1);
  };
  send(0, kToSelf | kMiddle);
  let_in();
  hooks[kMiddle] = note;
  check("all came", arrived, 2);
}

void timer() {
  arrived = 0;
  apic(kDivider) = 0xb;
  apic(kTimer) = kMiddle;
  apic(kInitialCount) = 0xffffffff;
  const uint32_t first = apic(kCurrentCount);
  spend(1000);
  check("timer: counts down", apic(kCurrentCount) < first, 1);
  apic(kInitialCount) = 100000;
  while (arrived == 0) asm volatile("sti; hlt; cli");
  check("timer: once", arrived == 1 && order[0] == kMiddle, 1);
  check("timer: at zero", apic(kCurrentCount), 0);
  apic(kTimer) = 0x20000 | kMiddle;
  apic(kInitialCount) = 50000;
  while (arrived < 6) asm volatile("sti; hlt; cli");
  check("timer: periodic", arrived, 6);
  apic(kTimer) = 0x10000 | kMiddle;  // masked, and once again
  let_in();
  arrived = 0;
  apic(kInitialCount) = 1000;
  while (apic(kCurrentCount) != 0) {
  }
  let_in();
  check("timer: masked", arrived, 0);
  apic(kInitialCount) = 0;
}

volatile unsigned nmis, nested_nmis;

void non_maskable() {
  hooks[NMI] = [](Frame* frame) {
    ++nmis;
    if (nmis > 1) return;
    send(0, 0x400);  // another one, which must wait for IRET
    spend(1000);
    nested_nmis = nmis;
    check("NMI: saved IF is off", frame->flags & 0x200, 0);
  };
  send(0, 0x400);
  spend(1000);
  check("NMI comes with IF off", nmis, 2);
  check("NMI does not nest", nested_nmis, 1);
  hooks[NMI] = nullptr;
}

uint32_t io_read(unsigned index) {
  at<uint32_t>(0xfec00000) = index;
  return at<uint32_t>(0xfec00010);
}
void io_write(unsigned index, uint32_t value) {
  at<uint32_t>(0xfec00000) = index;
  at<uint32_t>(0xfec00010) = value;
}
void route(unsigned pin, uint32_t low, unsigned cpu) {
  io_write(0x11 + 2 * pin, cpu << 24);
  io_write(0x10 + 2 * pin, low);
}
void one_shot(unsigned count) {
  out8(0x43, 0x30);
  out8(0x40, static_cast<uint8_t>(count));
  out8(0x40, static_cast<uint8_t>(count >> 8));
}

void io_apic() {
  check("IO-APIC: pins", (io_read(1) >> 16) & 0xff, 23);
  check("IO-APIC: masked at first", io_read(0x14) & 0x10000, 0x10000);
  arrived = 0;
  route(2, kMiddle, 0);
  check("IO-APIC: reads back", io_read(0x14) & 0x1efff, kMiddle);
  one_shot(3000);
  while (arrived == 0) asm volatile("sti; hlt; cli");
  check("IO-APIC: the timer's pin", arrived == 1 && order[0] == kMiddle, 1);
  route(2, 0x10000 | kMiddle, 0);
  one_shot(1000);
  spend(2000000);
  let_in();
  check("IO-APIC: masked", arrived, 1);
}

// --- the other CPU ---

volatile unsigned other_id, other_got, other_nmis, counter, finished;
volatile bool other_stop;

void other_cpu() {
  apic(kSpurious) = 0x1ff;
  apic(kTaskPriority) = 0;
  apic(kLogicalDestination) = 0x02000000;
  other_id = this_cpu();
  while (!other_stop) asm volatile("sti; hlt; cli");
  for (unsigned i = 0; i < 10000; ++i) asm volatile("lock incl %0" : "+m"(counter));
  finished = 1;
}

void others() {
  static volatile unsigned got_by;
  hooks[kHigh] = [](Frame*) {
    got_by = this_cpu();
    ++other_got;
    apic(kEndOfInterrupt) = 0;
  };
  hooks[NMI] = [](Frame*) { ++other_nmis; };
  apic(kLogicalDestination) = 0x01000000;
  other_id = 99;
  start_cpu(1, other_cpu);
  while (other_id == 99) asm volatile("pause");
  check("INIT and SIPI start the other CPU", other_id, 1);
  const auto wait = [](volatile unsigned& value, unsigned wanted) {
    for (unsigned i = 0; i < 100000000 && value != wanted; ++i) asm volatile("pause");
    return value;
  };
  spend(100000);
  send(1, kHigh);
  check("a message wakes it", wait(other_got, 1), 1);
  check("... it alone", got_by, 1);
  send(0, kToOthers | kHigh);
  check("to all others", wait(other_got, 2), 2);
  send(2, 0x800 | kHigh);
  check("by logical destination", wait(other_got, 3), 3);
  check("... it alone", got_by, 1);
  spend(100000);
  send(1, 0x400);
  check("NMI to it", wait(other_nmis, 1), 1);
  route(2, kHigh, 1);
  one_shot(1000);
  check("IO-APIC to it", wait(other_got, 4), 4);
  check("... it alone", got_by, 1);
  route(2, 0x10000, 0);
  // A second SIPI without INIT has no effect.
  send(1, 0x4608);
  send(1, kHigh);
  check("a second SIPI is ignored", wait(other_got, 5), 5);
  other_stop = true;
  send(1, kHigh);
  for (unsigned i = 0; i < 10000; ++i) asm volatile("lock incl %0" : "+m"(counter));
  check("both counted", (wait(finished, 1), wait(counter, 20000)), 20000);
  // INIT stops it in any state. It can be started again.
  finished = 0;
  start_cpu(1, other_cpu);
  check("started again", wait(finished, 1), 1);
}

bool cpuid_has_apic() {
  uint32_t a = 1, b, c, d;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
  return (d >> 9) & 1;
}
word read_cr8() {
  word value;
  asm volatile("mov %%cr8, %0" : "=r"(value));
  return value;
}
void write_cr8(word value) {
  asm volatile("mov %0, %%cr8" ::"r"(value));
}

// The last test, because QEMU cannot enable an APIC again.
void disabled() {
  constexpr uint64_t kEnable = 0x800;
  check("CPUID: an APIC", cpuid_has_apic(), 1);
  write_cr8(7);
  write_msr(0x1b, read_msr(0x1b) & ~kEnable);
  check("disabled: the base register says so", read_msr(0x1b) & kEnable, 0);
  check("disabled: CPUID has no APIC", cpuid_has_apic(), 0);
  check("disabled: CR8 is as it was", read_cr8(), 7);
  write_cr8(13);
  check("disabled: CR8 can be written", read_cr8(), 13);
  if (under_slalom()) check("disabled: no registers in memory", apic(kTaskPriority), 0xffffffff);
  // The PIC's interrupts then reach the CPU directly, whatever the priority.
  arrived = 0;
  hooks[kLow] = [](Frame*) {
    ++arrived;
    out8(0x20, 0x20);
  };
  out8(0x20, 0x11);
  out8(0x21, kLow);
  out8(0x21, 4);
  out8(0x21, 1);
  out8(0x21, 0xfe);
  one_shot(3000);
  while (arrived == 0) asm volatile("sti; hlt; cli");
  check("disabled: the PIC interrupts", arrived, 1);
  out8(0x21, 0xff);
  if (!under_slalom()) return;
  write_msr(0x1b, read_msr(0x1b) | kEnable);
  check("enabled again: CPUID has an APIC", cpuid_has_apic(), 1);
  check("enabled again: its task priority is CR8", apic(kTaskPriority), 0xd0);
}

}  // namespace

void run_tests() {
  basics();
  priorities();
  timer();
  non_maskable();
  io_apic();
  if (cpu_count() > 1) others();
  disabled();
}
