// libgomp's futexes. Each of its calls is
//
//   syscall
//   cmp $-ENOSYS, %rax
//
// These six bytes mean nothing else, and have room for a jump. The jump leads to a stub near the library,
// which passes the return address on to slalom_inline_call below. That saves all registers except those that
// the instruction changes, calls the model, and compares as the replaced code did. A trap in place of the
// instruction would cost more and need a signal, which belongs to the program. In a libgomp that was built
// differently nothing is replaced; slalom then finds a waiting thread asleep (process/launch/asleep.h).
//
// Unlike with futexes that a program uses itself, a wait is no operation on its word. The functions that call
// libgomp report its meaning (preload/openmp/openmp.h). All of libgomp's waits are loops, so a wake-up wakes
// all waiting agents.
#include "preload/openmp/inline_calls.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>

#include "preload/openmp/openmp.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/sync/futexes.h"

extern "C" void slalom_inline_call();

// On entry the return address is in rcx, which the instruction would have changed. The 128 bytes below the
// stack pointer (the red zone) belong to the interrupted function.
asm(R"(
        .text
        .type slalom_inline_call, @function
slalom_inline_call:
        .cfi_startproc
        .cfi_def_cfa %rsp, 0
        .cfi_register %rip, %rcx
        lea -128(%rsp), %rsp
        .cfi_def_cfa_offset 128
        push %rcx
        .cfi_def_cfa_offset 136
        .cfi_offset %rip, -136
        push %rbp
        .cfi_def_cfa_offset 144
        .cfi_offset %rbp, -144
        mov %rsp, %rbp
        .cfi_def_cfa_register %rbp
        push %r9
        push %r8
        push %r10
        push %rdx
        push %rsi
        push %rdi
        mov %rax, %rdi
        mov %rsp, %rsi
        mov %rcx, %rdx
        lea 144(%rbp), %rcx
        sub $256, %rsp
        and $-16, %rsp
        movaps %xmm0, (%rsp)
        movaps %xmm1, 16(%rsp)
        movaps %xmm2, 32(%rsp)
        movaps %xmm3, 48(%rsp)
        movaps %xmm4, 64(%rsp)
        movaps %xmm5, 80(%rsp)
        movaps %xmm6, 96(%rsp)
        movaps %xmm7, 112(%rsp)
        movaps %xmm8, 128(%rsp)
        movaps %xmm9, 144(%rsp)
        movaps %xmm10, 160(%rsp)
        movaps %xmm11, 176(%rsp)
        movaps %xmm12, 192(%rsp)
        movaps %xmm13, 208(%rsp)
        movaps %xmm14, 224(%rsp)
        movaps %xmm15, 240(%rsp)
        call slalom_make_inline_call
        movaps (%rsp), %xmm0
        movaps 16(%rsp), %xmm1
        movaps 32(%rsp), %xmm2
        movaps 48(%rsp), %xmm3
        movaps 64(%rsp), %xmm4
        movaps 80(%rsp), %xmm5
        movaps 96(%rsp), %xmm6
        movaps 112(%rsp), %xmm7
        movaps 128(%rsp), %xmm8
        movaps 144(%rsp), %xmm9
        movaps 160(%rsp), %xmm10
        movaps 176(%rsp), %xmm11
        movaps 192(%rsp), %xmm12
        movaps 208(%rsp), %xmm13
        movaps 224(%rsp), %xmm14
        movaps 240(%rsp), %xmm15
        lea -48(%rbp), %rsp
        pop %rdi
        pop %rsi
        pop %rdx
        pop %r10
        pop %r8
        pop %r9
        pop %rbp
        .cfi_def_cfa %rsp, 136
        .cfi_restore %rbp
        pop %rcx
        .cfi_def_cfa_offset 128
        .cfi_register %rip, %rcx
        lea 128(%rsp), %rsp
        .cfi_def_cfa_offset 0
        cmp $-38, %rax
        jmp *%rcx
        .cfi_endproc
        .size slalom_inline_call, . - slalom_inline_call
)");

