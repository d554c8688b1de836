#include "bare.h"

uint64_t gdt[64];
alignas(16) uint64_t idt[512];
alignas(4096) TaskState task_state;
void (*hooks[256])(Frame*);
volatile word user_flags = 2;

extern "C" {
extern char trap_stubs[];
int attempt_raw(Function function);
int attempt_user_raw(Function function);
[[noreturn]] void resume_after_trap();
void on_trap(Frame* frame);
void bare_main(word magic, word information);
// The compiler may generate calls of these.
void* memset(void* to, int value, size_t size) {
  for (size_t i = 0; i < size; ++i) static_cast<volatile char*>(to)[i] = static_cast<char>(value);
  return to;
}
void* memcpy(void* to, const void* from, size_t size) {
  for (size_t i = 0; i < size; ++i) static_cast<volatile char*>(to)[i] = static_cast<const char*>(from)[i];
  return to;
}
}

namespace {

unsigned checks, failures;
Trap last;

void verdict(const char* name, bool good) {
  ++checks;
  if (!good) ++failures;
  print(good ? "ok " : "FAIL ");
  print(name);
}

const Trap& outcome(int trapped) {
  if (trapped == 0 || last.vector == 0x80) last = Trap{};
  return last;
}

}  // namespace

void print(const char* text) {
  for (; *text != 0; ++text) {
    while ((in8(0x3fd) & 0x20) == 0) {
    }
    out8(0x3f8, static_cast<uint8_t>(*text));
  }
}

void print_hex(word value) {
  char text[2 * sizeof(word) + 1];
  unsigned at = sizeof text - 1;
  text[at] = 0;
  do {
    text[--at] = "0123456789abcdef"[value & 15];
    value >>= 4;
  } while (value != 0);
  print(text + at);
}

void check(const char* name, word got, word want) {
  verdict(name, got == want);
  if (got != want) {
    print(" got ");
    print_hex(got);
    print(" want ");
    print_hex(want);
  }
  print("\n");
}

void check_trap(const char* name, const Trap& trap, int vector, word error) {
  const bool good = trap.vector == vector && (vector == kNone || trap.error == error);
  verdict(name, good);
  if (!good) {
    print(" got ");
    if (trap.vector == kNone) {
      print("none");
    } else {
      print_hex(static_cast<word>(trap.vector));
      print("(");
      print_hex(trap.error);
      print(") at ");
      print_hex(trap.ip);
      print(" cr2 ");
      print_hex(trap.cr2);
    }
    print(" want ");
    if (vector == kNone) {
      print("none");
    } else {
      print_hex(static_cast<word>(vector));
      print("(");
      print_hex(error);
      print(")");
    }
  }
  print("\n");
}

void check_strict(const char* name, const Trap& trap, int vector, word error) {
  if (under_slalom()) check_trap(name, trap, vector, error);
}

void finish() {
  print(failures == 0 ? "done " : "FAILED of ");
  print_hex(checks);
  print("\n");
  out32(0xf4, failures == 0 ? 0 : 1);
  for (;;) asm volatile("cli; hlt");
}

bool under_slalom() {
  uint32_t a = 0x80000002, b, c, d;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
  return a == 0x6c616c73;  // "slal", the start of the CPU's name
}

word idt_error(unsigned vector, bool external) {
  // QEMU reports the offset of 64-bit gates instead of their number, and sets "external" only for hardware
  // interrupts.
  if (!under_slalom()) return vector * (k64 ? 16 : 8) + 2;
  return vector * 8 + 2 + (external ? 1 : 0);
}

const Trap& attempt(Function function) {
  return outcome(attempt_raw(function));
}
const Trap& attempt_user(Function function) {
  return outcome(attempt_user_raw(function));
}

void on_trap(Frame* frame) {
  if (hooks[frame->vector & 255] != nullptr) return hooks[frame->vector & 255](frame);
  last = Trap{.vector = static_cast<int>(frame->vector),
              .error = frame->error,
              .ip = frame->ip,
              .cs = frame->cs & 0xffff,
              .flags = frame->flags,
              .sp = frame->sp,
              .ss = frame->ss & 0xffff,
              .cr2 = read_cr2(),
              .frame = *frame};
  if (recovery_stack == 0) {
    check_trap("trap outside of an attempt", last, kNone);
    finish();
  }
  resume_after_trap();
}

