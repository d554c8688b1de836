// Code that is written while it runs: by itself, ahead and behind, on other pages, by string instructions,
// through another address, and by another CPU. Built for 32-bit and 64-bit mode; two CPUs only in 64-bit
// mode.
#ifdef __x86_64__
#include "smp.h"
#else
#include "bare.h"
#endif

extern "C" char patched_1[], patched_2[], patched_3[], patched_4[], patched_5[];

namespace {
alignas(4096) uint8_t code[3 * 4096];

word call(word address) {
  word result;
  asm volatile("call *%1" : "=a"(result) : "r"(address) : "memory", "cc", "ecx", "edx");
  return result;
}

// mov $value, %eax; ret
void make_function(word address, uint32_t value) {
  at<uint8_t>(address) = 0xb8;
  at<uint32_t>(address + 1) = value;
  at<uint8_t>(address + 5) = 0xc3;
}

void whole_functions() {
  const word page = reinterpret_cast<word>(code);
  bool good = true;
  for (uint32_t i = 0; i < 500; ++i) {
    make_function(page, i * 3);
    good = good && call(page) == i * 3;
  }
  check("a function rewritten 500 times", good, 1);
  good = true;
  make_function(page, 0);
  for (uint32_t i = 0; i < 500; ++i) {
    at<uint8_t>(page + 1) = static_cast<uint8_t>(i);
    good = good && call(page) == (i & 0xff);
  }
  check("one byte of it", good, 1);
  good = true;
  for (uint32_t i = 0; i < 100; ++i) {
    make_function(page + 16 * (i % 8), i);
    make_function(page + 4096 + 16 * (i % 8), i + 1);
    good = good && call(page + 16 * (i % 8)) == i && call(page + 4096 + 16 * (i % 8)) == i + 1;
  }
  check("functions side by side", good, 1);
  good = true;
  for (uint32_t i = 0; i < 100; ++i) {  // across the end of a page: 3 bytes here, 3 there
    make_function(page + 4096 - 3, i * 0x01010101);
    good = good && call(page + 4096 - 3) == i * 0x01010101;
  }
  check("a function across pages", good, 1);
  // Another instruction in the same place.
  make_function(page, 7);
  check("before", call(page), 7);
  const uint8_t other[] = {0x31, 0xc0, 0xff, 0xc0, 0xff, 0xc0, 0xc3};  // xor, inc, inc, ret (both modes)
  for (unsigned i = 0; i < sizeof other; ++i) at<uint8_t>(page + i) = other[i];
  check("other instructions", call(page), 2);
  // Data next to code in the same 64 bytes changes; the code does not.
  make_function(page, 5);
  good = true;
  for (unsigned i = 0; i < 300; ++i) {
    at<uint32_t>(page + 8) = i;
    good = good && call(page) == 5 && at<uint32_t>(page + 8) == i;
  }
  check("data beside code", good, 1);
}

void own_code() {
  word result;
  asm volatile("movb $42, patched_1 + 1\n .globl patched_1\n patched_1: mov $0, %%al\n movzbl %%al, %%eax"
               : "=a"(result)::"memory");
  check("the next instruction", result, 42);
  asm volatile(
      "movb $43, patched_2 + 1\n nop; nop; nop; nop\n .globl patched_2\n patched_2: mov $0, %%al\n movzbl "
      "%%al, %%eax"
      : "=a"(result)::"memory");
  check("one a little ahead", result, 43);
  asm volatile(
      "xor %%eax, %%eax; mov $10, %%ecx\n"
      "1: .globl patched_3\n patched_3: add $1, %%eax\n"
      "incb patched_3 + 2\n"
      "dec %%ecx; jnz 1b"
      : "=a"(result)::"ecx", "memory", "cc");
  check("a loop that changes its own step", result, 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10);
  // A jump is patched to a shorter one while the loop runs.
  asm volatile(
      "xor %%eax, %%eax; mov $10, %%ecx\n"
      "1: inc %%eax; cmp $5, %%eax; jne 2f; movb $0, patched_4 + 1\n"
      "2: .globl patched_4\n patched_4: jmp 3f\n"
      "   add $100, %%eax\n"
      "3: dec %%ecx; jnz 1b"
      : "=a"(result)::"ecx", "memory", "cc");
  check("a jump turned into a no-operation", result, 10 + 6 * 100);
  // By a string instruction that overwrites the following code: mov $0x77, %al; nop ...
  static uint8_t fresh[4] = {0xb0, 0x77, 0x90, 0x90};
  asm volatile(
      "xor %%eax, %%eax; mov $patched_5, %%edi; mov %1, %%esi; mov $4, %%ecx; rep movsb\n .globl "
      "patched_5\n patched_5: nop; nop; nop; nop"
      : "=&a"(result)
      : "r"(static_cast<uint32_t>(reinterpret_cast<word>(fresh)))
      : "ecx", "esi", "edi", "memory");
  check("by a string instruction", result, 0x77);
  // By locked instructions and by pushes.
  const word page = reinterpret_cast<word>(code);
  make_function(page, 1);
  (void)call(page);
  asm volatile("lock addl $5, %0" : "+m"(at<uint32_t>(page + 1)));
  check("by a locked addition", call(page), 6);
  make_function(page, 1);
  (void)call(page);
#ifdef __x86_64__
  asm volatile("mov %%rsp, %%rcx; mov %0, %%rsp; push %1; mov %%rcx, %%rsp" ::"r"(page + 8),
               "r"(uint64_t{0xc3000000ccb8})
               : "rcx", "memory");
#else
  asm volatile("mov %%esp, %%ecx; mov %0, %%esp; push %1; mov %%ecx, %%esp" ::"r"(page + 4), "r"(0xccb8)
               : "ecx", "memory");
#endif
  check("by a push", call(page), 0xcc);
}

}  // namespace

