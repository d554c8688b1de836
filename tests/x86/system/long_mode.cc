// Long mode: privileges, interrupt stacks, system calls, GS, compatibility mode, and the transitions between
// 16-bit, 32-bit and 64-bit code.
#include "bare.h"

extern "C" char gate_entry[], system_entry[], landing[], compatible[], fault_at[];

extern "C" {
word noted[8];
volatile word landed_cs, landed_ss, landed_sp, landed_flags;
word saved_stack;
}

asm(R"(
.globl gate_entry, system_entry, landing
gate_entry:                     # through a call gate
    mov %rsp, noted
    mov %cs, noted+8
    mov %ss, noted+16
    mov (%rsp), %rax
    mov %rax, noted+24
    mov 8(%rsp), %rax
    mov %rax, noted+32
    mov 16(%rsp), %rax
    mov %rax, noted+40
    mov 24(%rsp), %rax
    mov %rax, noted+48
    lretq

system_entry:                   # through SYSCALL: the stack is still the user's
    mov %rcx, noted
    mov %r11, noted+8
    mov %cs, noted+16
    mov %ss, noted+24
    pushf
    pop %rax
    mov %rax, noted+32
    cmpq $0, noted+40
    jne 1f
    sysretq
1:  sysretl

landing:                        # in ring 3
    mov %cs, landed_cs
    mov %ss, landed_ss
    mov %rsp, landed_sp
    pushf
    pop landed_flags
    int $0x80
)");

