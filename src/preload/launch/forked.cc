// Forked executions: each is a fork of a process that waits at the entry of main() or at the end of set-up,
// with slalom at the other end of a shared Channel. Turns are futexes shared by two processes, and threads
// are real ones.
//
// Each thread has a stack of its own that is never used again, so that addresses depend only on the order of
// creation. A thread that has ended sleeps until the process ends. If it left, libc's clean-up (of malloc's
// caches) would run in parallel to the next thread.
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "preload/launch/set_up.h"
#include "preload/processes/orphans.h"
#include "preload/runtime/debugger.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/signals/system_signals.h"
#include "preload/sync/kernel_waits.h"
#include "preload/sync/threads.h"

namespace slalom::preload {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSignalStack = 16 * kPage;
constinit size_t default_stack = size_t{8} << 20;

// From the lowest address: the stack of signal handlers, an inaccessible page, the thread's stack.
void* map_stack(size_t size) {
  void* memory = mmap(nullptr, kSignalStack + kPage + size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  char* guard = static_cast<char*>(memory) + kSignalStack;
  mprotect(guard, kPage, PROT_NONE);
  return guard + kPage;
}

void handle_signals_on(void* memory) {
  const stack_t stack{.ss_sp = memory, .ss_flags = 0, .ss_size = kSignalStack};
  sigaltstack(&stack, nullptr);
}

void* run_thread(void* argument) {
  const auto index = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(argument));
  if (void* stack = runtime().agent(index).signal_stack; stack != nullptr) handle_signals_on(stack);
  run_agent(index);
  return nullptr;
}

// Forks without the program's pthread_atfork() handlers if libc can, because the program itself does not
// fork.
pid_t fork_quietly() {
  static const auto quiet = SLALOM_REAL(_Fork);
  static const auto usual = SLALOM_REAL(fork);
  return quiet != nullptr ? quiet() : usual();
}

int create_real(pthread_t* thread, const pthread_attr_t* attributes, void* argument) {
  static const auto real = SLALOM_REAL(pthread_create);
  return thread == nullptr ? 0 : real(thread, attributes, run_thread, argument);
}

}  // namespace

int start_thread(uint32_t index, const pthread_attr_t* wanted, pthread_t& created) {
  size_t size = default_stack, guard = kPage;
  void* stack = nullptr;
  if (wanted != nullptr) {
    pthread_attr_getstack(wanted, &stack, &size);
    // libc keeps the end address of a stack, which is 0 if only a size was set.
    if (reinterpret_cast<uintptr_t>(stack) + size == 0) stack = nullptr;
    if (size == 0) size = default_stack;
    pthread_attr_getguardsize(wanted, &guard);
  }
  if (stack == nullptr) {
    stack = map_stack(size);
    if (stack != nullptr)
      runtime().agent(index).signal_stack = static_cast<char*>(stack) - kPage - kSignalStack;
    runtime().agent(index).guard = guard;
  }
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  int set = stack == nullptr ? ENOMEM : pthread_attr_setstack(&attributes, stack, size);
  sigset_t mask;
  if (set == 0 && wanted != nullptr && pthread_attr_getsigmask_np(wanted, &mask) == 0) {
    for (uint64_t faults = never_blocked(); faults != 0; faults &= faults - 1)
      sigdelset(&mask, __builtin_ctzll(faults) + 1);
    set = pthread_attr_setsigmask_np(&attributes, &mask);
  }
  const int result =
      set != 0 ? EAGAIN : create_real(&created, &attributes, reinterpret_cast<void*>(uintptr_t{index}));
  pthread_attr_destroy(&attributes);
  return result;
}

// Looks up functions and settings once, which each execution would otherwise look up again.
void warm_up_threads() {
  create_real(nullptr, nullptr, nullptr);
  pthread_attr_t usual;
  if (pthread_getattr_default_np(&usual) != 0) return;
  pthread_attr_getstacksize(&usual, &default_stack);
  pthread_attr_destroy(&usual);
}

void use_signal_stack() {
  void* memory = mmap(nullptr, kSignalStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) handle_signals_on(memory);
}

void Runtime::wait_turn(uint32_t index) {
  Slot& slot = channel_->slots[index];
  for (;;) {
    const auto turn = static_cast<Turn>(slot.turn.load(std::memory_order_acquire));
    if (turn == Turn::Go) break;
    if (turn == Turn::Die) end_process();
    if (turn == Turn::Show) {
      slot.turn.store(static_cast<uint32_t>(Turn::Wait), std::memory_order_relaxed);
      slalom_failed("nobody can go on");
    }
    futex_wait(slot.turn, static_cast<uint32_t>(Turn::Wait));
  }
  slot.turn.store(static_cast<uint32_t>(Turn::Wait), std::memory_order_relaxed);
  if (channel_->debugged != 0 && ran_last_ != index) slalom_switched(std::exchange(ran_last_, index), index);
}

