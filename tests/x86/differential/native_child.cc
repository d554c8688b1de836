// The child process: enters a case with IRETQ and leaves it through a signal.
//
// The signal handler runs on its own stack, records the outcome and enters the next case from there; it never
// returns. So each case needs only one trap. The handler cannot use the C library, which finds its thread's
// memory through FS, because FS belongs to the cases.
#include <asm/prctl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>

#include "native.h"

#if defined(__clang__)
#define NO_GUARDS __attribute__((no_sanitize("address", "undefined")))
#else
#define NO_GUARDS __attribute__((no_sanitize("address", "undefined"), no_stack_protector))
#endif

namespace slalom::vm::diff {
namespace {

// In the order in which enter() reads it.
struct Entry {
  FloatState floats;
  std::array<uint64_t, 16> gpr;
  uint64_t rip, cs, flags, rsp, ss;
};

// Global, since the handler's arguments come from the kernel.
Exchange* shared_exchange;
Entry entry;
unsigned placed_at, placed;
alignas(64) uint8_t signal_stack[128 << 10];

NO_GUARDS long system_call(long number, long a, long b, long c) {
  long result;
  asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}

NO_GUARDS void copy(void* to, const void* from, size_t size) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}
NO_GUARDS void fill(void* to, uint8_t byte, size_t size) {
  asm volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(byte) : "memory");
}

// Loads everything except RIP, CS, RFLAGS, RSP and SS, and then these with IRETQ. IRETQ also makes the CPU
// discard prefetched code.
asm(R"(
.text
.local diff_enter
diff_enter:
  fxrstor64 (%rdi)
  movq 512(%rdi), %rax
  movq 520(%rdi), %rcx
  movq 528(%rdi), %rdx
  movq 536(%rdi), %rbx
  movq 552(%rdi), %rbp
  movq 560(%rdi), %rsi
  movq 576(%rdi), %r8
  movq 584(%rdi), %r9
  movq 592(%rdi), %r10
  movq 600(%rdi), %r11
  movq 608(%rdi), %r12
  movq 616(%rdi), %r13
  movq 624(%rdi), %r14
  movq 632(%rdi), %r15
  leaq 640(%rdi), %rsp
  movq 568(%rdi), %rdi
  iretq

.local diff_signal
diff_signal:
  pushq $2
  popfq
  cld
  jmp diff_leave
)");
extern "C" {
[[noreturn]] void diff_enter(const Entry*);
void diff_signal(int, siginfo_t*, void*);
[[noreturn]] void diff_leave(int, siginfo_t*, const ucontext_t*);
}

NO_GUARDS void set_segments(Mode mode) {
  const uint16_t selector = mode == Mode::k64 ? 0 : 0x2b;
  asm volatile("mov %0, %%ds; mov %0, %%es; mov %0, %%fs; mov %0, %%gs" : : "r"(uint32_t{selector}));
  if (mode == Mode::k32) return;
  if (shared_exchange->has_fsgsbase) {
    asm volatile("wrfsbase %0; wrgsbase %1" : : "r"(kFsBase), "r"(kGsBase));
  } else {
    system_call(SYS_arch_prctl, ARCH_SET_FS, static_cast<long>(kFsBase), 0);
    system_call(SYS_arch_prctl, ARCH_SET_GS, static_cast<long>(kGsBase), 0);
  }
}

NO_GUARDS void prepare(const Case& one) {
  uint8_t* const writable = reinterpret_cast<uint8_t*>(kData);
  copy(writable, &shared_exchange->backgrounds[one.background % kBackgrounds], kWritable);
  for (unsigned i = 0; i < one.patches && i < 3; ++i) {
    const Patch* patch = reinterpret_cast<const Patch*>(&one.patch) + i;
    const size_t offset = patch->offset < kWritable ? patch->offset : kWritable;
    size_t size = patch->size < 512 ? patch->size : 512;
    if (size > kWritable - offset) size = kWritable - offset;
    copy(writable + offset, &patch->bytes, size);
  }
  fill(shared_exchange->code_alias + placed_at, kBreakpointByte, placed);
  placed_at = static_cast<unsigned>(one.state.rip - kCode);
  placed = one.length;
  if (placed_at + placed > kCodeSize) placed = kCodeSize - placed_at;
  copy(shared_exchange->code_alias + placed_at, &one.bytes, placed);

  copy(&entry.floats, &one.state.floats, sizeof entry.floats);
  copy(&entry.gpr, &one.state.gpr, sizeof entry.gpr);
  entry.rip = one.state.rip;
  entry.cs = one.mode == Mode::k64 ? 0x33 : 0x23;
  entry.flags = one.state.flags | 0x202;
  copy(&entry.rsp, reinterpret_cast<const uint64_t*>(&one.state.gpr) + 4, 8);
  entry.ss = 0x2b;
}