namespace {

constexpr uint16_t kOther = kFree, kGate = kFree + 16;

void set_task(unsigned offset, word value) {
  __builtin_memcpy(task_state.bytes + offset, &value, 8);
}

void interrupt_stacks() {
  static uint8_t stack[4096];
  const word top = reinterpret_cast<word>(stack + sizeof stack);
  static word handler_stack;
  hooks[0x90] = [](Frame* frame) {
    handler_stack = reinterpret_cast<word>(frame + 1);
    noted[0] = frame->ss;
  };
  asm volatile("int $0x90");
  check("ring 0: SS is saved, too", noted[0], kKernelData);
  check("frames are aligned", handler_stack & 15, 0);
  set_task(0x24, top - 3);
  set_gate(0x90, stub_of(0x90), kKernelCode, 0xee, 1);
  asm volatile("int $0x90");
  check("IST 1, aligned", handler_stack, top - 16);
  set_task(0x24 + 6 * 8, top - 256);
  set_gate(0x90, stub_of(0x90), kKernelCode, 0xee, 7);
  check_trap("IST 7 from ring 3", attempt_user([] { asm volatile("int $0x90"); }), kNone);
  check("... its stack", handler_stack, top - 256);
  check("... saved SS", noted[0], kUserData);
  set_gate(0x90, stub_of(0x90), kKernelCode, 0xee, 0);
  check_trap("no IST from ring 3", attempt_user([] { asm volatile("int $0x90"); }), kNone);
  check("... RSP0", handler_stack, address_of(trap_stack_top));
  hooks[0x90] = nullptr;
  static word stack_segment;
  hooks[0x90] = [](Frame*) { asm volatile("mov %%ss, %0" : "=r"(stack_segment)); };
  (void)attempt_user([] { asm volatile("int $0x90"); });
  check("... SS is null in the handler", stack_segment & 0xffff, 0);
  hooks[0x90] = nullptr;
  // An unmapped stack: page fault, then a double fault, which uses its own stack.
  set_gate(DF, stub_of(DF), kKernelCode, 0x8e, 7);
  set_task(4, 0xffff900000000000);
  check_trap("RSP0 is not mapped: #DF", attempt_user([] { asm volatile("ud2"); }), DF, 0);
  check_trap("the kernel's stack is not mapped: #DF", attempt([] {
               asm volatile("mov %%rsp, saved_stack; mov %0, %%rsp; push %%rax" ::"r"(0xffff900000000000)
                            : "memory");
             }),
             DF, 0);
  check("... CR2", read_cr2(), 0xffff8ffffffffff8);
  set_task(4, 0x8000000000000000);
  if (under_slalom())
    check_trap("RSP0 is not canonical: #SS, then #DF", attempt_user([] { asm volatile("hlt"); }), DF, 0);
  set_task(4, address_of(trap_stack_top));
  set_gate(PF, stub_of(PF), kKernelCode, 0x0e);
  check_trap("#PF with its gate not present: #DF", attempt([] { at<uint8_t>(0xffff900000000000) = 1; }), DF,
             0);
  set_gate(PF, stub_of(PF), kKernelCode, 0x8e);
  set_gate(DF, stub_of(DF), kKernelCode, 0x8e);
}

void gates() {
  set_gate(0x90, stub_of(0x90), kKernelCode32, 0x8e);
  check_trap("a gate to 32-bit code", attempt([] { asm volatile("int $0x90"); }), GP, kKernelCode32);
  set_gate(0x90, stub_of(0x90), kKernelCode, 0x86);
  check_trap("a 16-bit gate", attempt([] { asm volatile("int $0x90"); }), GP, idt_error(0x90));
  set_gate(0x90, stub_of(0x90), kKernelCode, 0x85);
  check_trap("a task gate", attempt([] { asm volatile("int $0x90"); }), GP, idt_error(0x90));
  set_gate(0x90, stub_of(0x90), kKernelCode, 0x8e);
  gdt[kGate / 8] = gate(address_of(gate_entry), kKernelCode, 0xec);
  gdt[kGate / 8 + 1] = 0;
  static struct [[gnu::packed]] {
    uint32_t offset;
    uint16_t selector;
  } pointer = {0, kGate | 3};
  check_trap("call gate", attempt_user([] {
               asm volatile("mov %%rsp, landed_sp; lcall *%0; .globl fault_at; fault_at:" ::"m"(pointer)
                            : "rax", "memory");
             }),
             kNone);
  check("... in ring 0", noted[1], kKernelCode);
  check("... its stack", noted[0], address_of(trap_stack_top) - 32);
  check("... SS is null", noted[2], 0);
  check("... return address", noted[3], address_of(fault_at));
  check("... old CS", noted[4] & 0xffff, kUserCode64);
  check("... old RSP", noted[5], landed_sp);
  check("... old SS", noted[6] & 0xffff, kUserData);
  gdt[kGate / 8] = gate(address_of(gate_entry), kKernelCode32, 0xec);
  check_trap("call gate to 32-bit code", attempt_user([] {
               asm volatile("lcall *%0" ::"m"(pointer) : "rax", "memory");
             }),
             GP, kKernelCode32);
  gdt[kGate / 8] = gate(address_of(gate_entry), kKernelCode, 0xe4);
  check_trap("a 16-bit call gate",
             attempt_user([] { asm volatile("lcall *%0" ::"m"(pointer)
                                            : "rax", "memory"); }), GP, kGate);
  gdt[kOther / 8] = descriptor(0, 0xfffff, 0x9a, 0xe);
  pointer.selector = kOther;
  check_strict("code of 64 and 32 bits",
               attempt([] { asm volatile("lcall *%0" ::"m"(pointer)
                                         : "rax", "memory"); }), GP, kOther);
}

volatile word frame[5];
const Trap& returns(word cs, word ss, word ip = address_of(landing), word flags = 2) {
  const word values[5] = {ip, cs, flags, address_of(user_stack_top) - 64, ss};
  for (int i = 0; i < 5; ++i) frame[i] = values[i];
  return attempt([] {
    asm volatile("push %4; push %3; push %2; push %1; push %0; iretq" ::"m"(frame[0]), "m"(frame[1]),
                 "m"(frame[2]), "m"(frame[3]), "m"(frame[4])
                 : "memory");
  });
}

void interrupt_returns() {
  check_trap("IRETQ to ring 3", returns(kUserCode64, kUserData), kNone);
  check("... CS", landed_cs, kUserCode64);
  check("... SS", landed_ss, kUserData);
  check("... RSP", landed_sp, address_of(user_stack_top) - 64);
  check_trap("IRETQ: null CS", returns(0, kUserData), GP, 0);
  check_trap("IRETQ: null SS to ring 3", returns(kUserCode64, 0), GP, 0);
  check_trap("IRETQ: null SS to ring 3 with RPL 3", returns(kUserCode64, 3), GP, 0);
  check_trap("IRETQ: data as CS", returns(kUserData, kUserData), GP, kUserData & ~3);
  check_trap("IRETQ: SS of ring 0 to ring 3", returns(kUserCode64, kKernelData), GP, kKernelData);
  check_strict("IRETQ: RIP not canonical", returns(kUserCode64, kUserData, 0x800000000000), GP, 0);
  check_strict("IRETQ: with NT", attempt([] {
                 asm volatile("pushf; orl $0x4000, (%%rsp); popf; iretq" ::: "memory", "cc");
               }),
               GP, 0);
  asm volatile("pushf; andl $~0x4000, (%%rsp); popf" ::: "memory", "cc");
  static volatile word after;
  check_trap("IRETQ to ring 0 with a null SS", attempt([] {
               word value;
               asm volatile(
                   "mov %%rsp, %%rcx; push $0; push %%rcx; pushf; push $8; push $1f; iretq; 1: mov %%ss, %0; "
                   "mov $0x10, %%ecx; mov %%ecx, %%ss"
                   : "=r"(value)::"rcx", "memory");
               after = value;
             }),
             kNone);
  check("... is possible", after & 0xffff, 0);
}

void system_calls() {
  write_msr(0xc0000081, uint64_t{0x18 | 3} << 48 | uint64_t{kKernelCode} << 32);
  write_msr(0xc0000082, address_of(system_entry));
  write_msr(0xc0000084, 0x4701);  // clears TF, IF, DF, NT, CF
  const uint64_t efer = read_msr(0xc0000080);
  noted[5] = 0;
  static volatile word back_cs, back_ss, back_flags;
  const Function call = [] {
    asm volatile(
        "stc; std; syscall; .globl back_from_call; back_from_call: pushf; pop %%rax; mov %%rax, %2; cld; mov "
        "%%cs, %%eax; mov %%rax, %0; mov %%ss, %%eax; mov %%rax, %1"
        : "=m"(back_cs), "=m"(back_ss), "=m"(back_flags)::"rax", "rcx", "r11", "memory", "cc");
  };
  check_trap("SYSCALL and SYSRET", attempt_user(call), kNone);
  check("... RCX is the next instruction", at<uint8_t>(noted[0]), 0x9c);
  check("... R11 has the flags", noted[1] & 0x401, 0x401);
  check("... CS", noted[2], kKernelCode);
  check("... SS", noted[3] & 0xffff, kKernelData);
  check("... masked flags", noted[4] & 0x401, 0);
  check("... back CS", back_cs, kUserCode64);
  check("... back SS", back_ss, kUserData);
  check("... back flags", back_flags & 0x401, 0x401);
  check_trap("SYSCALL without EFER.SCE", (write_msr(0xc0000080, efer & ~uint64_t{1}), attempt_user(call)),
             UD);
  write_msr(0xc0000080, efer);
  noted[5] = 1;
  set_gate(0x91, stub_of(0x91), kKernelCode, 0xee);
  // The next byte is INC EAX in 32-bit code and a prefix in 64-bit code.
  const Trap& narrow_return = attempt_user([] {
    asm volatile("syscall; mov $5, %%eax; .byte 0x40; nop; int $0x91" ::: "rax", "rcx", "r11");
  });
  check_trap("SYSRET to 32-bit code", narrow_return, 0x91);
  check("... CS", narrow_return.cs, kUserCode32);
  check("... runs it", narrow_return.frame.ax, 6);
  noted[5] = 0;
  check_strict("SYSRET to an address that is not canonical", attempt([] {
                 asm volatile("mov %0, %%rcx; mov $2, %%r11d; sysretq" ::"r"(0x800000000000) : "rcx", "r11");
               }),
               GP, 0);
  if (under_slalom())
    check_trap("LSTAR must be canonical", attempt([] { write_msr(0xc0000082, 0x800000000000); }), GP, 0);
}

extern "C" char stepped_return[];

unsigned steps;
word step_at[4], step_cs[4];
void note_step(Frame* frame) {
  if (steps < 4) step_at[steps] = frame->ip, step_cs[steps] = frame->cs & 0xffff;
  ++steps;
}

// After SYSCALL and SYSRET, the new value of the trap flag decides whether a single step traps.
void single_steps() {
  write_msr(0xc0000082, address_of(system_entry));
  noted[5] = 0;
  hooks[DB] = note_step;
  const Function call = [] {
    asm volatile(
        "pushf; orl $0x100, (%%rsp); popf; syscall; .globl stepped_return; stepped_return: pushf; "
        "andl $~0x100, (%%rsp); popf; nop" ::
            : "rax", "rcx", "r11", "memory", "cc");
  };
  steps = 0;
  write_msr(0xc0000084, 0x4701);
  check_trap("single steps over SYSCALL that masks TF", attempt_user(call), kNone);
  check("... the first trap is behind it", step_at[0], address_of(stepped_return));
  check("... in ring 3", step_cs[0], kUserCode64);
  check("... then one for each instruction", steps, 4);
  check("... R11 has TF", noted[1] & 0x100, 0x100);
  check("... the kernel does not", noted[4] & 0x100, 0);
  steps = 0;
  write_msr(0xc0000084, 0x4601);
  check_trap("single steps over SYSCALL that leaves TF", attempt_user(call), kNone);
  check("... the first trap is at the kernel's entry", step_at[0], address_of(system_entry));
  check("... in ring 0", step_cs[0], kKernelCode);
  write_msr(0xc0000084, 0x4701);
  steps = 0;
  check_trap("SYSRET that sets TF", attempt([] {
               asm volatile("mov %0, %%rsp; mov $landing, %%ecx; mov $0x102, %%r11d; sysretq" ::"r"(
                                user_stack_top - 64)
                            : "rcx", "r11", "memory");
             }),
             kNone);
  check("... traps before the next instruction", step_at[0], address_of(landing));
  check("... in ring 3", step_cs[0], kUserCode64);
  steps = 0;
  check_trap("SYSRET that clears TF", attempt([] {
               asm volatile(
                   "mov %0, %%rsp; mov $landing, %%ecx; mov $2, %%r11d; pushf; orl $0x100, (%%rsp); popf; "
                   "sysretq" ::"r"(user_stack_top - 64)
                   : "rcx", "r11", "memory");
             }),
             kNone);
  check("... does not trap", steps, 0);
  hooks[DB] = nullptr;
}

// LTR and LLDT read sixteen bytes. QEMU does not check the second eight.
void system_descriptors() {
  constexpr unsigned kFreeTask = 0x89, kLocalTable = 0x82;
  uint64_t* const entry = gdt + kFree / 8;
  const auto set = [entry](unsigned access, uint64_t upper) {
    entry[0] = descriptor(0x1000, 103, access, 0);
    entry[1] = upper;
  };
  const Function load_task = [] { asm volatile("ltr %w0" ::"r"(kFree) : "memory"); };
  const Function load_ldt = [] { asm volatile("lldt %w0" ::"r"(kFree) : "memory"); };
  if (under_slalom()) {
    set(kFreeTask, 0x8000);
    check_trap("LTR: base not canonical", attempt(load_task), GP, kFree);
    check("... the task is not busy", entry[0] & uint64_t{2} << 40, 0);
    set(kFreeTask, uint64_t{9} << 40);
    check_trap("LTR: second type not zero", attempt(load_task), GP, kFree);
    set(kLocalTable, 0xffff7fff);
    check_trap("LLDT: base not canonical", attempt(load_ldt), GP, kFree);
    set(kLocalTable, uint64_t{2} << 40);
    check_trap("LLDT: second type not zero", attempt(load_ldt), GP, kFree);
  }
  set(kLocalTable, 0xffff8000);
  check_trap("LLDT: base in the upper half", attempt(load_ldt), kNone);
  set(kFreeTask, 0xffff8000);
  check_trap("LTR: base in the upper half", attempt(load_task), kNone);
  check("... the task is busy", entry[0] & uint64_t{2} << 40, uint64_t{2} << 40);
  asm volatile("lldt %w0" ::"r"(0));
  load_tables();
}

void gs_base() {
  static word one = 111, two = 222;
  write_msr(0xc0000101, reinterpret_cast<word>(&one));
  write_msr(0xc0000102, reinterpret_cast<word>(&two));
  const auto read_gs = [] {
    word value;
    asm volatile("mov %%gs:0, %0" : "=r"(value));
    return value;
  };
  check("GS base", read_gs(), 111);
  asm volatile("swapgs");
  check("SWAPGS", read_gs(), 222);
  check("... the other one", read_msr(0xc0000102), reinterpret_cast<word>(&one));
  asm volatile("swapgs");
  write_msr(0xc0000100, reinterpret_cast<word>(&two));
  word value;
  asm volatile("mov %%fs:0, %0" : "=r"(value));
  check("FS base", value, 222);
  asm volatile("mov %w0, %%fs" ::"r"(kKernelData));
  check("loading FS loads its base", read_msr(0xc0000100), 0);
  if (under_slalom())
    check_trap("GS base not canonical", attempt([] { write_msr(0xc0000101, 0x800000000000); }), GP, 0);
}

}  // namespace