// Flattened, so that it writes nothing to the stack once it has given the turn away. The next agent may read
// there, in a program that uses stack memory that it no longer owns.
[[gnu::flatten]] void Runtime::hand_over(Phase phase) {
  const uint32_t index = self();
  channel_->phase.store(phase, std::memory_order_relaxed);
  channel_->parent_turn.store(1, std::memory_order_release);
  futex_wake(channel_->parent_turn);
  wait_turn(index);
}
[[gnu::flatten]] void Runtime::pass_turn(uint32_t next) {
  const uint32_t index = self();
  std::atomic<uint32_t>& turn = channel_->slots[next].turn;
  turn.store(static_cast<uint32_t>(Turn::Go), std::memory_order_release);
  futex_wake(turn);
  wait_turn(index);
}

void Runtime::end_process() {
  raw_syscall(SYS_exit_group, 0);
  __builtin_unreachable();
}

// The agent's thread stays, but must not take signals sent to the process.
void Runtime::end_signals() {
  const uint64_t all = ~uint64_t{0};
  raw_syscall(SYS_rt_sigprocmask, SIG_BLOCK, reinterpret_cast<long>(&all), 0, sizeof all);
}

void Runtime::end_last() {
  SLALOM_REAL(exit)(0);
  __builtin_unreachable();
}

bool Runtime::connected() const {
  return channel_ != nullptr;
}

bool Runtime::connect() {
  if (getenv(kVariable) == nullptr) return false;
  struct stat info;
  if (fstat(kDescriptor, &info) != 0 || info.st_size < static_cast<off_t>(sizeof(Channel))) return false;
  void* memory = mmap(nullptr, sizeof(Channel), PROT_READ | PROT_WRITE, MAP_SHARED, kDescriptor, 0);
  if (memory == MAP_FAILED) return false;
  close(kDescriptor);
  channel_ = static_cast<Channel*>(memory);
  return true;
}

void Runtime::tell_parent(Phase phase) {
  channel_->phase.store(phase, std::memory_order_relaxed);
  channel_->parent_turn.store(1, std::memory_order_release);
  futex_wake(channel_->parent_turn);
}

void Runtime::serve() {
  prepare_places();
  note_modules();
  look_for_forks();
  prepare_left_behind();
  note_first_descriptors();
  const bool adopts = adopt_orphans();
  tell_parent(Phase::Ready);
  fork_executions(adopts);
  set_self(begin_execution(pthread_self()));
  in_set_up_ = begins_later_ = true;
  raw_syscall(SYS_rt_sigprocmask, SIG_BLOCK, 0, reinterpret_cast<long>(&me().blocked), sizeof me().blocked);
  if (!forks_after_set_up_) stop(ChoiceKind::Start, 0);
  begin_first();
}

// Forks a process whenever slalom requests one, and waits for its end.
void Runtime::fork_executions(bool adopts) {
  Request request = Request::None;
  for (;;) {
    while (channel_->zygote_turn.load(std::memory_order_acquire) == 0)
      futex_wait(channel_->zygote_turn, uint32_t{0});
    request = static_cast<Request>(channel_->zygote_turn.exchange(0, std::memory_order_relaxed));
    const pid_t child = fork_quietly();
    if (child == 0) break;
    channel_->child = child;
    if (child < 0) {
      strcpy(channel_->message, "the program cannot be forked: the system is out of processes or memory");
      tell_parent(Phase::Refused);
      continue;
    }
    int status = 0;
    siginfo_t info = {};
    while (raw_syscall(SYS_waitid, P_PID, child, reinterpret_cast<long>(&info), WEXITED | WNOWAIT) ==
           -EINTR) {
    }
    // Kills the processes that it has started; its number cannot be reused yet.
    raw_syscall(SYS_kill, -child, SIGKILL);
    while (raw_syscall(SYS_wait4, child, reinterpret_cast<long>(&status)) == -EINTR) {
    }
    if (adopts) end_orphans();
    remove_left_behind();
    channel_->wait_status = status;
    tell_parent(Phase::Over);
  }
  forks_after_set_up_ = request == Request::SetUp;
  channel_->child = process_ =
      static_cast<int32_t>(raw_syscall(SYS_getpid));  // the zygote may not have stored it yet
  const long zygote = raw_syscall(SYS_getppid);
  raw_syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  if (raw_syscall(SYS_getppid) != zygote) end_process();
  raw_syscall(SYS_setpgid, 0, 0);
  if (channel_->debugged != 0) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  channel_->phase.store(Phase::Running, std::memory_order_relaxed);
}

// Finds the library that provides malloc(), if it is not libc.
void Runtime::find_allocator() {
  struct Search {
    uint64_t allocator, libc;
    Range found;
  } search{
      reinterpret_cast<uint64_t>(SLALOM_REAL(malloc)), reinterpret_cast<uint64_t>(SLALOM_REAL(exit)), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& search = *static_cast<Search*>(data);
        Range code{UINT64_MAX, 0};
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          code.begin = std::min(code.begin, info->dlpi_addr + segment.p_vaddr);
          code.end = std::max(code.end, info->dlpi_addr + segment.p_vaddr + segment.p_memsz);
        }
        const auto holds = [&](uint64_t pc) { return pc >= code.begin && pc < code.end; };
        if (holds(search.allocator) && !holds(search.libc)) search.found = code;
        return 0;
      },
      &search);
  allocator_ = search.found;
}

void Runtime::leave() {
  on_ = false;
}

}  // namespace slalom::preload
