# Entry of a 64-bit bare-metal program: entered in 32-bit mode, it maps the first 4 GiB one to one (2 MiB pages,
# accessible to ring 3) and continues in 64-bit mode. Every vector leads to on_trap() with a Frame (bare.h).
    .section .multiboot, "a"
    .align 4
    .long 0x1badb002, 0, -0x1badb002

    .text
    .code32
    .globl start
start:
    cli
    cld
    mov %eax, %ebp
    mov $boot_stack_top, %esp
    mov $boot_directories, %edi         # 2048 large pages
    mov $0x87, %eax
1:  mov %eax, (%edi)
    add $8, %edi
    add $0x200000, %eax
    jnc 1b
    mov $boot_directories + 7, %eax     # 4 directories
    mov $boot_pointers, %edi
    mov $4, %ecx
2:  mov %eax, (%edi)
    add $8, %edi
    add $0x1000, %eax
    loop 2b
    movl $boot_pointers + 7, boot_tables
    call enter_long_mode
    ljmp $8, $start_64bit

# Switches this CPU to long mode with the boot tables and the boot GDT; still in 32-bit code afterwards.
    .globl enter_long_mode
enter_long_mode:
    mov $boot_tables, %eax
    mov %eax, %cr3
    mov %cr4, %eax
    or $0x620, %eax                     # PAE, SSE
    mov %eax, %cr4
    mov $0xc0000080, %ecx
    rdmsr
    or $0x901, %eax                     # system calls, long mode, no-execute
    wrmsr
    mov %cr0, %eax
    and $0x9ffffff3, %eax
    or $0x80000022, %eax
    mov %eax, %cr0
    lgdt boot_gdt_pointer
    ret

    .code64
start_64bit:
    mov $0x10, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    mov %ebp, %edi
    mov %ebx, %esi
    mov $boot_stack_top, %esp
    call bare_main
1:  cli
    hlt
    jmp 1b

    .globl attempt_raw, resume_after_trap, attempt_user_raw, user_done
attempt_raw:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    pushf
    mov %rsp, recovery_stack
    call *%rdi
    xor %eax, %eax
restore_and_return:
    movq $0, recovery_stack
    popf
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret

resume_after_trap:
    mov recovery_stack, %rsp
    mov $1, %eax
    jmp restore_and_return

attempt_user_raw:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    pushf
    mov %rsp, recovery_stack
    mov $user_stack_top - 8, %edx
    movq $user_done, (%rdx)
    push $0x23
    push %rdx
    push user_flags
    push $0x2b
    push %rdi
    iretq
user_done:
    int $0x80
    ud2

trap_common:
    push %rax
    push %rcx
    push %rdx
    push %rbx
    push %rbp
    push %rsi
    push %rdi
    push %r8
    push %r9
    push %r10
    push %r11
    push %r12
    push %r13
    push %r14
    push %r15
    cld
    mov %rsp, %rdi
    mov %rsp, %rbp
    and $-16, %rsp
    call on_trap
    mov %rbp, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %r11
    pop %r10
    pop %r9
    pop %r8
    pop %rdi
    pop %rsi
    pop %rbp
    pop %rbx
    pop %rdx
    pop %rcx
    pop %rax
    add $16, %rsp
    iretq

    .align 16
    .globl trap_stubs
trap_stubs:
    .set vector, 0
    .rept 256
    .align 16
    .if vector == 8 || (vector >= 10 && vector <= 14) || vector == 17
    .else
    push $0
    .endif
    push $vector
    jmp trap_common
    .set vector, vector + 1
    .endr

    .data
    .align 8
    .globl boot_gdt
boot_gdt:
    .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff, 0x00cf9b000000ffff
    .globl boot_gdt_pointer
boot_gdt_pointer:
    .word 31
    .long boot_gdt

    .bss
    .align 4096
    .globl boot_tables, boot_directories
boot_tables:
    .skip 4096
boot_pointers:
    .skip 4096
boot_directories:
    .skip 4 * 4096
    .globl recovery_stack, boot_stack_top, user_stack_top, trap_stack_top
recovery_stack:
    .skip 16
    .skip 0x10000
boot_stack_top:
    .skip 0x4000
trap_stack_top:
    .align 4096
    .skip 0x4000
user_stack_top:

    .section .note.GNU-stack, "", @progbits
