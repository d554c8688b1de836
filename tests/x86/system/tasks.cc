// Hardware task switches in 32-bit protected mode: by jumps, calls, interrupts and IRET, directly and through
// task gates, to ring 0 and ring 3, with 32-bit and 16-bit task states; and refused switches.
#include "bare.h"

extern "C" {
word task_noted[6];  // task register, flags, eax, CR0, top of the stack
volatile unsigned task_runs;
}
extern "C" char task_entry[], task_jumps_back[], task_in_user[];

// A task that records its state and returns. If it is called again, it continues behind its IRET.
asm(R"(
.globl task_entry, task_jumps_back, task_in_user
task_entry:
    mov %eax, task_noted+8
    xor %eax, %eax
    str %eax
    mov %eax, task_noted
    pushf
    pop %eax
    mov %eax, task_noted+4
    mov %cr0, %eax
    mov %eax, task_noted+12
    mov (%esp), %eax
    mov %eax, task_noted+16
    incl task_runs
    mov $0x5eed, %ebx
    mov task_noted+8, %eax
    iret
    inc %eax
    jmp task_entry

task_jumps_back:
    incl task_runs
    xor %eax, %eax
    str %eax
    mov %eax, task_noted
    pushf
    pop %eax
    mov %eax, task_noted+4
    ljmp $0x40, $0

task_in_user:
    mov %cs, task_noted
    int $0x80
)");

