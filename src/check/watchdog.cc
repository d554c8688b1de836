#include "check/watchdog.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "check/in_process.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::checking {
namespace {

using preload::runtime;

// A signal that programs hardly use.
int tick() {
  return SIGRTMAX - 1;
}

struct Watchdog {
  struct sigaction before;  // the process's own action
  int timer;
  uint32_t seconds, silent;
  uint64_t executions, steps;  // at the last tick
  uint64_t begun;              // executions begun so far
  uint64_t ended_at;
};
constinit Watchdog watchdog = {};

// When the time is over it leaves the handler for good, as the handlers of fatal signals do.
void on_tick(int, siginfo_t*, void* data) {
  const uint64_t steps = in_process().channel().steps;
  const bool moved = steps != watchdog.steps || watchdog.begun != watchdog.executions;
  watchdog.steps = steps;
  watchdog.executions = watchdog.begun;
  watchdog.silent = moved || !runtime().controls() ? 0 : watchdog.silent + 1;
  if (watchdog.silent < watchdog.seconds) return;
  const auto& context = *static_cast<ucontext_t*>(data);
  const auto pc = static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
  watchdog.ended_at = runtime().place(reinterpret_cast<void*>(pc + 1));
  runtime().fail(preload::Ending::Kind::Crash, watchdog.ended_at, "no operation for long");
}

}  // namespace

void start_watchdog(uint32_t seconds) {
  watchdog.seconds = seconds;
  watchdog.silent = 0;
  watchdog.ended_at = 0;
  struct sigaction action = {};
  action.sa_sigaction = on_tick;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  sigaction(tick(), &action, &watchdog.before);
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = tick();
  event._sigev_un._tid = static_cast<int>(preload::raw_syscall(SYS_gettid));
  preload::raw_syscall(SYS_timer_create, CLOCK_MONOTONIC, reinterpret_cast<long>(&event),
                       reinterpret_cast<long>(&watchdog.timer));
  const itimerspec every{{1, 0}, {1, 0}};
  preload::raw_syscall(SYS_timer_settime, watchdog.timer, 0, reinterpret_cast<long>(&every));
}

void stop_watchdog() {
  preload::raw_syscall(SYS_timer_delete, watchdog.timer);
  sigaction(tick(), &watchdog.before, nullptr);
}

void note_execution() {
  ++watchdog.begun;
}

std::string watchdog_report(const Modules& modules) {
  if (watchdog.ended_at == 0) return {};
  return fmt::format(
      "a thread was for {} seconds in {} without an operation that slalom can see: it waits for something "
      "that slalom::check does not control (such as a pipe: use slalom run), or computes for long "
      "(CheckOptions::patience)",
      watchdog.seconds, modules.names()->place(Place{modules.stable(watchdog.ended_at)}));
}

}  // namespace slalom::checking
