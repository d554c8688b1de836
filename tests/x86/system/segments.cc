// Segments in 32-bit protected mode: limits, types, privileges, tables, and the error codes of all that is
// refused.
#include "bare.h"

namespace {

volatile uint16_t selector;
volatile word offset;
alignas(4096) uint8_t area[0x3000];
uint64_t ldt[4];

constexpr unsigned kBytes = 0x4, kPages = 0xc;  // 32-bit segments whose limit is in bytes or in pages

uint16_t make(unsigned number, uint32_t base, uint32_t limit, unsigned access, unsigned flags) {
  gdt[kFree / 8 + number] = descriptor(base, limit, access, flags);
  return static_cast<uint16_t>(kFree + 8 * number);
}
uint16_t make_area(uint32_t limit, unsigned access, unsigned flags = kBytes) {
  return make(0, reinterpret_cast<word>(area), limit, access, flags);
}

const Function kLoadFs = [] { asm volatile("mov %w0, %%fs" ::"r"(selector)); };
const Function kLoadSs = [] {
  asm volatile("mov %%ss, %%ecx; mov %w0, %%ss; mov %%ecx, %%ss" ::"r"(selector) : "ecx");
};
const Function kReadByte = [] {
  asm volatile("mov %w0, %%fs; movb %%fs:(%1), %%al" ::"r"(selector), "r"(offset) : "eax");
};
const Function kReadWord = [] {
  asm volatile("mov %w0, %%fs; movl %%fs:(%1), %%eax" ::"r"(selector), "r"(offset) : "eax");
};
const Function kWriteByte = [] {
  asm volatile("mov %w0, %%fs; movb $9, %%fs:(%1)" ::"r"(selector), "r"(offset) : "memory");
};
const Function kStackByte = [] {
  asm volatile("mov %w0, %%ss; movb %%ss:(%1), %%al; mov $0x23, %%ecx; mov %%ecx, %%ss" ::"r"(selector),
               "r"(offset)
               : "eax", "ecx");
};
const Function kPush = [] {
  asm volatile(
      "mov %%esp, %%ecx; mov %w0, %%ss; mov %1, %%esp; push %%eax; mov $0x23, %%eax; mov %%eax, %%ss; mov "
      "%%ecx, %%esp" ::"r"(selector),
      "r"(offset)
      : "eax", "ecx", "memory");
};

const Trap& with(uint16_t s, word o, Function f, bool user = false) {
  selector = s;
  offset = o;
  return user ? attempt_user(f) : attempt(f);
}

void loading() {
  check_trap("DS: beyond the table", with(0xfff8, 0, kLoadFs), GP, 0xfff8);
  check_trap("DS: null", with(3, 0, kLoadFs), kNone);
  check_strict("... but not used", with(0, 0, kReadByte), GP, 0);
  check_strict("DS: local table without one", with(0xc, 0, kLoadFs), GP, 0xc);
  check_trap("DS: execute-only code", with(make_area(0xfff, 0x98), 0, kLoadFs), GP, kFree);
  check_trap("DS: readable code", with(make_area(0xfff, 0x9a), 0, kReadByte), kNone);
  check_strict("... not written", with(make_area(0xfff, 0x9a), 0, kWriteByte), GP, 0);
  check_trap("DS: a task state segment", with(kTask, 0, kLoadFs), GP, kTask);
  check_trap("DS: not present", with(make_area(0xfff, 0x12), 0, kLoadFs), NP, kFree);
  check_trap("DS: ring 0 data in ring 3", with(kKernelData | 3, 0, kLoadFs, true), GP, kKernelData);
  check_trap("DS: RPL 3 for ring 0 data", with(kKernelData | 3, 0, kLoadFs), GP, kKernelData);
  check_trap("DS: ring 3 data in ring 0", with(kUserData & ~3, 0, kLoadFs), kNone);
  check_trap("DS: conforming code in ring 3", with(make_area(0xfff, 0x9e), 0, kReadByte, true), kNone);
  check_strict("DS: read-only data written", with(make_area(0xfff, 0x90), 0, kWriteByte), GP, 0);
  make_area(0xfff, 0x92);
  (void)with(kFree, 0, kLoadFs);
  check("loading sets the accessed bit", (gdt[kFree / 8] >> 40) & 1, 1);

  check_trap("SS: null", with(0, 0, kLoadSs), GP, 0);
  check_trap("SS: beyond the table", with(0xfff8, 0, kLoadSs), GP, 0xfff8);
  check_trap("SS: RPL is not CPL", with(kKernelData | 3, 0, kLoadSs), GP, kKernelData);
  check_trap("SS: ring 3 data in ring 0", with(kUserData, 0, kLoadSs), GP, kUserData & ~3);
  check_trap("SS: ring 0 data in ring 3", with(kKernelData, 0, kLoadSs, true), GP, kKernelData);
  check_trap("SS: read-only", with(make_area(0xfff, 0x90), 0, kLoadSs), GP, kFree);
  check_trap("SS: code", with(make_area(0xfff, 0x9a), 0, kLoadSs), GP, kFree);
  check_trap("SS: not present", with(make_area(0xfff, 0x12), 0, kLoadSs), SS, kFree);
  check_strict("CS as data, written", attempt([] {
                 asm volatile("movb $1, %%cs:area_label" ::: "memory");
               }),
               GP, 0);
}

void limits() {
  const bool exact = under_slalom();  // QEMU does not check limits
  area[0] = 11;
  area[0xfff] = 22;
  check_trap("limit: last byte", with(make_area(0xfff, 0x92), 0xfff, kReadByte), kNone);
  static volatile uint8_t value;
  (void)attempt([] {
    uint8_t byte;
    asm volatile("mov %w1, %%fs; movb %%fs:0xfff, %0" : "=q"(byte) : "r"(selector));
    value = byte;
  });
  check("... counts from the base", value, 22);
  if (!exact) return;
  check_trap("limit: one more", with(kFree, 0x1000, kReadByte), GP, 0);
  check_trap("limit: four bytes, last one beyond", with(kFree, 0xffd, kReadWord), GP, 0);
  check_trap("limit: four bytes inside", with(kFree, 0xffc, kReadWord), kNone);
  check_trap("limit: write", with(kFree, 0x1000, kWriteByte), GP, 0);
  check_trap("limit in pages: inside", with(make_area(1, 0x92, kPages), 0x1fff, kReadByte), kNone);
  check_trap("limit in pages: beyond", with(make_area(1, 0x92, kPages), 0x2000, kReadByte), GP, 0);
  check_trap("expands down: inside", with(make_area(0xfff, 0x96), 0x1000, kReadByte), kNone);
  check_trap("expands down: at the limit", with(kFree, 0xfff, kReadByte), GP, 0);
  check_trap("expands down, 32 bits: up to 4 GiB",
             with(make(0, 0x200000, 0xfff, 0x96, kBytes), 0xfffffff0, kReadByte), kNone);
  check_trap("expands down, 16 bits: up to 64 KiB", with(make_area(0xfff, 0x96, 0), 0x10000, kReadByte), GP,
             0);
  check_trap("expands down, 16 bits: 4 bytes across",
             with(make(0, 0x200000, 0xfff, 0x96, 0), 0xfffd, kReadWord), GP, 0);
  check_trap("stack limit: inside", with(make_area(0xfff, 0xf2) | 3, 0xfff, kStackByte, true), kNone);
  check_trap("stack limit: beyond", with(kFree | 3, 0x1000, kStackByte, true), SS, 0);
  check_trap("stack limit: push", with(kFree | 3, 0x2000, kPush, true), SS, 0);
  check_trap("stack limit: push inside", with(kFree | 3, 0x1000, kPush, true), kNone);
  check_trap("stack expands down: push inside", with(make_area(0xfff, 0xf6) | 3, 0x2000, kPush, true), kNone);
  check_trap("stack expands down: push below", with(kFree | 3, 0x1000, kPush, true), SS, 0);
  make(1, 0, 0x200, 0x9a, kPages);
  check_trap("code limit: jump beyond", attempt([] { asm volatile("ljmp $0x68, $0x300000"); }), GP, 0);
  make(1, 0, 0x101, 0x9a, kPages);
}

void tables() {
  ldt[1] = descriptor(reinterpret_cast<word>(area), 0xff, 0x92, kBytes);
  make(2, reinterpret_cast<word>(ldt), sizeof ldt - 1, 0x82, 0);
  const Function load_ldt = [] { asm volatile("lldt %w0" ::"r"(selector)); };
  const Function load_task = [] { asm volatile("ltr %w0" ::"r"(selector)); };
  check_trap("LLDT", with(kFree + 16, 0, load_ldt), kNone);
  check_trap("local selector", with(0xc, 0, kReadByte), kNone);
  check_trap("local selector beyond the table", with(0x24, 0, kLoadFs), GP, 0x24);
  check_trap("LLDT: null", with(0, 0, load_ldt), kNone);
  check_trap("... takes it away", with(0xc, 0, kLoadFs), GP, 0xc);
  check_trap("LLDT: data", with(kKernelData, 0, load_ldt), GP, kKernelData);
  check_trap("LLDT: a local selector", with(0xc, 0, load_ldt), GP, 0xc);
  make(2, 0, 0xff, 0x02, 0);
  check_trap("LLDT: not present", with(kFree + 16, 0, load_ldt), NP, kFree + 16);
  check("the task register's segment is busy", (gdt[kTask / 8] >> 41) & 1, 1);
  check_trap("LTR: busy", with(kTask, 0, load_task), GP, kTask);
  if (under_slalom()) check_trap("LTR: null", with(0, 0, load_task), GP, 0);
  check_trap("LTR: data", with(kKernelData, 0, load_task), GP, kKernelData);
  make(2, 0, 0x67, 0x09, 0);
  check_trap("LTR: not present", with(kFree + 16, 0, load_task), NP, kFree + 16);
}

struct Inspected {
  bool good;
  uint32_t value;
};
Inspected rights_of(uint16_t s) {
  Inspected r;
  asm volatile("xor %%eax, %%eax; lar %w2, %0; setz %b1"
               : "=&r"(r.value), "=&q"(r.good)
               : "r"(s)
               : "eax", "cc");
  return r;
}
Inspected limit_of(uint16_t s) {
  Inspected r;
  asm volatile("lsl %w2, %0; setz %b1" : "=&r"(r.value), "=&q"(r.good) : "r"(s) : "cc");
  return r;
}
bool readable(uint16_t s) {
  bool good;
  asm volatile("verr %w1; setz %0" : "=q"(good) : "r"(s) : "cc");
  return good;
}
bool writable(uint16_t s) {
  bool good;
  asm volatile("verw %w1; setz %0" : "=q"(good) : "r"(s) : "cc");
  return good;
}

void inspection() {
  check("LAR of data", rights_of(kUserData).value & 0xf0fe00, 0xc0f200);
  check("LAR of null", rights_of(0).good, 0);
  check("LAR beyond the table", rights_of(0xfff8).good, 0);
  check("LAR of a task state segment", rights_of(kTask).value & 0xff00, 0x8b00);
  check("LSL in pages", limit_of(kUserData).value, 0xffffffff);
  make_area(0x123, 0x92);
  check("LSL in bytes", limit_of(kFree).value, 0x123);
  check("LSL with RPL above DPL", limit_of(kFree | 3).good, 0);
  gdt[kFree / 8] = gate(0, kKernelCode, 0x8c);
  check("LSL of a call gate", limit_of(kFree).good, 0);
  check("LAR of a call gate", rights_of(kFree).value & 0xff00, 0x8c00);
  check("VERR of data", readable(kKernelData), 1);
  check("VERW of data", writable(kKernelData), 1);
  check("VERR of execute-only code", (make_area(0, 0x98), readable(kFree)), 0);
  check("VERW of code", writable(kKernelCode), 0);
  check("VERW of read-only data", (make_area(0, 0x90), writable(kFree)), 0);
  check("VERR of null", readable(0), 0);
  check("VERR with RPL above DPL", readable(kKernelData | 3), 0);
  static volatile bool in_user;
  (void)attempt_user([] { in_user = readable(kKernelData); });
  check("VERR of ring 0 data in ring 3", in_user, 0);
}

}  // namespace

extern "C" char area_label[4];
char area_label[4];

void run_tests() {
  loading();
  limits();
  tables();
  inspection();
}