#ifdef __x86_64__

extern "C" uint64_t boot_directories[4 * 512];

namespace {

void serialize() {
  uint32_t a = 0, b, c = 0, d;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d)::"memory");
}

void another_address() {
  boot_directories[512] = 0x87;  // maps the first 2 MiB a second time, at 1 GiB
  write_cr3(read_cr3());
  const word page = reinterpret_cast<word>(code), alias = page + 0x40000000;
  bool good = true;
  for (uint32_t i = 0; i < 100; ++i) {
    at<uint32_t>(alias + 1) = i;
    if (i == 0) make_function(page, 0);
    serialize();
    good = good && call(page) == i && call(alias) == i;
  }
  check("written through another address", good, 1);
  // The address now leads to other code.
  make_function(page, 1);
  make_function(page + 4096, 2);
  check("first", call(alias), 1);
  boot_directories[512] = 0x87 + 0x200000;
  make_function(page + 0x200000, 3);
  invalidate_page(alias);
  check("mapped to other code", call(alias), 3);
}

volatile unsigned stage, seen, wrong;

void other_cpu() {
  const word page = reinterpret_cast<word>(code);
  for (unsigned next = 1; next <= 200; ++next) {
    while (stage != next) asm volatile("pause");
    serialize();
    if (call(page) != next * 5) ++wrong;
    seen = next;
  }
}

void another_cpu() {
  const word page = reinterpret_cast<word>(code);
  make_function(page, 0);
  start_cpu(1, other_cpu);
  for (unsigned next = 1; next <= 200; ++next) {
    at<uint32_t>(page + 1) = next * 5;
    stage = next;
    while (seen != next) asm volatile("pause");
  }
  check("another CPU runs what this one wrote", wrong, 0);
}

}  // namespace
#endif

void run_tests() {
  whole_functions();
  own_code();
#ifdef __x86_64__
  another_address();
  if (cpu_count() > 1) another_cpu();
#endif
}