// 32-bit code. In ring 3 it records its state and ends. In ring 0 it switches to 16-bit code and back to
// 64-bit code.
asm(R"(
.code32
.globl compatible, compatible_kernel
compatible:
    inc %eax                    # REX in 64-bit code
    mov %esp, landed_sp
    mov %cs, landed_cs
    .byte 0x40, 0x40            # inc %eax twice
    mov %eax, noted
    int $0x80
compatible_kernel:
    movl $0x32, noted
    ljmp $0x68, $0x9000         # 16-bit code
.globl compatible_back
compatible_back:
    movl %eax, noted+16
    ljmp $8, $compatible_done
.code16
.globl narrow, narrow_end
narrow:
    mov $0xfff0, %ax
    add $0x20, %ax
    ljmpl $0x30, $compatible_back
narrow_end:
.code64
)");
extern "C" char narrow[], narrow_end[];

namespace {
void compatibility_mode() {
  const word values[5] = {address_of(compatible), kUserCode32, 2, address_of(user_stack_top) - 64, kUserData};
  for (int i = 0; i < 5; ++i) frame[i] = values[i];
  check_trap("compatibility mode in ring 3", attempt([] {
               asm volatile(
                   "push %4; push %3; push %2; push %1; push %0; mov $0x23, %%eax; mov %%eax, %%ds; xor "
                   "%%eax, %%eax; iretq" ::"m"(frame[0]),
                   "m"(frame[1]), "m"(frame[2]), "m"(frame[3]), "m"(frame[4])
                   : "memory");
             }),
             kNone);
  check("... runs 32-bit instructions", noted[0], 3);
  check("... CS", landed_cs & 0xffff, kUserCode32);
  check("... ESP", landed_sp & 0xffffffff, address_of(user_stack_top) - 64);
  // From 64 to 32 to 16 to 32 to 64 bits.
  for (word i = 0; i < static_cast<word>(narrow_end - narrow); ++i)
    at<uint8_t>(0x9000 + i) = static_cast<uint8_t>(narrow[i]);
  gdt[0x68 / 8] = descriptor(0, 0xffff, 0x9a, 0);
  noted[2] = 0;
  check_trap(
      "from 64 to 32 to 16 to 32 to 64 bits", attempt([] {
        asm volatile(
            "mov %%rsp, saved_stack; mov $0x10, %%eax; mov %%eax, %%ds; xor %%eax, %%eax; push $0x30; push "
            "$compatible_kernel; lretq; .globl compatible_done; compatible_done: mov saved_stack, %%rsp" ::
                : "rax", "memory");
      }),
      kNone);
  check("... was in 32-bit code", noted[0] & 0xffffffff, 0x32);
  check("... was in 16-bit code", noted[2] & 0xffffffff, 0x10);
}

}  // namespace

void run_tests() {
  interrupt_stacks();
  gates();
  interrupt_returns();
  system_calls();
  single_steps();
  system_descriptors();
  gs_base();
  compatibility_mode();
}
