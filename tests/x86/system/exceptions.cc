// Every exception that an instruction can raise, with its error code, saved address and flags; traps and
// faults; nested and double faults. Built for 32-bit and 64-bit mode.
#include "bare.h"

namespace {

extern "C" char de_at[], bp_next[], ud_at[], of_next[], int_at[], int_next[], bound_at[], mf_at[], xm_at[];

void divide() {
  const Trap& trap = attempt([] {
    asm volatile("xor %%ecx, %%ecx; mov $1, %%eax; cdq; .globl de_at; de_at: idiv %%ecx" ::
                     : "eax", "ecx", "edx");
  });
  check_trap("#DE by zero", trap, DE);
  check("#DE is a fault", trap.ip, address_of(de_at));
  check_trap(
      "#DE quotient overflow", attempt([] {
        asm volatile("mov $1, %%edx; xor %%eax, %%eax; mov $1, %%ecx; div %%ecx" ::: "eax", "ecx", "edx");
      }),
      DE);
  check_trap(
      "#DE most negative by -1", attempt([] {
        asm volatile("mov $0x80000000, %%eax; cdq; mov $-1, %%ecx; idiv %%ecx" ::: "eax", "ecx", "edx");
      }),
      DE);
}

unsigned steps;
word step_at[16];
word step_status;
void note_step(Frame* frame) {
  if (steps < 16) step_at[steps] = frame->ip;
  ++steps;
  asm volatile("mov %%db6, %0" : "=r"(step_status));
}
extern "C" char ss_1[], ss_2[], ss_3[], ms_1[], rp_1[], rp_2[];
#define SET_TRAP_FLAG "pushf; orl $0x100, (" STACK_POINTER "); popf\n"
#define CLEAR_TRAP_FLAG "pushf; andl $~0x100, (" STACK_POINTER "); popf\n"

void single_step() {
  hooks[DB] = note_step;
  asm volatile("mov %0, %%db6" ::"r"(word{0}));
  steps = 0;
  asm volatile(SET_TRAP_FLAG
               ".globl ss_1, ss_2, ss_3\n"
               "nop\n"
               "ss_1: jmp ss_2; ud2\n"
               "ss_2: " CLEAR_TRAP_FLAG "ss_3: nop; nop" ::
                   : "memory", "cc");
  check("TF: a trap after each instruction, the one that clears it included", steps, 5);
  check("TF: not after the instruction that sets it", step_at[0], address_of(ss_1));
  check("TF: after a jump at its target", step_at[1], address_of(ss_2));
  check("TF: last after popf", step_at[4], address_of(ss_3));
  check("DR6.BS", step_status & 0xe00f, 0x4000);
  // The debug exception is delayed while MOV SS shields the next instruction.
  steps = 0;
  asm volatile("mov %%ss, %%ecx\n" SET_TRAP_FLAG
               ".globl ms_1\n"
               "mov %%ecx, %%ss\n"
               "nop\n"
               "ms_1: " CLEAR_TRAP_FLAG "nop" ::
                   : "ecx", "memory", "cc");
  check("TF: no trap between MOV SS and the next instruction", step_at[0], address_of(ms_1));
  // Each iteration of a repeated instruction is a separate trap.
  steps = 0;
  static char buffer[4];
  word count = 3, to = reinterpret_cast<word>(buffer);
  asm volatile(SET_TRAP_FLAG
               ".globl rp_1, rp_2\n"
               "rp_1: rep stosb\n"
               "rp_2: " CLEAR_TRAP_FLAG "nop"
               : "+c"(count), "+D"(to)
               : "a"('x')
               : "memory", "cc");
  check("TF: REP traps in each iteration", step_at[0] == address_of(rp_1) && step_at[1] == address_of(rp_1),
        1);
  check("TF: REP leaves after the last one", step_at[2], address_of(rp_2));
  // A software interrupt cancels the step; its handler is not stepped.
  steps = 0;
  static word in_handler;
  hooks[0x90] = [](Frame* frame) {
    in_handler = read_flags(), check("TF is saved", frame->flags & 0x100, 0x100);
  };
  asm volatile(SET_TRAP_FLAG "int $0x90\n" CLEAR_TRAP_FLAG "nop" ::: "memory", "cc");
  check("a gate clears TF", in_handler & 0x100, 0);
  hooks[DB] = hooks[0x90] = nullptr;
}

void software_interrupts() {
  const Trap& trap = attempt([] { asm volatile("int3; .globl bp_next; bp_next: nop"); });
  check_trap("#BP", trap, BP);
  check("#BP is a trap", trap.ip, address_of(bp_next));
  check("INT n returns behind itself",
        attempt([] { asm volatile("int $0x81; .globl int_next; int_next: nop"); }).ip, address_of(int_next));
  const Trap& user = attempt_user([] { asm volatile(".globl int_at; int_at: int $0x81"); });
  check_trap("INT n in ring 3 through a ring 0 gate", user, GP, idt_error(0x81));
  check("... is a fault", user.ip, address_of(int_at));
  check_trap("INT3 in ring 3 through a ring 0 gate", attempt_user([] { asm volatile("int3"); }), GP,
             idt_error(3));
  set_gate(BP, stub_of(BP), kKernelCode, 0xee);
  check_trap("INT3 in ring 3 through a ring 3 gate", attempt_user([] { asm volatile("int3"); }), BP);
  set_gate(BP, stub_of(BP), kKernelCode, 0x8e);
#ifndef __x86_64__
  const Trap& overflow = attempt([] {
    asm volatile("mov $0x7f, %%al; add $1, %%al; into; .globl of_next; of_next: nop" ::: "eax", "cc");
  });
  check_trap("#OF", overflow, OF);
  check("#OF is a trap", overflow.ip, address_of(of_next));
  check_trap("INTO without overflow", attempt([] {
               asm volatile("xor %%eax, %%eax; into" ::: "eax", "cc");
             }),
             kNone);
  static int32_t bounds[2] = {-5, 5};
  check_trap("BOUND inside", attempt([] { asm volatile("bound %0, %1" ::"r"(5), "m"(bounds)); }), kNone);
  const Trap& bound =
      attempt([] { asm volatile(".globl bound_at; bound_at: bound %0, %1" ::"r"(6), "m"(bounds)); });
  check_trap("#BR above", bound, BR);
  check("#BR is a fault", bound.ip, address_of(bound_at));
  check_trap("#BR below", attempt([] { asm volatile("bound %0, %1" ::"r"(-6), "m"(bounds)); }), BR);
#endif
  // Interrupt gates clear IF, trap gates do not; both clear TF.
  static word flags_in_handler;
  hooks[0x90] = [](Frame* frame) {
    flags_in_handler = read_flags();
    check("saved IF", frame->flags & 0x200, 0x200);
  };
  set_gate(0x90, stub_of(0x90), kKernelCode, 0x8e);
  asm volatile("sti; int $0x90; cli");
  check("an interrupt gate clears IF", flags_in_handler & 0x200, 0);
  set_gate(0x90, stub_of(0x90), kKernelCode, 0x8f);
  asm volatile("sti; int $0x90; cli");
  check("a trap gate leaves IF", flags_in_handler & 0x200, 0x200);
  hooks[0x90] = nullptr;
}

void undefined() {
  const Trap& trap = attempt([] { asm volatile(".globl ud_at; ud_at: ud2"); });
  check_trap("#UD", trap, UD);
  check("#UD is a fault", trap.ip, address_of(ud_at));
  check_trap("#UD LOCK on a register", attempt([] { asm volatile(".byte 0xf0, 0x01, 0xc0"); }), UD);
  if (under_slalom())  // QEMU ignores this prefix
    check_trap("#UD LOCK on MOV", attempt([] {
                 asm volatile(".byte 0xf0; movl %%eax, scratch_word" ::: "memory");
               }),
               UD);
  check_trap("#UD MOV CS", attempt([] { asm volatile("xor %%eax, %%eax; .byte 0x8e, 0xc8" ::: "eax"); }), UD);
  check_trap("#UD LEA of a register", attempt([] { asm volatile(".byte 0x8d, 0xc0"); }), UD);
  check_trap(
      "#GP 16 bytes of instruction", attempt([] {
        asm volatile(".byte 0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x66,0x90");
      }),
      GP, 0);
  check_trap("MOV from CR1", attempt([] { asm volatile(".byte 0x0f, 0x20, 0xc8" ::: "eax"); }), UD);
#ifdef __x86_64__
  check_trap("#UD PUSH ES in 64-bit code", attempt([] { asm volatile(".byte 0x06"); }), UD);
  check_trap("#UD DAA in 64-bit code", attempt([] { asm volatile(".byte 0x27"); }), UD);
  check_trap("#UD far call with immediate in 64-bit code",
             attempt([] { asm volatile(".byte 0x9a,0,0,0,0,8,0"); }), UD);
#else
  check_trap("#UD SWAPGS in 32-bit code", attempt([] { asm volatile(".byte 0x0f, 0x01, 0xf8"); }), UD);
#endif
}

void privileged() {
#define PRIVILEGED(text)                                             \
  check_trap("#GP in ring 3: " text, attempt_user([] {               \
               asm volatile(text ::: "eax", "ecx", "edx", "memory"); \
             }),                                                     \
             GP, 0)
  PRIVILEGED("hlt");
  PRIVILEGED("cli");
  PRIVILEGED("sti");
  PRIVILEGED("clts");
  PRIVILEGED("invd");
  PRIVILEGED("wbinvd");
  PRIVILEGED("invlpg 0");
  PRIVILEGED("lgdt scratch_word");
  PRIVILEGED("lidt scratch_word");
  PRIVILEGED("lldt %%ax");
  PRIVILEGED("ltr %%ax");
  PRIVILEGED("lmsw %%ax");
  PRIVILEGED("mov $0x10, %%ecx; rdmsr");
  PRIVILEGED("mov $0x10, %%ecx; wrmsr");
  PRIVILEGED("in $0x60, %%al");
  PRIVILEGED("out %%al, $0x80");
  PRIVILEGED("insb");
  PRIVILEGED("outsb");
#ifdef __x86_64__
  PRIVILEGED("mov %%cr0, %%rax");
  PRIVILEGED("mov %%rax, %%cr3");
  PRIVILEGED("mov %%db7, %%rax");
  PRIVILEGED("swapgs");
  PRIVILEGED("sysretq");
#else
  PRIVILEGED("mov %%cr0, %%eax");
  PRIVILEGED("mov %%eax, %%cr3");
  PRIVILEGED("mov %%db7, %%eax");
#endif
  // The I/O permission map of the task state allows single ports.
  task_state.bytes[104 + 0x80 / 8] = 0xfe;
  check_trap("open port", attempt_user([] { asm volatile("out %%al, $0x80" ::: "memory"); }), kNone);
  check_trap("open port, closed neighbour", attempt_user([] {
               asm volatile("out %%ax, $0x80" ::: "memory");
             }),
             GP, 0);
  task_state.bytes[104 + 0x80 / 8] = 0xff;
  user_flags = 0x3002;  // IOPL 3
  check_trap("ports with IOPL 3", attempt_user([] { asm volatile("out %%al, $0x80" ::: "memory"); }), kNone);
  check_trap("CLI with IOPL 3", attempt_user([] { asm volatile("cli"); }), kNone);
  check_trap("HLT with IOPL 3", attempt_user([] { asm volatile("hlt"); }), GP, 0);
  user_flags = 2;
  // POPF in ring 3 silently keeps IF and IOPL.
  static volatile word flags;
  check_trap("POPF in ring 3",
             attempt_user([] { asm volatile("push $0x3202; popf; pushf; pop %0"
                                            : "=r"(flags)); }), kNone);
  check("... leaves IF and IOPL", flags & 0x3200, 0);
  write_cr4(read_cr4() | 4);
  check_trap("RDTSC in ring 3 with CR4.TSD", attempt_user([] {
               asm volatile("rdtsc" ::: "eax", "edx");
             }),
             GP, 0);
  check_trap("RDTSC in ring 0 with CR4.TSD", attempt([] { asm volatile("rdtsc" ::: "eax", "edx"); }), kNone);
  write_cr4(read_cr4() & ~word{4});
}

// CPUID advertises no performance counters, so RDPMC has no valid index.
void performance_counters() {
  const Function read_first = [] { asm volatile("xor %%ecx, %%ecx; rdpmc" ::: "eax", "ecx", "edx"); };
  check_trap("RDPMC in ring 3 without CR4.PCE", attempt_user(read_first), GP, 0);
  write_cr4(read_cr4() | 0x100);
  check("CR4.PCE can be set", read_cr4() & 0x100, 0x100);
  if (under_slalom()) {  // QEMU has no RDPMC: #UD where CR4.PCE or ring 0 allows it
    check_trap("RDPMC in ring 3 with CR4.PCE: no such counter", attempt_user(read_first), GP, 0);
    check_trap("RDPMC in ring 0: no such counter", attempt(read_first), GP, 0);
    check_trap("RDPMC in ring 0: no such index", attempt([] {
                 asm volatile("mov $0x40000000, %%ecx; rdpmc" ::: "eax", "ecx", "edx");
               }),
               GP, 0);
  }
  write_cr4(read_cr4() & ~word{0x100});
}

void control_registers() {
  if (under_slalom()) {  // QEMU checks none of these
    check_trap("#GP CR0: PG without PE", attempt([] { write_cr0((read_cr0() | 0x80000000) & ~word{1}); }), GP,
               0);
    check_trap("#GP CR0: NW without CD",
               attempt([] { write_cr0((read_cr0() | 0x20000000) & ~word{0x40000000}); }), GP, 0);
    check_trap("#GP unknown MSR", attempt([] { read_msr(0x12345); }), GP, 0);
    check_trap("#GP reserved bits of EFER", attempt([] { write_msr(0xc0000080, read_msr(0xc0000080) | 2); }),
               GP, 0);
    check_trap("#GP reserved bits of CR4", attempt([] { write_cr4(read_cr4() | 0x80000000); }), GP, 0);
  }
}

// QEMU does not trap for SSE exceptions.
void sse_exceptions() {
  static uint32_t all = 0x1f80, divide_by_zero = 0x1f80 & ~0x200;
  static float one = 1, zero = 0;
  const word cr4 = read_cr4();
  write_cr4(cr4 | 0x600);
  const Trap& simd = attempt([] {
    asm volatile("ldmxcsr %0; movss %1, %%xmm0; .globl xm_at; xm_at: divss %2, %%xmm0" ::"m"(divide_by_zero),
                 "m"(one), "m"(zero));
  });
  check_trap("#XM", simd, XM);
  check("#XM is a fault", simd.ip, address_of(xm_at));
  write_cr4((cr4 | 0x600) & ~word{0x400});
  check_trap("#UD instead without CR4.OSXMMEXCPT",
             attempt([] { asm volatile("movss %0, %%xmm0; divss %1, %%xmm0" ::"m"(one), "m"(zero)); }), UD);
  write_cr4(cr4 & ~word{0x600});
  check_trap("#UD SSE without CR4.OSFXSR", attempt([] { asm volatile("xorps %%xmm0, %%xmm0" ::); }), UD);
  write_cr4(cr4 | 0x600);
  asm volatile("ldmxcsr %0" ::"m"(all));
  static uint32_t reserved = 0x10000;
  check_trap("#GP reserved bits of MXCSR", attempt([] { asm volatile("ldmxcsr %0" ::"m"(reserved)); }), GP,
             0);
}

void fpu() {
  const word cr0 = read_cr0();
  write_cr0(cr0 | 8);  // TS
  check_trap("#NM x87 with CR0.TS", attempt([] { asm volatile("fld1"); }), NM);
  check_trap("#NM SSE with CR0.TS", attempt([] { asm volatile("xorps %%xmm0, %%xmm0" ::); }), NM);
  check_trap("#NM FWAIT with CR0.TS and MP", attempt([] { asm volatile("fwait"); }), NM);
  write_cr0((cr0 | 8) & ~word{2});
  check_trap("FWAIT with CR0.TS without MP", attempt([] { asm volatile("fwait"); }), kNone);
  write_cr0(cr0 | 4);  // EM
  check_trap("#NM x87 with CR0.EM", attempt([] { asm volatile("fld1"); }), NM);
  check_trap("#UD SSE with CR0.EM", attempt([] { asm volatile("xorps %%xmm0, %%xmm0" ::); }), UD);
  write_cr0(cr0);
  asm volatile("clts");
  static uint16_t control = 0x37b;  // division by zero is not masked
  const Trap& trap = attempt([] {
    asm volatile("fninit; fldcw %0; fld1; fldz; fdivrp; nop; nop; .globl mf_at; mf_at: fwait" ::"m"(control));
  });
  check_trap("#MF waits for the next x87 instruction", trap, MF);
  check("#MF is a fault of the waiting one", trap.ip, address_of(mf_at));
  check_trap("#MF not with FNCLEX", attempt([] { asm volatile("fnclex; fninit"); }), kNone);
  if (under_slalom()) sse_exceptions();
  alignas(16) static char aligned[32];
  check_trap("#GP MOVAPS not aligned", attempt([] { asm volatile("movaps %0, %%xmm0" ::"m"(aligned[4])); }),
             GP, 0);
}

void alignment() {
  // Only in ring 3, with CR0.AM and EFLAGS.AC.
  static uint32_t words[4];
  const word cr0 = read_cr0();
  const Function misaligned = [] { at<uint32_t>(reinterpret_cast<word>(words) + 1) = 5; };
  write_cr0(cr0 | 0x40000);
  user_flags = 2;
  check_trap("no #AC without EFLAGS.AC", attempt_user(misaligned), kNone);
  check_trap("#AC after POPF", attempt_user([] {
               asm volatile("push $0x40002; popf" ::: "memory", "cc");
               at<uint16_t>(reinterpret_cast<word>(words) + 3) = 5;
             }),
             AC, 0);
  user_flags = 0x40002;
  check_trap("#AC", attempt_user(misaligned), AC, 0);
  check_trap("no #AC for aligned accesses",
             attempt_user([] { at<uint32_t>(reinterpret_cast<word>(words)) = 5; }), kNone);
  check_trap("no #AC for bytes", attempt_user([] { at<uint8_t>(reinterpret_cast<word>(words) + 1) = 5; }),
             kNone);
  check_trap("#AC for 2 bytes", attempt_user([] { at<uint16_t>(reinterpret_cast<word>(words) + 1) = 5; }), AC,
             0);
  write_cr0(cr0 & ~word{0x40000});
  check_trap("no #AC without CR0.AM", attempt_user(misaligned), kNone);
  write_cr0(cr0);
  user_flags = 2;
}

// A fault whose delivery fails.
void nested() {
  const auto drop = [](unsigned vector, unsigned access) {
    set_gate(vector, stub_of(vector), kKernelCode, access);
  };
  const bool exact = under_slalom();  // QEMU does not set EXT for exceptions during exceptions
  drop(UD, 0x0e);
  check_trap("#UD with its gate not present: #NP", attempt([] { asm volatile("ud2"); }), NP,
             idt_error(UD, true));
  drop(UD, 0x8e);
  drop(DE, 0x0e);
  check_trap("#DE with its gate not present: #DF", attempt([] {
               asm volatile("xor %%ecx, %%ecx; div %%ecx" ::: "eax", "ecx", "edx");
             }),
             DF, 0);
  drop(DE, 0x8e);
  drop(GP, 0x0e);
  check_trap("#GP, then #NP: #DF", attempt([] { asm volatile("mov %w0, %%ds" ::"r"(0xfff8)); }), DF, 0);
  drop(GP, 0x8e);
  set_gate(UD, stub_of(UD), 0, 0x8e);
  check_trap("null selector in a gate", attempt([] { asm volatile("ud2"); }), GP, exact ? 1 : 0);
  set_gate(UD, stub_of(UD), kKernelData, 0x8e);
  check_trap("data selector in a gate", attempt([] { asm volatile("ud2"); }), GP,
             kKernelData + (exact ? 1 : 0));
  set_gate(UD, stub_of(UD), 0x1f8 + 8, 0x8e);
  check_trap("selector beyond the table in a gate", attempt([] { asm volatile("ud2"); }), GP,
             0x200 + (exact ? 1 : 0));
  set_gate(UD, stub_of(UD), kKernelCode, 0x83);
  check_trap("no gate at all", attempt([] { asm volatile("ud2"); }), GP, idt_error(UD, true));
  drop(UD, 0x8e);
  check_trap("INT n: the same without EXT", (drop(0x81, 0x0e), attempt([] { asm volatile("int $0x81"); })),
             NP, idt_error(0x81));
  drop(0x81, 0x8e);
  struct [[gnu::packed]] {
    uint16_t limit;
    word base;
  } static table = {static_cast<uint16_t>(0x80 * 2 * sizeof(word) - 1), reinterpret_cast<word>(idt)};
  asm volatile("lidt %0" ::"m"(table));
  check_trap("INT n beyond the table's limit", attempt([] { asm volatile("int $0x81"); }), GP,
             idt_error(0x81));
  load_tables();
}

}  // namespace

extern "C" volatile uint64_t scratch_word;
volatile uint64_t scratch_word;

void run_tests() {
  divide();
  single_step();
  software_interrupts();
  undefined();
  privileged();
  performance_counters();
  control_registers();
  fpu();
  if (under_slalom()) alignment();  // QEMU has no #AC
  nested();
}
