// Exchanges one fiber for another: the registers that a call preserves, the stack, and the thread's base (fs).
//   void slalom_switch(Context* from, const Context* to)
// slalom_switch_slowly does the same where only the kernel may set the base.

#define SAVE                    \
        push    %rbp;           \
        push    %rbx;           \
        push    %r12;           \
        push    %r13;           \
        push    %r14;           \
        push    %r15;           \
        sub     $8, %rsp;       \
        stmxcsr (%rsp);         \
        fnstcw  4(%rsp);        \
        mov     %rsp, (%rdi);   \
        mov     (%rsi), %rsp

#define RESTORE                 \
        ldmxcsr (%rsp);         \
        fldcw   4(%rsp);        \
        add     $8, %rsp;       \
        pop     %r15;           \
        pop     %r14;           \
        pop     %r13;           \
        pop     %r12;           \
        pop     %rbx;           \
        pop     %rbp;           \
        ret

        .text
        .globl  slalom_switch
        .hidden slalom_switch
        .type   slalom_switch, @function
slalom_switch:
        SAVE
        mov     8(%rsi), %rax
        wrfsbase %rax
        RESTORE
        .size   slalom_switch, . - slalom_switch

        .globl  slalom_switch_slowly
        .hidden slalom_switch_slowly
        .type   slalom_switch_slowly, @function
slalom_switch_slowly:
        SAVE
        mov     8(%rsi), %rsi
        mov     $0x1002, %edi           // ARCH_SET_FS
        mov     $158, %eax              // arch_prctl
        syscall
        RESTORE
        .size   slalom_switch_slowly, . - slalom_switch_slowly

// Where a new fiber begins: calls %r12 with %r13. Nothing is above it, as unwinders are told.
        .globl  slalom_fiber_begin
        .hidden slalom_fiber_begin
        .type   slalom_fiber_begin, @function
slalom_fiber_begin:
        .cfi_startproc
        .cfi_undefined rip
        mov     %r13, %rdi
        call    *%r12
        ud2
        .cfi_endproc
        .size   slalom_fiber_begin, . - slalom_fiber_begin

        .section .note.GNU-stack, "", @progbits
