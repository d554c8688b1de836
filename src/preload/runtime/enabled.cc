// Finds the agents that can run: what each agent needs, whether it is available, and, if no agent can run,
// which agents hold it.
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "preload/runtime/handlers.h"
#include "preload/runtime/lock_words.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

// Returns the agent whose thread id is in the lock word; kNoAgent if the lock is free.
uint32_t pi_owner(const void* word) {
  const uint32_t owner = *static_cast<const volatile uint32_t*>(word) & FUTEX_TID_MASK;
  return owner == 0 ? kNoAgent : owner - static_cast<uint32_t>(kPid);
}

// A separate function because it is rare: without it arrive() leaves less on the program's stack.
[[gnu::noinline, gnu::cold]] bool has_changed(const ChildWait& wanted) {
  siginfo_t info = {};
  return raw_syscall(SYS_waitid, wanted.kind, wanted.id, reinterpret_cast<long>(&info),
                     wanted.options | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

}  // namespace

bool Runtime::satisfied(uint32_t index) const {
  const Agent& agent = agents_[index];
  if (agent.need == Need::Nothing) return true;  // the common case
  if (agent.cancelled && agent.cancellable &&
      (agent.asynchronous ? agent.relock == nullptr || agent.need != Need::Mutex
                          : agent.at_cancel_point && agent.need != Need::Mutex))
    return true;
  return deliverable(agent) != 0 || agent.need == Need::Sleep || available(index);
}

// As satisfied(), but ignores signals and cancellation.
bool Runtime::available(uint32_t index) const {
  const Agent& agent = agents_[index];
  switch (agent.need) {
    case Need::Nothing:
      return true;
    case Need::Mutex: {
      const auto* mutex = static_cast<const pthread_mutex_t*>(agent.object);
      const int type = mutex->__data.__kind & 3;
      const bool again = static_cast<uint32_t>(mutex->__data.__owner) == index + 1 &&
                         (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK);
      return lock_of(mutex) == 0 || again || is_abandoned(mutex);
    }
    case Need::Spin:
      return *static_cast<const volatile int*>(agent.object) == 1;
    case Need::ReadLock:
    case Need::WriteLock: {
      const auto* lock = static_cast<const pthread_rwlock_t*>(agent.object);
      const auto& data = lock->__data;
      if (data.__writers != 0) return static_cast<uint32_t>(data.__cur_writer) == index + 1;  // fails
      return agent.need == Need::ReadLock ? !has_gate(lock) || gate_holder(lock) == 0 : data.__readers == 0;
    }
    case Need::Semaphore:
      return *static_cast<const volatile uint32_t*>(agent.object) > 0;
    case Need::AgentEnd:
      return ended(agent.target);
    case Need::Once:
      return *static_cast<const volatile int*>(agent.object) != 1;
    case Need::Descriptors:
      return raw_syscall(SYS_poll, reinterpret_cast<long>(agent.object), agent.count, 0) != 0;
    case Need::Signal: {
      uint64_t pending = 0;
      raw_syscall(SYS_rt_sigpending, reinterpret_cast<long>(&pending), sizeof pending);
      return ((pending | agent.awaited_signals | agent.pending_signals | process_signals_) &
              *static_cast<const uint64_t*>(agent.object)) != 0;
    }
    case Need::Kernel: {
      const auto& wait = *static_cast<const KernelWait*>(agent.object);
      return wait.can_go_on(wait);
    }
    case Need::Child:
      return has_changed(*static_cast<const ChildWait*>(agent.object));
    case Need::PiLock: {
      const uint32_t owner = pi_owner(agent.object);
      return owner == kNoAgent || (owner < agent_count() && ended(owner));
    }
    case Need::OwnedLock:
      return pi_owner(agent.object) == kNoAgent;
    case Need::Handler:
    case Need::Sleep:
    case Need::Timer:
    case Need::Wakeup:
      return false;
  }
  return true;
}

bool Runtime::is_abandoned(const pthread_mutex_t* mutex) const {
  constexpr int kRobust = 16;  // glibc's bit
  const auto& data = mutex->__data;
  const auto owner = static_cast<uint32_t>(data.__owner) - 1;
  return data.__kind != -1 && (data.__kind & kRobust) != 0 && lock_of(mutex) != 0 && owner < agent_count() &&
         ended(owner);
}

void Runtime::refresh() {
  using State = Slot::State;
  if (outside_signals_ != 0 || has_children()) take_outside_signals();
  if (has_children()) take_shared_signals();
  uint32_t enabled = 0;
  const uint32_t count = agent_count();
  for (uint32_t i = 0; i < count; ++i) {
    Slot& slot = channel_->slots[i];
    if (slot.state == State::Ended) continue;
    if (agents_[i].need == Need::Nothing) {  // the common case
      slot.state = State::Enabled;
      ++enabled;
      continue;
    }
    const bool timed =
        agents_[i].deadline != kNever && channel_->timeouts == Timeouts::Any && !agents_[i].idle_deadline;
    slot.state = timed || satisfied(i)             ? State::Enabled
                 : agents_[i].need == Need::Wakeup ? State::Parked
                                                   : State::Disabled;
    enabled += slot.state == State::Enabled;
  }
  enabled_ = enabled;
  if (enabled == 0) handle_none_enabled();
}

// No agent can run. Waits for something outside, or lets the earliest deadline pass.
void Runtime::handle_none_enabled() {
  uint32_t first = kNoAgent;
  for (uint32_t i = 0; i < agent_count(); ++i)
    if (!ended(i) && agents_[i].deadline != kNever &&
        (first == kNoAgent || agents_[i].deadline < agents_[first].deadline))
      first = i;
  if (wait_outside(first == kNoAgent)) return refresh();
  if (first == kNoAgent) return list_holders();
  channel_->slots[first].state = Slot::State::Enabled;
  enabled_ = 1;
}

// A thread that polls for the effect of a child process would reach its step limit before the process has
// done it.
void Runtime::let_children_run() {
  const timespec moment{0, 100'000};
  raw_syscall(SYS_nanosleep, reinterpret_cast<long>(&moment));
}

// Lists for slalom which agent waits for which.
void Runtime::list_holders() {
  channel_->holder_count = 0;
  const auto add = [this](uint32_t waiting, uint32_t holder) {
    if (holder < agent_count() && channel_->holder_count < kMostHolders)
      channel_->holders[channel_->holder_count++] = {waiting, holder};
  };
  for (uint32_t i = 0; i < agent_count(); ++i) {
    if (ended(i)) continue;
    const Agent& agent = agents_[i];
    if (agent.need == Need::Mutex)
      add(i, static_cast<uint32_t>(static_cast<const pthread_mutex_t*>(agent.object)->__data.__owner) - 1);
    if (agent.need == Need::ReadLock || agent.need == Need::WriteLock) {
      const auto* at = static_cast<const pthread_rwlock_t*>(agent.object);
      const auto& lock = at->__data;
      if (agent.need == Need::ReadLock && has_gate(at)) {
        add(i, gate_holder(at) - 1);
        continue;
      }
      if (lock.__writers != 0) add(i, static_cast<uint32_t>(lock.__cur_writer) - 1);
      for (uint32_t h = 0; h < read_hold_count_; ++h)
        if (read_holds_[h].lock == agent.object) add(i, read_holds_[h].agent);
    }
    if (agent.need == Need::Kernel)
      for (uint32_t h = 0; h < read_hold_count_; ++h)
        if (object_id(read_holds_[h].lock) == slot(i).object) add(i, read_holds_[h].agent);
    if (agent.need == Need::AgentEnd) add(i, agent.target);
    if (agent.need == Need::PiLock || agent.need == Need::OwnedLock) add(i, pi_owner(agent.object));
  }
}

// Reports what the handling of a signal depends on: whether the agent's need is available. If so, the agent
// could have gone on without the signal before that was sent.
void Runtime::tell_handling(Need need, uint64_t deadline) {
  const Agent& agent = me();
  const uint64_t object = slot(self()).object, signals = signals_object(slot(self()));
  const bool limited = deadline != kNever && channel_->timeouts == Timeouts::Any && !agent.idle_deadline;
  tell(OpKind::CpuUse, kHandlerObject);
  if (!agent.lacked_need || need == Need::Sleep || limited)
    tell(OpKind::GoOn, 0);
  else
    tell(OpKind::IrqTake, signals, 1);
  if (need == Need::Nothing) return;
  if (need == Need::Wakeup && !agent.woken) return tell(OpKind::TimerFire, object, 1);  // it no longer waits
  bool watches = false;
  for (uint32_t i = 0; i < channel_->watched_count; ++i) {
    if (channel_->watched[i].agent != self()) continue;
    tell(OpKind::CpuUse, channel_->watched[i].object);
    watches = true;
  }
  if (!watches && object != 0 && object != signals) tell(OpKind::CpuUse, object);
}

void Runtime::may_stop_waiting(uint32_t other) {
  if (agents_[other].need != Need::Wakeup || deliverable(agents_[other]) == 0) return;
  agents_changed_ = true;
  channel_->slots[other].op = OpKind::TimerFire;  // as if its time were over
  tell_agent(other);
}

bool Runtime::watch(uint64_t object, const void* call) {
  for (uint32_t i = 0; i < channel_->watched_count; ++i)
    if (channel_->watched[i].object == object && channel_->watched[i].call == object_id(call)) return false;
  if (channel_->watched_count == kMostWatched) return false;
  channel_->watched[channel_->watched_count++] = {object, object_id(call), self()};
  return true;
}

void Runtime::tell_watched(OpKind op, uint64_t state, const void* call) {
  for (uint32_t i = 0; i < channel_->watched_count; ++i)
    if (channel_->watched[i].call == object_id(call)) tell(op, channel_->watched[i].object, state);
}

void Runtime::unwatch(const void* call) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < channel_->watched_count; ++i)
    if (channel_->watched[i].call != object_id(call)) channel_->watched[kept++] = channel_->watched[i];
  channel_->watched_count = kept;
}

void Runtime::hold_read(const void* lock) {
  if (read_hold_count_ < kMostReadHolds) read_holds_[read_hold_count_++] = {lock, self()};
}

bool Runtime::drop_read(const void* lock, uint32_t agent) {
  for (uint32_t i = 0; i < read_hold_count_; ++i) {
    if (read_holds_[i].lock != lock || read_holds_[i].agent != agent) continue;
    read_holds_[i] = read_holds_[--read_hold_count_];
    return true;
  }
  return false;
}

}  // namespace slalom::preload
