// The life of a target's process: it starts, warms up to the entry of main(), and becomes the zygote that
// forks executions. Each execution ends by exit, by a signal, or by a failed assertion.
#include <assert.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "preload/memory/tcache_key.h"
#include "preload/openmp/inline_calls.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/signals/fault_words.h"
#include "preload/sync/kernel_waits.h"

extern "C" {
extern char** environ;
int __libc_start_main(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
}

namespace slalom::preload {

int run_main(int (*entry)(int, char**, char**), int argc, char** argv, char** environment);
void use_signal_stack();
void warm_up_threads();

namespace {

using Main = int (*)(int, char**, char**);
constinit Main target_main = nullptr;

// Removes slalom's variables, since programs that the target starts are not controlled.
void hide_from_environment() {
  char** to = environ;
  for (char** from = environ; *from != nullptr; ++from) {
    const bool ours = strncmp(*from, "SLALOM_", 7) == 0 || strncmp(*from, "LD_PRELOAD=", 11) == 0 ||
                      strncmp(*from, "LD_BIND_NOW=", 12) == 0;
    if (!ours) *to++ = *from;
  }
  *to = nullptr;
}

const char* describe(int signal, const siginfo_t& info, const ucontext_t& context) {
  const auto address = reinterpret_cast<uint64_t>(info.si_addr);
  const auto stack = static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RSP]);
  const bool near = address + 65536 > stack && address < stack + 65536;
  return fault_words(signal, info, near ? "stack overflow" : nullptr);
}

void on_signal(int signal, siginfo_t* info, void* data) {
  const auto& context = *static_cast<ucontext_t*>(data);
  const auto pc = static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
  Runtime& rt = runtime();
  if (!rt.runs_agent()) {
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    sigaction(signal, &standard, nullptr);
    raise(signal);
    return;
  }
  rt.fail(Ending::Kind::Crash, rt.place(reinterpret_cast<void*>(pc + 1)), describe(signal, *info, context));
}

void watch_signals() {
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigaction(signal, &action, nullptr);
}

auto real_exit() {
  return SLALOM_REAL(exit);
}

int zygote_main(int argc, char** argv, char** environment) {
  Runtime& rt = runtime();
  use_signal_stack();
  warm_up_threads();
  // Looks up the hidden libc functions now, rather than in each execution.
  free(realloc(calloc(1, 16), 32));
  real_exit();
  watch_signals();
  rt.find_allocator();
  take_all_inline_calls();
  rt.serve();
  clear_stack();  // otherwise the first execution would find other stack contents than the next
  const int status = run_main(target_main, argc, argv, environment);
  if (rt.controls()) rt.pass(OpKind::GoOn, reinterpret_cast<uint64_t>(target_main), false);
  real_exit()(status);
  __builtin_unreachable();
}

// Runs before the constructors of the program and its libraries, so that its exit handler runs last.
__attribute__((constructor(101))) void begin() {
  if (!runtime().connect()) return;
  fix_tcache_key();
  hide_from_environment();
  mallopt(M_ARENA_MAX, 1);  // an arena per thread would cost more than it is worth
  // The program's child handlers run in the child, which then is no agent any more. The handlers registered
  // first run first in the child and last among the prepare handlers.
  pthread_atfork([] { runtime().pass_prepared_fork(); }, nullptr,
                 [] {
                   if (runtime().controls()) runtime().become_child();
                 });
  on_exit(
      [](int status, void*) {
        runtime().look_for_modules();  // reports the last modules, in which no operation happened
        runtime().process_ends(status);
      },
      nullptr);
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int __libc_start_main(int (*entry)(int, char**, char**), int argc, char** argv, void (*init)(),
                                    void (*fini)(), void (*loader_fini)(), void* stack_end) {
  if (runtime().connected()) {
    target_main = entry;
    entry = zygote_main;
  }
  return SLALOM_REAL(__libc_start_main)(entry, argc, argv, init, fini, loader_fini, stack_end);
}

// libc has atexit() only in the part that is linked into every module. But the sanitizer's library exports
// it, and programs built for that library look for it there.
extern "C" int __cxa_atexit(void (*function)(void*), void* argument, void* module) noexcept;
SLALOM_EXPORT int atexit(void (*function)()) noexcept {
  return __cxa_atexit(reinterpret_cast<void (*)(void*)>(function), nullptr, nullptr);
}
SLALOM_EXPORT void exit(int status) noexcept {
  if (runtime().controls()) runtime().pass(OpKind::GoOn, SLALOM_PLACE(), false);
  real_exit()(status);
  __builtin_unreachable();
}
SLALOM_EXPORT void _exit(int status) {
  runtime().process_ends(status);
  raw_syscall(SYS_exit_group, status);
  __builtin_unreachable();
}
SLALOM_EXPORT void _Exit(int status) noexcept {
  runtime().process_ends(status);
  raw_syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

SLALOM_EXPORT void __assert_fail(const char* condition, const char* file, unsigned line,
                                 const char* function) noexcept {
  if (!runtime().controls()) SLALOM_REAL(__assert_fail)(condition, file, line, function);
  char text[400];
  snprintf(text, sizeof text, "%s", condition);
  if (!any_stream_locked()) fflush(nullptr);
  dprintf(STDERR_FILENO, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, condition);
  runtime().fail(Ending::Kind::Assertion, SLALOM_PLACE(), text);
}