namespace slalom::preload {

constinit thread_local uint64_t inline_wait_object = 0;

namespace {

constexpr unsigned char kCall[] = {0x0f, 0x05, 0x48, 0x83, 0xf8, 0xda};
constexpr size_t kPage = 4096, kStub = 16;
// Distance that a jump can reach; the real limit is twice that.
constexpr uint64_t kReach = uint64_t{1} << 30;

bool is_openmp(const char* path) {
  const char* name = strrchr(path, '/');
  return strncmp(name == nullptr ? path : name + 1, "libgomp.so", 10) == 0;
}

unsigned char* find_call(unsigned char* from, unsigned char* end) {
  return std::search(from, end, std::begin(kCall), std::end(kCall));
}

// Maps a free page that a jump from `place` reaches; nullptr if there is none.
unsigned char* map_near(uint64_t place) {
  constexpr uint64_t kStep = 16 * kPage;
  for (uint64_t at = place & ~(kStep - 1); at > kStep && place - at < kReach; at -= kStep) {
    const long page = raw_syscall(SYS_mmap, static_cast<long>(at), kPage, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page == static_cast<long>(at)) return reinterpret_cast<unsigned char*>(page);
  }
  return nullptr;
}

void put_distance(unsigned char* at, const unsigned char* target) {
  const auto distance = static_cast<int32_t>(target - (at + 4));
  memcpy(at, &distance, sizeof distance);
}

// The page of stubs begins with the address that all stubs jump to.
void take_calls(unsigned char* begin, unsigned char* end) {
  unsigned char* call = find_call(begin, end);
  unsigned char* page = call == end ? nullptr : map_near(object_id(begin));
  if (page == nullptr) return;
  const auto protect = [&](unsigned char* from, unsigned char* to, int how) {
    const uint64_t first = object_id(from) & ~(kPage - 1);
    return raw_syscall(SYS_mprotect, static_cast<long>(first), static_cast<long>(object_id(to) - first),
                       how) == 0;
  };
  if (!protect(begin, end, PROT_READ | PROT_WRITE)) return;
  const auto entry = reinterpret_cast<uint64_t>(&slalom_inline_call);
  memcpy(page, &entry, sizeof entry);
  for (unsigned char* stub = page + kStub; call != end && stub < page + kPage;
       call = find_call(call + sizeof kCall, end), stub += kStub) {
    memcpy(stub, "\x48\x8d\x0d", 3);  // lea after_the_call(%rip), %rcx
    put_distance(stub + 3, call + sizeof kCall);
    memcpy(stub + 7, "\xff\x25", 2);  // jmp *page(%rip)
    put_distance(stub + 9, page);
    call[0] = 0xe9;  // jmp stub
    put_distance(call + 1, stub);
    call[5] = 0x90;  // nop
  }
  protect(page, page + kPage, PROT_READ | PROT_EXEC);
  protect(begin, end, PROT_READ | PROT_EXEC);
}

long wait(const uint32_t* word, uint32_t value, uint64_t pc) {
  if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) return -EAGAIN;
  Runtime& rt = runtime();
  rt.me().woken = rt.me().left_after_signal = false;
  openmp_arrive(OpKind::Acquire, inline_wait_object != 0 ? inline_wait_object : object_id(word), pc,
                Need::Wakeup, word);
  openmp_waited();
  rt.retire();
  return 0;
}

long wake(const uint32_t* word) {
  Runtime& rt = runtime();
  for (uint32_t i = 0; i < rt.agent_count(); ++i)
    if (!rt.ended(i) && rt.agent(i).need == Need::Wakeup && rt.agent(i).object == word)
      rt.wake(i, object_id(word), openmp_has_tasks());
  return 0;
}

}  // namespace

void take_inline_calls(const dl_phdr_info& module) {
  if (!is_openmp(module.dlpi_name)) return;
  for (int i = 0; i < module.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = module.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    auto* begin = reinterpret_cast<unsigned char*>(module.dlpi_addr + segment.p_vaddr);
    take_calls(begin, begin + segment.p_memsz);
  }
}

void take_all_inline_calls() {
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void*) {
        take_inline_calls(*info);
        return 0;
      },
      nullptr);
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

// `stack` is the caller's stack pointer at the call.
extern "C" __attribute__((used)) long slalom_make_inline_call(long number, const long (&a)[6], void* from,
                                                              const void* stack) {
  if (number != SYS_futex || !runtime().controls())
    return raw_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  const auto* word = reinterpret_cast<const uint32_t*>(a[0]);
  const long command = a[1] & FUTEX_CMD_MASK;
  if (command == FUTEX_WAKE) return wake(word);
  if (command == FUTEX_WAIT && a[3] == 0)
    return wait(word, static_cast<uint32_t>(a[2]), runtime().place(from, stack));
  return futex(a, runtime().place(from, stack));
}