[[noreturn]] NO_GUARDS void enter_next() {
  if (shared_exchange->next >= shared_exchange->count) {
    char byte = 0;
    system_call(SYS_write, shared_exchange->to_parent, reinterpret_cast<long>(&byte), 1);
    if (system_call(SYS_read, shared_exchange->from_parent, reinterpret_cast<long>(&byte), 1) != 1)
      system_call(SYS_exit_group, 0, 0, 0);
  }
  const Case* one = reinterpret_cast<const Case*>(&shared_exchange->cases) + shared_exchange->next;
  prepare(*one);
  set_segments(one->mode);
  diff_enter(&entry);
}

void handle(int signal) {
  struct sigaction action = {};
  action.sa_sigaction = diff_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  if (sigaction(signal, &action, nullptr) != 0) _exit(1);
}

}  // namespace

extern "C" [[noreturn]] NO_GUARDS void diff_leave(int, siginfo_t*, const ucontext_t* context) {
  Outcome* out = reinterpret_cast<Outcome*>(&shared_exchange->outcomes) + shared_exchange->next;
  const greg_t* r = context->uc_mcontext.gregs;
  constexpr uint8_t order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                 REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  uint64_t* gpr = reinterpret_cast<uint64_t*>(&out->state.gpr);
  for (unsigned i = 0; i < 16; ++i) gpr[i] = static_cast<uint64_t>(r[order[i]]);
  out->state.rip = static_cast<uint64_t>(r[REG_RIP]);
  out->state.flags = static_cast<uint64_t>(r[REG_EFL]);
  uint16_t* selectors = reinterpret_cast<uint16_t*>(&out->state.selectors);
  uint32_t es, ds, fs, gs;
  asm volatile("mov %%es, %0; mov %%ds, %1; mov %%fs, %2; mov %%gs, %3"
               : "=r"(es), "=r"(ds), "=r"(fs), "=r"(gs));
  selectors[0] = static_cast<uint16_t>(es);
  selectors[1] = static_cast<uint16_t>(r[REG_CSGSFS]);
  selectors[2] = static_cast<uint16_t>(static_cast<uint64_t>(r[REG_CSGSFS]) >> 48);
  selectors[3] = static_cast<uint16_t>(ds);
  selectors[4] = static_cast<uint16_t>(fs);
  selectors[5] = static_cast<uint16_t>(gs);
  copy(&out->state.floats, context->uc_mcontext.fpregs, sizeof out->state.floats);
  out->vector = static_cast<uint8_t>(r[REG_TRAPNO]);
  out->error = static_cast<uint32_t>(r[REG_ERR]);
  out->address = out->vector == 14 ? static_cast<uint64_t>(r[REG_CR2]) : 0;
  copy(&out->data, reinterpret_cast<const void*>(kData), kWritable);
  out->ended = true;
  ++shared_exchange->next;
  enter_next();
}

NO_GUARDS void serve(Exchange& exchange) {
  shared_exchange = &exchange;
  const auto map_at = [](uint64_t address, uint64_t size, int rights, int flags, int file) {
    void* place = reinterpret_cast<void*>(address);
    if (mmap(place, size, rights, flags | MAP_FIXED_NOREPLACE, file, 0) != place) _exit(1);
  };
  map_at(kCode, kCodeSize, PROT_READ | PROT_EXEC, MAP_SHARED, exchange.code_file);
  map_at(kData, kDataSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  fill(exchange.code_alias, kBreakpointByte, kCodeSize);
  copy(reinterpret_cast<void*>(kData), &exchange.backgrounds[0], kDataSize);
  mprotect(reinterpret_cast<void*>(kData + kWritable), kDataSize - kWritable, PROT_READ);
  stack_t stack{.ss_sp = signal_stack, .ss_flags = 0, .ss_size = sizeof signal_stack};
  if (sigaltstack(&stack, nullptr) != 0) _exit(1);
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) handle(signal);
  char byte;
  if (system_call(SYS_read, exchange.from_parent, reinterpret_cast<long>(&byte), 1) != 1) _exit(0);
  enter_next();
}

}  // namespace slalom::vm::diff
