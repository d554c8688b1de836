#include "check/patience.h"

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

struct Patience {
  struct sigaction before;  // the process's own action
  int timer;
  uint32_t seconds, silent;
  uint64_t executions, steps;  // at the last tick
  uint64_t begun;              // executions begun so far
  uint64_t ended_at;
};
constinit Patience patience = {};

// When the time is over it leaves the handler for good, as the handlers of fatal signals do.
void on_tick(int, siginfo_t*, void* data) {
  const uint64_t steps = in_process().channel().steps;
  const bool moved = steps != patience.steps || patience.begun != patience.executions;
  patience.steps = steps;
  patience.executions = patience.begun;
  patience.silent = moved || !runtime().controls() ? 0 : patience.silent + 1;
  if (patience.silent < patience.seconds) return;
  const auto& context = *static_cast<ucontext_t*>(data);
  const auto pc = static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
  patience.ended_at = runtime().place(reinterpret_cast<void*>(pc + 1));
  runtime().fail(preload::Ending::Kind::Crash, patience.ended_at, "no operation for long");
}

}  // namespace

void begin_patience(uint32_t seconds) {
  patience.seconds = seconds;
  patience.silent = 0;
  patience.ended_at = 0;
  struct sigaction action = {};
  action.sa_sigaction = on_tick;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  sigaction(tick(), &action, &patience.before);
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = tick();
  event._sigev_un._tid = static_cast<int>(preload::raw_syscall(SYS_gettid));
  preload::raw_syscall(SYS_timer_create, CLOCK_MONOTONIC, reinterpret_cast<long>(&event),
                       reinterpret_cast<long>(&patience.timer));
  const itimerspec every{{1, 0}, {1, 0}};
  preload::raw_syscall(SYS_timer_settime, patience.timer, 0, reinterpret_cast<long>(&every));
}

void end_patience() {
  preload::raw_syscall(SYS_timer_delete, patience.timer);
  sigaction(tick(), &patience.before, nullptr);
}

void note_execution() {
  ++patience.begun;
}

std::string out_of_patience(const Modules& modules) {
  if (patience.ended_at == 0) return {};
  return fmt::format(
      "a thread was for {} seconds in {} without an operation that slalom can see: it waits for something "
      "that slalom::check does not control (such as a pipe: use slalom run), or computes for long "
      "(CheckOptions::patience)",
      patience.seconds, modules.names()->place(Place{modules.stable(patience.ended_at)}));
}

}  // namespace slalom::checking
