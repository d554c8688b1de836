// Switches from one fiber to another: the registers that a call preserves, the stack, and the thread's base
// (fs).
//
//   void slalom_switch(Context* from, const Context* to)
//
// Values that are equal on both sides are not set again, because setting the base and control words is slow.
// The switch ends with a jump, because the processor would always mispredict a return, as one to the caller
// on the other side. slalom_switch_slowly does the same on machines where only the kernel may set the base.

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
        mov     %rsp, %rcx;     \
        mov     %rsp, (%rdi);   \
        mov     (%rsi), %rsp

#define RESTORE                 \
        mov     (%rcx), %edx;   \
        cmp     (%rsp), %edx;   \
        je      8f;             \
        ldmxcsr (%rsp);         \
8:      mov     4(%rcx), %dx;   \
        cmp     4(%rsp), %dx;   \
        je      9f;             \
        fldcw   4(%rsp);        \
9:      add     $8, %rsp;       \
        pop     %r15;           \
        pop     %r14;           \
        pop     %r13;           \
        pop     %r12;           \
        pop     %rbx;           \
        pop     %rbp;           \
        pop     %rcx;           \
        jmp     *%rcx

        .text
        .globl  slalom_switch
        .hidden slalom_switch
        .type   slalom_switch, @function
slalom_switch:
        SAVE
        mov     8(%rsi), %rax
        cmp     8(%rdi), %rax
        je      1f
        wrfsbase %rax
1:      RESTORE
        .size   slalom_switch, . - slalom_switch

        .globl  slalom_switch_slowly
        .hidden slalom_switch_slowly
        .type   slalom_switch_slowly, @function
slalom_switch_slowly:
        SAVE
        mov     8(%rsi), %rsi
        cmp     8(%rdi), %rsi
        je      1f
        mov     %rcx, %rbx  // the system call changes rcx
        mov     $0x1002, %edi           // ARCH_SET_FS
        mov     $158, %eax              // arch_prctl
        syscall
        mov     %rbx, %rcx
1:      RESTORE
        .size   slalom_switch_slowly, . - slalom_switch_slowly

// Start of a new fiber: calls %r12 with %r13. Tells unwinders that there is no caller.
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