namespace {

constexpr uint16_t kB = kFree, kTaskGate = kFree + 8, kSmall = kFree + 16;

struct [[gnu::packed]] State32 {
  uint16_t link, r0;
  uint32_t esp0;
  uint16_t ss0, r1;
  uint32_t esp1, ss1, esp2, ss2, cr3, eip, eflags, eax, ecx, edx, ebx, esp, ebp, esi, edi;
  uint32_t es, cs, ss, ds, fs, gs, ldt;
  uint16_t trap, map;
};
static_assert(sizeof(State32) == 104);
struct [[gnu::packed]] State16 {
  uint16_t link, sp0, ss0, sp1, ss1, sp2, ss2, ip, flags, ax, cx, dx, bx, sp, bp, si, di, es, cs, ss, ds, ldt;
};
static_assert(sizeof(State16) == 44);

State32 b;
State16 narrow;
uint32_t stack[256];

bool busy(uint16_t selector) {
  return (gdt[selector / 8] >> 41) & 1;
}

void prepare(word entry = address_of(task_entry)) {
  b = State32{};
  b.esp0 = reinterpret_cast<word>(trap_stack_top);
  b.ss0 = kKernelData;
  b.eip = entry;
  b.eflags = 2;
  b.eax = 0x1000;
  b.esp = reinterpret_cast<word>(stack + 255);
  b.cs = kKernelCode;
  b.ss = b.ds = b.es = b.fs = b.gs = kKernelData;
  b.map = 104;
  stack[255] = 0xabcd;
  gdt[kB / 8] = descriptor(reinterpret_cast<word>(&b), sizeof b - 1, 0x89, 0);
  gdt[kTaskGate / 8] = gate(0, kB, 0x85);
  task_runs = 0;
}

const Function kCall = [] { asm volatile("lcall $0x60, $0" ::: "memory"); };
const Function kCallByGate = [] { asm volatile("lcall $0x68, $0" ::: "memory"); };

void calls() {
  prepare();
  word a = 11, c = 22, s = 33;
  asm volatile("clts; lcall $0x60, $0" : "+a"(a), "+c"(c), "+S"(s)::"memory");
  check("call: the task ran", task_runs, 1);
  check("... its task register", task_noted[0], kB);
  check("... its nested flag", task_noted[1] & 0x4000, 0x4000);
  check("... its register", task_noted[2], 0x1000);
  check("... CR0.TS", task_noted[3] & 8, 8);
  check("... its stack", task_noted[4], 0xabcd);
  check("... its link", b.link, kTask);
  check("back: registers", a == 11 && c == 22 && s == 33, 1);
  check("back: nested flag", read_flags() & 0x4000, 0);
  word tr = 0;
  asm volatile("str %0" : "=r"(tr));
  check("back: task register", tr & 0xffff, kTask);
  check("the caller was busy all the time", busy(kTask), 1);
  check("the task is no longer", busy(kB), 0);
  check("its state was saved", b.ebx, 0x5eed);
  check("... without the nested flag", b.eflags & 0x4000, 0);
  check("... its code", b.cs & 0xffff, kKernelCode);
  asm volatile("clts");
  check_trap("called again", attempt(kCall), kNone);
  check("... it goes on behind IRET", task_noted[2], 0x1001);
  prepare();
  check_trap("call through a task gate", attempt(kCallByGate), kNone);
  check("... ran", task_runs, 1);
  prepare(address_of(task_jumps_back));
  asm volatile("ljmp $0x60, $0" ::: "memory");
  check("jump: the task ran", task_runs, 1);
  check("... not nested", task_noted[1] & 0x4000, 0);
  check("... its link stays", b.link, 0);
  check("... jumped back: not busy", busy(kB), 0);
  check("... this one is", busy(kTask), 1);
  asm volatile("clts");
}

void interrupts() {
  prepare();
  set_gate(0x92, 0, kB, 0x85);
  asm volatile("int $0x92" ::: "memory");
  check("INT n through a task gate", task_runs, 1);
  check("... nested", task_noted[1] & 0x4000, 0x4000);
  check("... no error code", task_noted[4], 0xabcd);
  prepare();
  check_trap("INT n in ring 3 through a task gate of ring 0", attempt_user([] { asm volatile("int $0x92"); }),
             GP, 0x92 * 8 + 2);
  set_gate(0x92, 0, kB, 0xe5);
  check_trap("INT n in ring 3 through an open task gate", attempt_user([] { asm volatile("int $0x92"); }),
             kNone);
  check("... ran", task_runs, 1);
  asm volatile("clts");
}

void refusals() {
  prepare();
  check_trap("call to the running task", attempt([] { asm volatile("lcall $0x40, $0"); }), GP, kTask);
  check_trap("call in ring 3", attempt_user(kCall), GP, kB);
  check_trap("call through a gate in ring 3", attempt_user(kCallByGate), GP, kTaskGate);
  gdt[kB / 8] = descriptor(reinterpret_cast<word>(&b), sizeof b - 1, 0x09, 0);
  check_trap("not present", attempt(kCall), NP, kB);
  check_trap("not present, through a gate", attempt(kCallByGate), NP, kB);
  gdt[kTaskGate / 8] = gate(0, kB, 0x05);
  check_trap("gate not present", attempt(kCallByGate), NP, kTaskGate);
  gdt[kTaskGate / 8] = gate(0, kKernelData, 0x85);
  check_trap("gate to data", attempt(kCallByGate), GP, kKernelData);
  gdt[kTaskGate / 8] = gate(0, kB | 4, 0x85);
  check_strict("gate to the local table", attempt(kCallByGate), GP, kB | 4);
  gdt[kB / 8] = descriptor(reinterpret_cast<word>(&b), 102, 0x89, 0);
  check_trap("too short", attempt(kCall), TS, kB);
  // IRET with the nested flag and an invalid link.
  const Function nested_return = [] {
    asm volatile("pushf; orl $0x4000, (%%esp); popf; iret" ::: "memory", "cc");
  };
  task_state.bytes[0] = kKernelData;
  check_trap("IRET to no task", attempt(nested_return), TS, kKernelData);
  prepare();
  task_state.bytes[0] = kB;
  check_trap("IRET to a task that is not busy", attempt(nested_return), TS, kB);
  check("nothing ran", task_runs, 0);
}

// After the switch the new task turns out to be invalid: the fault belongs to the new task.
void bad_tasks() {
  const auto fails = [](const char* name, int vector, word error) {
    const Trap& trap = attempt(kCall);
    check_trap(name, trap, vector, error);
    word tr = 0;
    asm volatile("str %0" : "=r"(tr));
    check("... in the new task", tr & 0xffff, kB);
    if (under_slalom()) check("... before its first instruction", trap.ip, b.eip);
    load_tables();
    gdt[kTask / 8] |= uint64_t{2} << 40;
  };
  prepare();
  b.ds = 0x200;
  fails("DS beyond the table", TS, 0x200);
  prepare();
  b.es = kKernelCode32 + 8;  // a gap in the table
  fails("ES of no type", TS, kKernelCode32 + 8);
  prepare();
  gdt[kSmall / 8] = descriptor(0, 0xfff, 0x12, 4);
  b.fs = kSmall;
  fails("FS not present", NP, kSmall);
}

void other_kinds() {
  prepare(address_of(task_in_user));
  b.cs = kUserCode32;
  b.ss = b.ds = b.es = b.fs = b.gs = kUserData;
  b.esp = reinterpret_cast<word>(user_stack_top);
  (void)attempt([] { asm volatile("ljmp $0x60, $0"); });
  check("a task in ring 3", task_noted[0] & 0xffff, kUserCode32);
  load_tables();
  // Virtual 8086 mode: HLT ends it with #GP.
  prepare(0);
  b.eflags = 0x20002;
  b.cs = 0x900;
  b.ss = 0x800;
  b.esp = 0x1000;
  b.ds = b.es = b.fs = b.gs = 0x700;
  at<uint8_t>(0x9000) = 0xf4;
  const Trap& v86 = attempt([] { asm volatile("ljmp $0x60, $0"); });
  check_trap("a task in virtual 8086 mode", v86, GP, 0);
  check("... its flags", v86.flags & 0x20000, 0x20000);
  check("... its code", v86.cs, 0x900);
  check("... its data", v86.frame.v86_ds & 0xffff, 0x700);
  load_tables();
  // Code and stack from a local descriptor table.
  static uint64_t local[3];
  local[1] = descriptor(0, 0xfffff, 0x9a, 0xc);
  local[2] = descriptor(0, 0xfffff, 0x92, 0xc);
  prepare();
  gdt[kSmall / 8] = descriptor(reinterpret_cast<word>(local), sizeof local - 1, 0x82, 0);
  b.ldt = kSmall;
  b.cs = 0x0c;
  b.ss = b.ds = b.es = 0x14;
  check_trap("a task with a local table", attempt(kCall), kNone);
  check("... ran", task_runs, 1);
  check("... its code was saved", b.cs & 0xffff, 0x0c);
  word ldtr = 0;
  asm volatile("sldt %0" : "=r"(ldtr));
  check("... back without it", ldtr & 0xffff, 0);
  // 16-bit state; its code must lie below 64 KiB.
  narrow = State16{};
  const uint8_t code[] = {0xa3, 0, 0, 0, 0, 0xcf};  // mov %eax, ...; iret
  for (unsigned i = 0; i < sizeof code; ++i) at<uint8_t>(0x9000 + i) = code[i];
  at<uint32_t>(0x9001) = reinterpret_cast<word>(&task_noted[2]);
  narrow.ip = 0x9000;
  narrow.flags = 2;
  narrow.ax = 0x77;
  narrow.sp = 0x9800;
  narrow.cs = kKernelCode;
  narrow.ss = narrow.ds = narrow.es = kKernelData;
  gdt[kB / 8] = descriptor(reinterpret_cast<word>(&narrow), sizeof narrow - 1, 0x81, 0);
  check_trap("a 16-bit task state", attempt(kCall), kNone);
  check("... its register", task_noted[2] & 0xffff, 0x77);
  check("... its link", narrow.link, kTask);
  asm volatile("clts");
}

// A double fault through a task gate, which works even if the kernel stack is invalid.
void double_fault() {
  prepare();
  static volatile word code;
  set_gate(DF, 0, kB, 0x85);
  set_gate(GP, stub_of(GP), kKernelCode, 0x0e);
  static uint8_t handler[] = {0x58, 0xa3, 0, 0, 0, 0, 0xcd, 0x81};  // pop %eax; mov %eax, code; int $0x81
  const word address = reinterpret_cast<word>(&code);
  __builtin_memcpy(handler + 2, &address, 4);
  code = 99;
  b.eip = reinterpret_cast<word>(handler);
  const Trap& trap = attempt([] { asm volatile("mov %w0, %%fs" ::"r"(0x200)); });
  check_trap("double fault through a task gate", trap, 0x81);
  check("... its error code", code, 0);
  check("... its link", b.link, kTask);
  set_gate(DF, stub_of(DF), kKernelCode, 0x8e);
  set_gate(GP, stub_of(GP), kKernelCode, 0x8e);
  load_tables();
}

}  // namespace

void run_tests() {
  calls();
  interrupts();
  refusals();
  bad_tasks();
  other_kinds();
  double_fault();
}
