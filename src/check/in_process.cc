#include "check/in_process.h"

#include <cxxabi.h>
#include <errno.h>
#include <sys/mman.h>

#include <exception>
#include <typeinfo>

#include "check/failures.h"
#include "check/heap.h"
#include "check/signals.h"
#include "check/watchdog.h"
#include "preload/memory/accesses.h"
#include "preload/runtime/runtime.h"
#include "preload/sync/kernel_waits.h"
#include "preload/sync/threads.h"

namespace slalom::checking {
namespace {

using preload::kNoAgent;
using preload::Phase;
using preload::Runtime;
using preload::runtime;

void run_body() {
  runtime().begin_first();
  in_process().body()();
}

void run_thread(uint32_t index) {
  preload::forget_accesses();
  preload::forget_keys();
  runtime().enter(index);
  preload::Agent& me = runtime().me();
  me.result = me.start(me.argument);
}

void end_fiber(uint32_t index) {
  index == 0 ? runtime().end_agent() : preload::finish_agent();
}

// Runs a thread or the body in its fiber, and handles exceptions that leave it.
void run_fiber(uint32_t index) {
  errno = 0;
  try {
    index == 0 ? run_body() : run_thread(index);
  } catch (const abi::__forced_unwind&) {  // pthread_exit or cancellation
    end_fiber(index);  // not after the handler, because libc ends the process if the handler is left
  } catch (...) {
    fail_for_exception();
  }
  end_fiber(index);
}

}  // namespace

InProcess& in_process() {
  static InProcess the_only_one;
  return the_only_one;
}

std::string InProcess::open(const std::function<void()>& body) {
  if (body_ != nullptr) return "slalom::check is running already: one at a time in a process";
  if (channel_ == nullptr) {
    void* memory =
        mmap(nullptr, sizeof(preload::Channel), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return "the system has no memory left for slalom";
    channel_ = static_cast<preload::Channel*>(memory);
    runtime().attach(channel_);
    runtime().prepare_places();
  }
  if (!fibers_.prepare() || !heap().prepare())
    return "the addresses that slalom uses for stacks and heap (from 0x600000000000) are taken, or memory is "
           "limited (ulimit -v)";
  body_ = &body;
  uncontrolled_ = 0;
  adopt_signals();
  watch_failures();
  return {};
}

void InProcess::close() {
  body_ = nullptr;
  unwatch_failures();
}

void InProcess::begin(Occupant& occupant) {
  if (occupant_ != nullptr) occupant_->give_up();
  occupant_ = &occupant;
  note_execution();
  channel_->agent_count = channel_->record_count = channel_->text_used = channel_->holder_count = 0;
  channel_->steps = 0;
  channel_->ending = {};
  channel_->phase.store(Phase::Running, std::memory_order_relaxed);
  heap().begin(ended_normally_);
  memcpy(&exceptions_, abi::__cxa_get_globals(), sizeof exceptions_);
  calls_ = preload::call_depth();
  runtime().begin_execution(pthread_self());
  begin_signals();
  fibers_.start(0, run_fiber);
}

void InProcess::let_run(uint32_t agent) {
  if (agent != 0) return fibers_.enter(agent);
  // Agent 0 shares the thread-local storage of the calling thread.
  const int error = errno;
  runtime().set_self(0);
  fibers_.enter(agent);
  runtime().set_self(kNoAgent);
  errno = error;
}

void InProcess::end(bool normally) {
  occupant_ = nullptr;
  ended_normally_ = normally;
  uncontrolled_ |= channel_->uncontrolled;
  memcpy(abi::__cxa_get_globals(), &exceptions_, sizeof exceptions_);
  preload::set_call_depth(calls_);
}

}  // namespace slalom::checking

// How turns are passed in this kind of execution; see preload/runtime/runtime.h.
namespace slalom::preload {

bool Runtime::connected() const {
  return false;  // the process is not only a target
}

void Runtime::hand_over(Phase phase) {
  channel_->phase.store(phase, std::memory_order_relaxed);
  if (self() != 0) return checking::in_process().fibers().leave();
  const int error = errno;  // the first thread shares errno with the search
  checking::in_process().fibers().leave();
  errno = error;
}

// A fiber is entered only at its turn, so there is nothing to wait for.
void Runtime::pass_turn(uint32_t) {}
void Runtime::wait_turn(uint32_t) {}

void Runtime::end_process() {
  hand_over(Phase::Over);
  __builtin_unreachable();
}

void Runtime::end_last() {
  channel_->ending.kind = Ending::Kind::Exit;
  end_process();
}

void Runtime::leave() {}
// A check's body starts threads, so it has no set-up.
void Runtime::leave_set_up() {}
void Runtime::begin_executions() {}
void Runtime::end_signals() {}

bool Runtime::wait_outside(bool) {
  return false;
}
void Runtime::find_modules() {}
bool is_fifo(int, const char*) {
  return false;
}
FILE* open_fifo_stream(const char*, const char*, uint64_t) {
  return nullptr;
}
int open_fifo(int, const char*, int, uint64_t) {
  return -1;
}

int start_thread(uint32_t index, const pthread_attr_t*, pthread_t& created) {
  const uint32_t self = runtime().self();
  // Resources of a new lender belong to the process, not to the execution.
  runtime().set_self(kNoAgent);
  checking::Fibers& fibers = checking::in_process().fibers();
  const bool started = fibers.start(index, checking::run_fiber);
  runtime().set_self(self);
  if (!started) return EAGAIN;
  created = fibers.thread(index);
  return 0;
}

}  // namespace slalom::preload
