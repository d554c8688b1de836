# The start-up code of the other CPUs: from real mode at 0x8000 to 64-bit mode, on the stack in smp_stack.
    .text
    .code16
    .globl smp_trampoline, smp_trampoline_end
smp_trampoline:
    cli
    xor %ax, %ax
    mov %ax, %ds
    lgdtl 0x8000 + smp_gdt - smp_trampoline
    mov %cr0, %eax
    or $1, %eax
    mov %eax, %cr0
    ljmpl $0x18, $smp_32bit
    .align 4
smp_gdt:
    .word 31
    .long boot_gdt
smp_trampoline_end:

    .code32
smp_32bit:
    mov $0x10, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    mov smp_stack, %esp
    call enter_long_mode
    ljmp $8, $smp_64bit
    .code64
smp_64bit:
    mov smp_stack, %esp
    call smp_main
1:  cli
    hlt
    jmp 1b

    .section .note.GNU-stack, "", @progbits
