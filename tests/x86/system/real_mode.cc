// Real mode: segments without descriptors, the interrupt vector table, far transfers, faults; and entering
// and leaving it.
#include "bare.h"

extern "C" char rm_base[], rm_end[], rm_div[];

// Code at 0900:0000. Its results go to its data segment at 0x1000.
asm(R"(
.code16
.globl rm_base, rm_end, rm_div
.set RESULT, 0x1000
rm_base:                                # 16-bit protected mode: leave it
    mov %cr0, %eax
    and $~1, %eax
    mov %eax, %cr0
    ljmp $0x900, $(rm_real - rm_base)
rm_real:
    mov $0x900, %ax
    mov %ax, %ds
    mov %ax, %ss
    mov $0x1f00, %sp
    lidtl rm_idt - rm_base
    xor %ax, %ax
    mov %ax, %es
    movw $(rm_int60 - rm_base), %es:(0x60 * 4)
    movw $0x900, %es:(0x60 * 4 + 2)
    movw $(rm_divide - rm_base), %es:(0 * 4)
    movw $0x900, %es:(0 * 4 + 2)
    movw $(rm_undefined - rm_base), %es:(6 * 4)
    movw $0x900, %es:(6 * 4 + 2)
    movw $(rm_protection - rm_base), %es:(13 * 4)
    movw $0x900, %es:(13 * 4 + 2)
    smsw %ax                            # PE is off
    and $1, %ax
    mov %ax, RESULT
    stc
    int $0x60
    setc RESULT+2                       # the handler's frame restores the flags
    mov $7, %ax
    xor %cx, %cx
rm_div: div %cl
    str %ax                             # not known in real mode
    mov $0x1234, %ax
    mov %ax, %es
    movw $0xbeef, %es:0x10
    mov $0xffff, %ax
    mov %ax, %es
    mov %es:0x10, %eax                  # just above 1 MiB
    mov %eax, RESULT+4
    lcall $0x900, $(rm_far - rm_base)
    mov %sp, RESULT+8
    mov $0x12345678, %ecx
    push %ecx                           # 32 bits on a 16-bit stack
    mov %sp, RESULT+10
    pop %edx
    mov %edx, RESULT+12
    mov $0xffff, %bx
    mov (%bx), %ax                      # a word at the last byte of a segment
    mov %cr0, %eax
    or $1, %eax
    mov %eax, %cr0
    ljmpl $8, $rm_back

rm_int60:
    pushf
    pop %ax
    mov %ax, RESULT+16
    movw $0x1234, RESULT+18
    clc
    iret
rm_divide:
    mov %sp, %bp
    mov (%bp), %ax
    mov %ax, RESULT+20                  # a fault: it names the instruction
    addw $2, (%bp)
    iret
rm_undefined:
    incw RESULT+22
    mov %sp, %bp
    addw $3, (%bp)
    iret
rm_protection:
    incw RESULT+24
    mov %sp, %bp
    mov %sp, RESULT+26                  # three words, no error code
    addw $2, (%bp)
    iret
rm_far:
    mov %sp, RESULT+28
    mov %sp, %bp
    mov 2(%bp), %ax
    mov %ax, RESULT+30
    lret
.align 4
rm_idt:
    .word 0x3ff
    .long 0
rm_end:
.code32
)");

extern "C" word rm_stack;
word rm_stack;

void run_tests() {
  constexpr word kPlace = 0x9000, kResult = kPlace + 0x1000;
  gdt[kFree / 8] = descriptor(kPlace, 0xffff, 0x9a, 0);
  gdt[kFree / 8 + 1] = descriptor(kPlace, 0xffff, 0x92, 0);
  for (long i = 0; i < rm_end - rm_base; ++i) at<char>(kPlace + static_cast<word>(i)) = rm_base[i];
  for (word i = 0; i < 64; ++i) at<uint8_t>(kResult + i) = 0;
  asm volatile(
      "pusha; mov %%esp, rm_stack\n"
      "mov $0x68, %%eax; mov %%eax, %%ds; mov %%eax, %%es; mov %%eax, %%fs; mov %%eax, %%gs; mov %%eax, "
      "%%ss\n"
      "ljmp $0x60, $0\n"
      "rm_back: mov $0x10, %%eax; mov %%eax, %%ds; mov %%eax, %%ss; mov rm_stack, %%esp; popa" ::
          : "memory", "cc");
  load_tables();
  const auto result = [](word offset) -> word { return at<uint16_t>(kResult + offset); };
  check("PE is off", result(0), 0);
  check("INT: reached its handler", result(18), 0x1234);
  check("INT: IF and TF are off in it", result(16) & 0x300, 0);
  check("IRET restores the flags", result(2) & 0xff, 1);
  check("DIV: a fault", result(20), static_cast<word>(rm_div - rm_base));
  check("STR: #UD", result(22), 1);
  check("segment and offset", at<uint16_t>(0x12350), 0xbeef);
  check("above 1 MiB", at<uint32_t>(kResult + 4), at<uint32_t>(0x100000));
  check("far call: pushes two words", result(28), 0x1f00 - 4);
  check("far call: the segment", result(30), 0x900);
  check("far return", result(8), 0x1f00);
  check("32-bit push", result(10), 0x1f00 - 4);
  check("32-bit pop", at<uint32_t>(kResult + 12), 0x12345678);
  if (under_slalom()) {  // QEMU checks no limits
    check("a word across the end of a segment: #GP", result(24), 1);
    check("... without an error code", result(26), 0x1f00 - 6);
  }
}
