// Changes of privilege in 32-bit protected mode: gates, far calls and returns, interrupt returns, stacks from
// the task state, virtual 8086 mode, 16-bit code.
#include "bare.h"

extern "C" char gate_entry[], user_landing[], conforming_entry[], v86_code[], v86_end[];

extern "C" {
word gate_stack[8], gate_cs, gate_ss, gate_sp;
volatile word landed_cs, landed_ds, landed_es, landed_fs, landed_sp;
}

// The target of a call gate: records its stack and returns, dropping two parameters.
asm(R"(
.globl gate_entry
gate_entry:
    mov %cs, gate_cs
    mov %ss, gate_ss
    mov %esp, gate_sp
    push %ecx
    push %esi
    push %edi
    push %es
    push %ds
    mov %ss, %ecx
    mov %ecx, %ds
    mov %ecx, %es
    lea 20(%esp), %esi
    mov $gate_stack, %edi
    mov $8, %ecx
    cld
    rep movsl
    pop %ds
    pop %es
    pop %edi
    pop %esi
    pop %ecx
    lret $8

.globl conforming_entry
conforming_entry:
    mov %cs, landed_cs
    lret

# A return to ring 3 lands here: notes what it finds, and ends the attempt.
.globl user_landing
user_landing:
    mov $0x23, %eax
    mov %ds, %ecx
    mov %es, %edx
    mov %fs, %ebx
    mov %eax, %ds
    mov %ecx, landed_ds
    mov %edx, landed_es
    mov %ebx, landed_fs
    mov %cs, landed_cs
    mov %esp, landed_sp
    int $0x80
)");