uint64_t descriptor(uint32_t base, uint32_t limit, unsigned access, unsigned flags) {
  const uint64_t low = (limit & 0xffff) | base << 16;
  const uint64_t high =
      ((base >> 16) & 0xff) | access << 8 | (limit & 0xf0000) | flags << 20 | (base & 0xff000000);
  return high << 32 | low;
}

uint64_t gate(word offset, uint16_t selector, unsigned access, unsigned extra) {
  const uint64_t high = (offset & 0xffff0000) | access << 8 | extra;
  return high << 32 | (uint32_t{selector} << 16 | (offset & 0xffff));
}

word stub_of(unsigned vector) {
  return reinterpret_cast<word>(trap_stubs) + vector * 16;
}

void set_gate(unsigned vector, word handler, uint16_t selector, unsigned access, unsigned extra) {
  if (k64) {
    idt[2 * vector] = gate(handler, selector, access, extra);
    idt[2 * vector + 1] = static_cast<uint64_t>(handler) >> 32;
  } else {
    idt[vector] = gate(handler, selector, access, extra);
  }
}

void load_tables() {
  struct [[gnu::packed]] {
    uint16_t limit;
    word base;
  } table = {sizeof gdt - 1, reinterpret_cast<word>(gdt)};
  asm volatile("lgdt %0" ::"m"(table));
  table = {static_cast<uint16_t>(256 * 2 * sizeof(word) - 1), reinterpret_cast<word>(idt)};
  asm volatile("lidt %0" ::"m"(table));
#ifdef __x86_64__
  asm volatile("push $8; push $1f; lretq; 1: mov %w0, %%ds; mov %w0, %%es; mov %w0, %%ss" ::"r"(kKernelData)
               : "memory");
#else
  asm volatile(
      "ljmp $8, $1f; 1: mov %w0, %%ds; mov %w0, %%es; mov %w0, %%ss; mov %w0, %%fs; mov %w0, %%gs" ::"r"(
          kKernelData)
      : "memory");
#endif
  gdt[kTask / 8] &= ~(uint64_t{2} << 40);  // not busy
  asm volatile("ltr %w0" ::"r"(kTask) : "memory");
}

void bare_main(word, word) {
  const unsigned wide = k64 ? 0xa : 0xc;
  gdt[1] = descriptor(0, 0xfffff, 0x9a, wide);
  gdt[2] = descriptor(0, 0xfffff, 0x92, 0xc);
  gdt[3] = descriptor(0, 0xfffff, 0xfa, 0xc);
  gdt[4] = descriptor(0, 0xfffff, 0xf2, 0xc);
  gdt[5] = descriptor(0, 0xfffff, 0xfa, 0xa);
  gdt[6] = descriptor(0, 0xfffff, 0x9a, 0xc);
  const word task = reinterpret_cast<word>(&task_state);
  gdt[8] = descriptor(static_cast<uint32_t>(task), sizeof task_state - 1, 0x89, 0);
  gdt[9] = static_cast<uint64_t>(task) >> 32;
  const word stack = reinterpret_cast<word>(trap_stack_top);
  memcpy(task_state.bytes + 4, &stack, sizeof stack);
  if (!k64) task_state.bytes[8] = kKernelData;
  task_state.bytes[102] = 104;  // the I/O permission map starts here; no port is allowed
  for (size_t i = 104; i < sizeof task_state; ++i) task_state.bytes[i] = 0xff;
  for (unsigned vector = 0; vector < 256; ++vector) set_gate(vector, stub_of(vector), kKernelCode, 0x8e);
  set_gate(0x80, stub_of(0x80), kKernelCode, 0xee);
  load_tables();
  // No interrupts from the old controllers until a test enables them. FPU and SSE are set up as by an
  // operating system.
  out8(0x21, 0xff);
  out8(0xa1, 0xff);
  write_cr0((read_cr0() & ~word{0xc}) | 0x22);
  write_cr4(read_cr4() | 0x600);
  asm volatile("fninit");
  run_tests();
  finish();
}
