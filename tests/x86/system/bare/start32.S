# Entry of a 32-bit bare-metal program, and its traps: every vector leads to on_trap() with a Frame (bare.h).
    .section .multiboot, "a"
    .align 4
    .long 0x1badb002, 0, -0x1badb002

    .text
    .code32
    .globl start
start:
    cli
    cld
    mov $boot_stack_top, %esp
    push %ebx
    push %eax
    call bare_main
1:  cli
    hlt
    jmp 1b

# int attempt_raw(void (*function)()): returns 0 if the function returned, 1 if a trap ended it.
    .globl attempt_raw, resume_after_trap, attempt_user_raw, user_done
attempt_raw:
    mov 4(%esp), %eax
    push %ebp
    push %ebx
    push %esi
    push %edi
    pushf
    mov %esp, recovery_stack
    call *%eax
    movl $0, recovery_stack
    popf
    pop %edi
    pop %esi
    pop %ebx
    pop %ebp
    xor %eax, %eax
    ret

# Never returns to its caller: continues as if attempt_raw returned 1.
resume_after_trap:
    mov recovery_stack, %esp
    movl $0, recovery_stack
    popf
    pop %edi
    pop %esi
    pop %ebx
    pop %ebp
    mov $1, %eax
    ret

# The same in ring 3, on the user stack. int 0x80 or any other trap ends it.
attempt_user_raw:
    mov 4(%esp), %eax
    push %ebp
    push %ebx
    push %esi
    push %edi
    pushf
    mov %esp, recovery_stack
    mov $0x23, %ecx
    mov %cx, %ds
    mov %cx, %es
    mov %cx, %fs
    mov %cx, %gs
    mov $user_stack_top - 4, %edx
    movl $user_done, (%edx)
    push %ecx
    push %edx
    push user_flags
    push $0x1b
    push %eax
    iret
user_done:
    int $0x80
    ud2

trap_common:
    pusha
    push %ds
    push %es
    push %fs
    push %gs
    cld
    mov $0x10, %eax
    mov %ax, %ds
    mov %ax, %es
    push %esp
    call on_trap
    add $4, %esp
    pop %gs
    pop %fs
    pop %es
    pop %ds
    popa
    add $8, %esp
    iret

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

    .bss
    .align 16
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