namespace {

// Entries from kFree on: 0 a call gate, 1 ring 1 code, 2 ring 1 data, 3 others.
constexpr uint16_t kGate = kFree, kCode1 = kFree + 8, kData1 = kFree + 16, kOther = kFree + 24;

void set_gate_to(uint16_t target, unsigned access, unsigned parameters = 2,
                 word entry = address_of(gate_entry)) {
  gdt[kGate / 8] = gate(entry, target, access, parameters);
}

const Function kCallGate = [] { asm volatile("push $0x1111; push $0x2222; lcall $0x63, $0" ::: "memory"); };
const Function kCallPlainGate = [] { asm volatile("lcall $0x60, $0" ::: "memory"); };

void call_gates() {
  set_gate_to(kKernelCode, 0xec);
  check_trap("call gate to ring 0", attempt_user([] {
               asm volatile(
                   "mov %%esp, landed_sp; push $0x1111; push $0x2222; lcall $0x63, $0; cmp %%esp, landed_sp; "
                   "je 1f; ud2; 1:" ::
                       : "memory");
             }),
             kNone);
  check("... runs in ring 0", gate_cs, kKernelCode);
  check("... on its stack", gate_ss, kKernelData);
  check("... which has six words", gate_sp, address_of(trap_stack_top) - 24);
  check("... return address CS", gate_stack[1] & 0xffff, kUserCode32);
  check("... parameters", gate_stack[2], 0x2222);
  check("... parameters", gate_stack[3], 0x1111);
  check("... old ESP", gate_stack[4], landed_sp - 8);
  check("... old SS", gate_stack[5] & 0xffff, kUserData);

  set_gate_to(kKernelCode, 0x8c);
  check_trap("call gate of ring 0 in ring 3", attempt_user(kCallGate), GP, kGate);
  set_gate_to(kKernelCode, 0x6c);
  check_trap("call gate not present", attempt_user(kCallGate), NP, kGate);
  set_gate_to(0, 0xec);
  check_trap("call gate to null", attempt_user(kCallGate), GP, 0);
  set_gate_to(kKernelData, 0xec);
  check_trap("call gate to data", attempt_user(kCallGate), GP, kKernelData);
  set_gate_to(0x200, 0xec);
  check_trap("call gate beyond the table", attempt_user(kCallGate), GP, 0x200);
  gdt[kOther / 8] = descriptor(0, 0xfffff, 0x1a, 0xc);
  set_gate_to(kOther, 0xec);
  check_trap("call gate to code not present", attempt_user(kCallGate), NP, kOther);
  set_gate_to(kUserCode32, 0xec);
  check_trap("call gate to an outer ring", attempt(kCallPlainGate), GP, kUserCode32 & ~3);
  gdt[kOther / 8] = descriptor(0, 0xfffff, 0x9e, 0xc);
  set_gate_to(kOther, 0xec, 0, address_of(conforming_entry));
  check_trap("call gate to conforming code", attempt_user([] {
               asm volatile("lcall $0x63, $0" ::: "memory");
             }),
             kNone);
  if (under_slalom()) check("... stays in ring 3", landed_cs, kOther | 3);
  check_trap("jump through a gate to ring 0",
             (set_gate_to(kKernelCode, 0xec), attempt_user([] { asm volatile("ljmp $0x63, $0"); })), GP,
             kKernelCode);
}

// Ring 1, whose stack in the task state may be invalid without affecting ring 0's.
void inner_stacks() {
  gdt[kCode1 / 8] = descriptor(0, 0xfffff, 0xba, 0xc);
  gdt[kData1 / 8] = descriptor(0, 0xfffff, 0xb2, 0xc);
  static uint8_t stack[1024];
  const auto set_stack = [](uint16_t ss) {
    const word top = reinterpret_cast<word>(stack + sizeof stack);
    __builtin_memcpy(task_state.bytes + 12, &top, 4);
    __builtin_memcpy(task_state.bytes + 16, &ss, 2);
  };
  set_gate_to(kCode1, 0xec);
  set_stack(kData1 | 1);
  check_trap("call gate to ring 1", attempt_user(kCallGate), kNone);
  check("... runs in ring 1", gate_cs, kCode1 | 1);
  check("... on its stack", gate_ss, kData1 | 1);
  set_stack(0);
  check_trap("its stack is null", attempt_user(kCallGate), TS, 0);
  set_stack(kData1);
  check_trap("its stack has another RPL", attempt_user(kCallGate), TS, kData1);
  set_stack(kKernelData | 1);
  check_trap("its stack is of ring 0", attempt_user(kCallGate), TS, kKernelData);
  set_stack(kCode1 | 1);
  check_trap("its stack is code", attempt_user(kCallGate), TS, kCode1);
  set_stack(0x201);
  check_trap("its stack is beyond the table", attempt_user(kCallGate), TS, 0x200);
  gdt[kOther / 8] = descriptor(0, 0xfffff, 0x32, 0xc);
  set_stack(kOther | 1);
  check_strict("its stack is not present", attempt_user(kCallGate), SS, kOther);
  if (under_slalom()) {  // QEMU checks no limits
    gdt[kOther / 8] = descriptor(0, 0xfff, 0xb2, 4);
    set_stack(kOther | 1);
    check_trap("its stack is beyond its limit", attempt_user(kCallGate), SS, kOther);
    set_gate(0x90, stub_of(0x90), kCode1, 0xee);
    check_trap("... for INT n", attempt_user([] { asm volatile("int $0x90"); }), SS, kOther);
    set_gate(UD, stub_of(UD), kCode1, 0x8e);
    check_trap("... for an exception", attempt_user([] { asm volatile("ud2"); }), SS, kOther | 1);
    set_gate(UD, stub_of(UD), kKernelCode, 0x8e);
  }
  // An interrupt gate to ring 1.
  set_stack(kData1 | 1);
  set_gate(0x90, stub_of(0x90), kCode1, 0xee);
  set_stack(0);
  check_trap("INT n to ring 1, its stack is null", attempt_user([] { asm volatile("int $0x90"); }), TS, 0);
  set_gate(0x90, stub_of(0x90), kUserCode32, 0x8e);
  check_trap("INT n to an outer ring", attempt([] { asm volatile("int $0x90"); }), GP, kUserCode32 & ~3);
  set_gate(0x90, stub_of(0x90), kKernelCode, 0x8e);
}

volatile word frame[6];  // eip cs eflags esp ss
const Function kReturn = [] {
  asm volatile("mov %0, %%fs; push %5; push %4; push %3; push %2; push %1; iret" ::"r"(kUserData),
               "m"(frame[0]), "m"(frame[1]), "m"(frame[2]), "m"(frame[3]), "m"(frame[4])
               : "memory");
};
const Trap& returns(word cs, word ss, word ip = address_of(user_landing)) {
  frame[0] = ip;
  frame[1] = cs;
  frame[2] = 2;
  frame[3] = address_of(user_stack_top) - 64;
  frame[4] = ss;
  return attempt(kReturn);
}

void interrupt_returns() {
  check_trap("IRET to ring 3", returns(kUserCode32, kUserData), kNone);
  check("... its code", landed_cs, kUserCode32);
  check("... its stack", landed_sp, address_of(user_stack_top) - 64);
  check("... DS of ring 0 is taken away", landed_ds, 0);
  check("... ES, too", landed_es, 0);
  check("... FS of ring 3 stays", landed_fs, kUserData);
  check_trap("IRET: null CS", returns(0, kUserData), GP, 0);
  check_trap("IRET: data as CS", returns(kUserData, kUserData), GP, kUserData & ~3);
  check_trap("IRET: CS beyond the table", returns(0x203, kUserData), GP, 0x200);
  check_trap("IRET: CS of ring 0 with RPL 3", returns(kKernelCode | 3, kUserData), GP, kKernelCode);
  check_trap("IRET: null SS", returns(kUserCode32, 0), GP, 0);
  check_trap("IRET: SS of ring 0", returns(kUserCode32, kKernelData), GP, kKernelData);
  check_trap("IRET: SS with another RPL", returns(kUserCode32, kUserData & ~3), GP, kUserData & ~3);
  gdt[kOther / 8] = descriptor(0, 0xfffff, 0x72, 0xc);
  check_strict("IRET: SS not present", returns(kUserCode32, kOther | 3), SS, kOther);
  gdt[kOther / 8] = descriptor(0, 0xfffff, 0x7a, 0xc);
  check_trap("IRET: CS not present", returns(kOther | 3, kUserData), NP, kOther);
  gdt[kOther / 8] = descriptor(0, 0x10, 0xfa, 0xc);
  if (under_slalom()) check_trap("IRET: EIP beyond the limit", returns(kOther | 3, kUserData), GP, 0);
  check_trap("IRET in ring 3 to ring 0", attempt_user([] {
               asm volatile("pushf; push $8; push $0; iret" ::: "memory");
             }),
             GP, kKernelCode);
  // The flags that IRET may change in ring 3.
  static volatile word flags;
  check_trap("IRET in ring 3", attempt_user([] {
               asm volatile("push $0x247ed7; push %%cs; push $1f; iret; 1: pushf; pop %0; push $2; popf"
                            : "=r"(flags)::"memory");
             }),
             kNone);
  check("... changes neither IF nor IOPL", flags & 0x3200, 0);
  check("... but the rest", flags & 0x244cd5, 0x244cd5);
  check_trap("far return to ring 3", attempt([] {
               asm volatile("push %0; push %1; push %2; push %3; lret" ::"r"(word{kUserData}),
                            "r"(address_of(user_stack_top) - 64), "r"(word{kUserCode32}),
                            "r"(address_of(user_landing))
                            : "memory");
             }),
             kNone);
  check("... its code", landed_cs, kUserCode32);
  check_trap("far return to ring 0 in ring 3", attempt_user([] {
               asm volatile("push $8; push $0; lret" ::: "memory");
             }),
             GP, kKernelCode);
}

void far_jumps() {
#define JUMP(name, selector, vector, error) \
  check_trap("far jump: " name, attempt([] { asm volatile("ljmp $" #selector ", $1f; 1:"); }), vector, error)
  JUMP("null", 0, GP, 0);
  JUMP("data", 0x10, GP, 0x10);
  JUMP("beyond the table", 0x200, GP, 0x200);
  JUMP("ring 3 code in ring 0", 0x1b, GP, 0x18);
  JUMP("the same segment", 0x8, kNone, 0);
  gdt[kOther / 8] = descriptor(0, 0xfffff, 0x1a, 0xc);
  JUMP("not present", 0x78, NP, kOther);
  check_trap("far jump: ring 0 code in ring 3", attempt_user([] { asm volatile("ljmp $8, $1f; 1:"); }), GP,
             kKernelCode);
  gdt[kOther / 8] = descriptor(0, 0xfffff, 0x9c, 0xc);
  check_trap("far jump: conforming code in ring 3", attempt_user([] {
               asm volatile("ljmp $0x78, $1f; 1: mov %%cs, landed_cs; ljmp $0x1b, $2f; 2:" ::: "memory");
             }),
             kNone);
  check("... keeps ring 3", landed_cs, kOther | 3);
}

}  // namespace

// 16-bit code below 1 MiB, for virtual 8086 mode.
asm(R"(
.code16
.globl v86_code, v86_end
v86_code:
    mov $0x1234, %ax
    mov %ax, %ds
    movw $0x5678, (0x10)
    mov %ds, %bx
    int $0x21
    mov $0x99, %cx
    cli
v86_end:
.code32
)");

namespace {

Frame v86_frame;
unsigned v86_calls;

void virtual_8086() {
  constexpr word kCode = 0x9000;  // 0900:0000
  const uint8_t* from = reinterpret_cast<const uint8_t*>(v86_code);
  for (word i = 0; i < static_cast<word>(v86_end - v86_code); ++i) at<uint8_t>(kCode + i) = from[i];
  at<uint16_t>(0x12350) = 0;
  v86_calls = 0;
  // INT 21h traps as #GP, since IOPL is below 3, and the handler skips it. CLI ends the code.
  hooks[GP] = [](Frame* f) {
    v86_frame = *f;
    if (++v86_calls == 1) {
      f->ip += 2;
      return;
    }
    hooks[GP] = nullptr;
    asm volatile("int $0x81");
  };
  (void)attempt([] {
    asm volatile(
        "push $0; push $0; push $0; push $0; push $0x8000; push $0x1000; push $0x20002; push $0x900; push "
        "$0; iret" ::
            : "memory");
  });
  hooks[GP] = nullptr;
  check("V86: two traps", v86_calls, 2);
  check("V86: wrote through a real-mode segment", at<uint16_t>(0x12350), 0x5678);
  check("V86: VM is saved", v86_frame.flags & 0x20000, 0x20000);
  check("V86: CS", v86_frame.cs & 0xffff, 0x900);
  check("V86: SS", v86_frame.ss & 0xffff, 0x8000);
  check("V86: SP", v86_frame.sp & 0xffff, 0x1000);
  check("V86: DS is saved", v86_frame.v86_ds & 0xffff, 0x1234);
  check("V86: the handler's DS", v86_frame.ds & 0xffff, 0);
  check("V86: registers", v86_frame.bx & 0xffff, 0x1234);
  check("V86: went on after the trap", v86_frame.cx & 0xffff, 0x99);
  check("V86: error code", v86_frame.error, 0);
  // With IOPL 3, INT n uses the protected-mode table, whose gate must be accessible to ring 3.
  const Trap& trap = attempt([] {
    asm volatile(
        "push $0; push $0; push $0; push $0; push $0x8000; push $0x1000; push $0x23002; push $0x900; push "
        "$0; iret" ::
            : "memory");
  });
  check_trap("V86: INT n with IOPL 3 through a ring 0 gate", trap, GP, 0x21 * 8 + 2);
}

// 16-bit code and stack in protected mode.
void narrow_code() {
  static volatile word result;
  gdt[kOther / 8] = descriptor(0, 0xffff, 0x9a, 0);
  constexpr word kCode = 0x9000;
  // mov $0x1234, %ax; add $0xf000, %ax; ljmpl $8, back
  const uint8_t code[] = {0xb8, 0x34, 0x12, 0x05, 0x00, 0xf0, 0x66, 0xea, 0, 0, 0, 0, 8, 0};
  for (unsigned i = 0; i < sizeof code; ++i) at<uint8_t>(kCode + i) = code[i];
  check_trap(
      "16-bit code segment", attempt([] {
        word value;
        asm volatile("movl $1f, 0x9008; xor %%eax, %%eax; ljmp $0x78, $0x9000; 1:" : "=a"(value)::"memory");
        result = value;
      }),
      kNone);
  check("... computes with 16 bits", result, 0x0234);
  // A 16-bit interrupt gate pushes words.
  static volatile word moved;
  gdt[kOther / 8] = descriptor(0, 0xffff, 0x9a, 0xc);
  const uint8_t handler[] = {0x89, 0xe0, 0x66, 0xcf};  // mov %esp, %eax; iretw
  for (unsigned i = 0; i < sizeof handler; ++i) at<uint8_t>(0x9100 + i) = handler[i];
  const uint8_t caller[] = {0xcd, 0x90,
                            0xc3};  // int 0x90; ret, below 64 KiB since the return address has 16 bits
  for (unsigned i = 0; i < sizeof caller; ++i) at<uint8_t>(0x9200 + i) = caller[i];
  set_gate(0x90, 0x9100, kKernelCode, 0x86);
  check_trap("16-bit interrupt gate", attempt([] {
               word in, out;
               asm volatile("mov %%esp, %1; call *%2" : "=a"(in), "=&b"(out) : "r"(0x9200) : "memory");
               moved = out - in;
             }),
             kNone);
  check("... pushes three words of 16 bits", moved, 4 + 6);
  set_gate(0x90, stub_of(0x90), kKernelCode, 0x8e);
}

}  // namespace

void run_tests() {
  call_gates();
  inner_stacks();
  interrupt_returns();
  far_jumps();
  narrow_code();
  virtual_8086();
}
