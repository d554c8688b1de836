// Shared by the bare-metal test programs: output on the serial port, descriptor tables, and attempts. An
// attempt runs a function in ring 0 or 3 until it ends or traps for the first time; the trap is then a value
// to compare.
//
// The same source is used for 32-bit programs (protected mode, paging off) and 64-bit programs (paging on,
// the first 4 GiB mapped one to one). Only one CPU may make attempts.
#pragma once

#include <stddef.h>
#include <stdint.h>

using word = uintptr_t;
inline constexpr bool k64 = sizeof(word) == 8;
#ifdef __x86_64__
#define STACK_POINTER "%%rsp"
#else
#define STACK_POINTER "%%esp"
#endif
// For a label in assembly, declared as extern "C" char label[].
inline word address_of(const char* label) {
  return reinterpret_cast<word>(label);
}

// --- ports ---
inline void out8(uint16_t port, uint8_t value) {
  asm volatile("outb %0, %1" ::"a"(value), "Nd"(port));
}
inline void out32(uint16_t port, uint32_t value) {
  asm volatile("outl %0, %1" ::"a"(value), "Nd"(port));
}
inline uint8_t in8(uint16_t port) {
  uint8_t value;
  asm volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
  return value;
}

// --- reporting ---
void print(const char* text);
void print_hex(word value);
void check(const char* name, word got, word want);
[[noreturn]] void finish();  // the verdict and the end of the program
bool under_slalom();         // QEMU omits some checks, so some tests only run in slalom
word idt_error(unsigned vector, bool external = false);  // the error code for a gate

// --- traps ---
struct Frame {
#ifdef __x86_64__
  word r15, r14, r13, r12, r11, r10, r9, r8, di, si, bp, bx, dx, cx, ax;
#else
  word gs, fs, es, ds, di, si, bp, unused_sp, bx, dx, cx, ax;
#endif
  word vector, error, ip, cs, flags, sp, ss;
#ifndef __x86_64__
  word v86_es, v86_ds, v86_fs, v86_gs;
#endif
};
inline constexpr int kNone = -1;  // it ran to its end
struct Trap {
  int vector = kNone;
  word error = 0, ip = 0, cs = 0, flags = 0, sp = 0, ss = 0, cr2 = 0;
  Frame frame = {};
};
enum Vector { DE, DB, NMI, BP, OF, BR, UD, NM, DF, TS = 10, NP, SS, GP, PF, MF = 16, AC, MC, XM };

using Function = void (*)();
const Trap& attempt(Function function);
const Trap& attempt_user(Function function);
void check_trap(const char* name, const Trap& trap, int vector, word error = 0);
// The same for checks that QEMU is known to omit.
void check_strict(const char* name, const Trap& trap, int vector, word error = 0);
// Handlers that return to the trapped instruction instead of ending the attempt.
extern void (*hooks[256])(Frame*);
extern volatile word user_flags;  // flags of attempt_user; IF is off

// --- descriptor tables ---
inline constexpr uint16_t kKernelCode = 0x08, kKernelData = 0x10, kUserCode32 = 0x1b, kUserData = 0x23;
inline constexpr uint16_t kUserCode64 = 0x2b;          // in 64-bit programs
inline constexpr uint16_t kKernelCode32 = 0x30;        // in both
inline constexpr uint16_t kTask = 0x40, kFree = 0x60;  // tests may use the entries from kFree on
extern uint64_t gdt[64];
extern uint64_t idt[512];
struct TaskState {
  uint8_t bytes[104 + 8192 + 8];
};
extern TaskState task_state;
// `access`: present, privilege, type (0x9a is code); `flags`: granularity, size, long (0xc is 32-bit, 4 GiB).
uint64_t descriptor(uint32_t base, uint32_t limit, unsigned access, unsigned flags);
uint64_t gate(word offset, uint16_t selector, unsigned access, unsigned extra = 0);
void set_gate(unsigned vector, word handler, uint16_t selector, unsigned access, unsigned extra = 0);
void load_tables();             // GDT, IDT and task register
word stub_of(unsigned vector);  // the handler address of an IDT entry
extern "C" char boot_stack_top[], trap_stack_top[], user_stack_top[], user_done[];
extern "C" word recovery_stack;

// --- registers ---
#define CONTROL_REGISTER(n)                                     \
  inline word read_cr##n() {                                    \
    word value;                                                 \
    asm volatile("mov %%cr" #n ", %0" : "=r"(value)::"memory"); \
    return value;                                               \
  }                                                             \
  inline void write_cr##n(word value) {                         \
    asm volatile("mov %0, %%cr" #n ::"r"(value) : "memory");    \
  }
CONTROL_REGISTER(0)
CONTROL_REGISTER(2)
CONTROL_REGISTER(3)
CONTROL_REGISTER(4)
inline uint64_t read_msr(uint32_t number) {
  uint32_t low, high;
  asm volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(number));
  return uint64_t{high} << 32 | low;
}
inline void write_msr(uint32_t number, uint64_t value) {
  asm volatile("wrmsr" ::"c"(number), "a"(static_cast<uint32_t>(value)),
               "d"(static_cast<uint32_t>(value >> 32))
               : "memory");
}
inline void invalidate_page(word address) {
  asm volatile("invlpg (%0)" ::"r"(address) : "memory");
}
inline word read_flags() {
  word value;
  asm volatile("pushf; pop %0" : "=r"(value));
  return value;
}
inline void spend(unsigned instructions) {
  for (unsigned i = 0; i < instructions; ++i) asm volatile("");
}
template <class T>
inline volatile T& at(word address) {
  return *reinterpret_cast<volatile T*>(address);
}

// The test program.
void run_tests();
