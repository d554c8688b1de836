#include "preload/runtime.h"

#include "preload/raw.h"

namespace slalom::preload {
namespace {

constexpr uint64_t kOperationTime = 1'000;  // virtual nanoseconds
constexpr uint64_t kRandomSeed = 0x9e3779b97f4a7c15u;
constexpr uint32_t kClockReads = 64;  // in a row: a loop that waits for time to pass

// The runtime itself: the one mutable global of the library. Never destroyed, never constructed: zero.
alignas(Runtime) constinit unsigned char storage[sizeof(Runtime)] = {};
constinit thread_local uint32_t self_plus_one = 0;

}  // namespace

Runtime& runtime() {
  return *reinterpret_cast<Runtime*>(storage);
}

bool Runtime::controls() const {
  return on_ && self_plus_one != 0;
}
uint32_t Runtime::self() const {
  return self_plus_one - 1;
}
void Runtime::set_self(uint32_t index) {
  self_plus_one = index == kNobody ? 0 : index + 1;
}

uint32_t Runtime::find(pthread_t thread) const {
  for (uint32_t i = 0; i < agent_count(); ++i)
    if (agents_[i].thread == thread) return i;
  return kNobody;
}

bool Runtime::satisfied(uint32_t index) const {
  const Agent& agent = agents_[index];
  if (agent.cancelled && agent.cancellable && agent.at_cancel_point && agent.need != Need::Mutex) return true;
  switch (agent.need) {
    case Need::Nothing:
      return true;
    case Need::Mutex: {
      const auto& mutex = static_cast<const pthread_mutex_t*>(agent.object)->__data;
      const bool again =
          static_cast<uint32_t>(mutex.__owner) == index + 1 &&
          ((mutex.__kind & 3) == PTHREAD_MUTEX_RECURSIVE || (mutex.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK);
      return mutex.__lock == 0 || again;
    }
    case Need::Spin:
      return *static_cast<const volatile int*>(agent.object) == 1;
    case Need::ReadLock:
      return static_cast<const pthread_rwlock_t*>(agent.object)->__data.__writers == 0;
    case Need::WriteLock: {
      const auto& lock = static_cast<const pthread_rwlock_t*>(agent.object)->__data;
      return lock.__writers == 0 && lock.__readers == 0;
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
      return ((pending | agent.signals) & *static_cast<const uint64_t*>(agent.object)) != 0;
    }
    case Need::Wakeup:
      return false;
  }
  return true;
}

void Runtime::refresh() {
  using State = Slot::State;
  bool any = false;
  for (uint32_t i = 0; i < agent_count(); ++i) {
    Slot& slot = channel_->slots[i];
    if (slot.state == State::Ended) continue;
    const bool timed = agents_[i].deadline != kNever && channel_->timeouts == Timeouts::Any;
    slot.state = timed || satisfied(i)             ? State::Enabled
                 : agents_[i].need == Need::Wakeup ? State::Parked
                                                   : State::Disabled;
    any = any || slot.state == State::Enabled;
  }
  if (any) return;
  uint32_t first = kNobody;
  for (uint32_t i = 0; i < agent_count(); ++i)
    if (!ended(i) && agents_[i].deadline != kNever &&
        (first == kNobody || agents_[i].deadline < agents_[first].deadline))
      first = i;
  if (first != kNobody)
    channel_->slots[first].state = State::Enabled;
  else
    list_holders();
}

// Nothing can run: slalom will want to know who waits for whom.
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
      const auto& lock = static_cast<const pthread_rwlock_t*>(agent.object)->__data;
      if (lock.__writers != 0) add(i, static_cast<uint32_t>(lock.__cur_writer) - 1);
      for (uint32_t h = 0; h < read_hold_count_; ++h)
        if (read_holds_[h].lock == agent.object) add(i, read_holds_[h].agent);
    }
    if (agent.need == Need::AgentEnd) add(i, agent.target);
  }
}

bool Runtime::alone() const {
  for (uint32_t i = 0; i < agent_count(); ++i)
    if (i != self() && !ended(i)) return false;
  return true;
}

void Runtime::stop(ChoiceKind kind, uint32_t arity) {
  channel_->choice = {static_cast<uint32_t>(kind), self(), arity};
  hand_over(Phase::Choice);
}

bool Runtime::arrive(OpKind op, uint64_t object, uint64_t pc, Need need, const void* at, uint64_t deadline,
                     uint32_t count) {
  const uint32_t index = self();
  Agent& agent = agents_[index];
  Slot& slot = channel_->slots[index];
  slot.op = op;
  slot.object = object;
  slot.pc = pc;
  agent.need = need;
  agent.object = at;
  agent.count = count;
  agent.deadline = deadline;
  refresh();
  const bool ready = satisfied(index);
  ChoiceKind kind = ChoiceKind::Blocked;
  if (slot.state == Slot::State::Enabled)
    kind = ready && !agent.yielded ? ChoiceKind::Running : ChoiceKind::Yielded;
  agent.yielded = false;
  const bool unasked = kind == ChoiceKind::Running && channel_->skip_alone != 0 &&
                       slot.ops != channel_->stop_at && channel_->steps < channel_->max_steps && alone();
  if (!unasked) stop(kind, 0);
  const bool can = satisfied(index);
  if (!can) pass_time(deadline);
  agent.need = Need::Nothing;
  agent.deadline = kNever;
  return can;
}

bool Runtime::park(OpKind op, const void* at, uint64_t pc, uint64_t deadline) {
  Agent& agent = me();
  agent.woken = false;
  // A wait with a limit may end by itself, and that is then an operation of its own.
  arrive(deadline == kNever ? op : OpKind::TimerFire, object_id(at), pc, Need::Wakeup, at, deadline);
  return agent.woken;
}

void Runtime::wake(uint32_t other, uint64_t object) {
  tell(OpKind::Wake, object, 0, 0, other);
  Agent& agent = agents_[other];
  Slot& slot = channel_->slots[other];
  agent.woken = true;
  agent.deadline = kNever;
  if (agent.relock != nullptr) {
    slot.op = OpKind::Lock;
    slot.object = object_id(agent.relock);
    agent.need = Need::Mutex;
    agent.object = agent.relock;
  } else {
    slot.op = OpKind::GoOn;
    slot.object = 0;
    agent.need = Need::Nothing;
  }
}

uint32_t Runtime::ask(uint32_t arity) {
  if (arity <= 1) return 0;
  stop(ChoiceKind::Data, arity);
  return channel_->value < arity ? channel_->value : 0;
}

uint32_t Runtime::put_text(const char* text) {
  if (text == nullptr) return 0;
  const size_t length = strnlen(text, 512);
  if (channel_->text_used + length + 1 > kTextBytes) return 0;
  const uint32_t at = channel_->text_used;
  memcpy(channel_->texts + at, text, length);
  channel_->texts[at + length] = 0;
  channel_->text_used += static_cast<uint32_t>(length) + 1;
  return at + 1;
}

void Runtime::tell(OpKind op, uint64_t object, uint64_t state, int64_t value, uint32_t other,
                   const char* text) {
  Record& record = channel_->records[channel_->record_count];
  const uint32_t agent = controls() ? self() : kNobody;
  const uint64_t pc = agent == kNobody ? 0 : channel_->slots[agent].pc;
  record = {channel_->steps, pc, object, state, value, agent, other, op, 0, 0, 0, put_text(text)};
  if (++channel_->record_count == kMostRecords) {
    channel_->choice.current = agent;
    hand_over(Phase::Drain);
  }
}

void Runtime::tell_access(OpKind op, const void* address, uint32_t size, uint64_t value, bool wrote) {
  Record& record = channel_->records[channel_->record_count];
  record = {channel_->steps,
            channel_->slots[self()].pc,
            object_id(address),
            0,
            static_cast<int64_t>(value),
            self(),
            kNobody,
            op,
            static_cast<uint8_t>(size),
            wrote,
            0,
            0};
  if (++channel_->record_count == kMostRecords) {
    channel_->choice.current = self();
    hand_over(Phase::Drain);
  }
}

void Runtime::retire(bool yielded) {
  ++channel_->slots[self()].ops;
  ++channel_->steps;
  clock_ += kOperationTime;
  clock_reads_ = 0;
  me().yielded = yielded;
}

void Runtime::pass(OpKind op, uint64_t pc, bool yielded) {
  arrive(op, 0, pc);
  tell(op, 0);
  retire(yielded);
}

AgentId Runtime::child_id() const {
  return AgentId{channel_->slots[self()].id}.child(agents_[self()].spawned);
}

uint32_t Runtime::add_agent(uint64_t entry) {
  const uint32_t index = channel_->agent_count;
  if (index >= kMostAgents) return kNobody;
  Slot& slot = channel_->slots[index];
  slot.id = self_plus_one == 0 ? AgentId::initial(0).raw : child_id().raw;
  slot.ops = 0;
  slot.entry = entry;
  slot.pc = entry;
  slot.object = 0;
  slot.turn.store(static_cast<uint32_t>(Turn::Wait), std::memory_order_relaxed);
  slot.op = OpKind::GoOn;
  slot.state = Slot::State::Enabled;
  if (self_plus_one != 0) ++me().spawned;
  agents_[index] = Agent{};
  channel_->agent_count = index + 1;
  return index;
}

uint32_t Runtime::begin_execution(pthread_t first) {
  clock_ = 0;
  clock_reads_ = 0;
  random_ = kRandomSeed;
  read_hold_count_ = 0;
  const uint32_t index = add_agent(0);
  agents_[index].thread = first;
  channel_->choice = {static_cast<uint32_t>(ChoiceKind::Start), index, 0};
  on_ = true;
  return index;
}

void Runtime::begin_first() {
  tell(OpKind::GoOn, 0);
  retire();
}

void Runtime::enter(uint32_t index) {
  set_self(index);
  wait_turn(index);
  tell(OpKind::GoOn, 0);
  retire();
}

void Runtime::end_agent() {
  const uint32_t index = self();
  Slot& slot = channel_->slots[index];
  arrive(OpKind::Exit, agent_object(slot), slot.pc);
  tell(OpKind::Exit, agent_object(slot), 0, 0, index);
  retire();
  if (alone()) end_last();
  slot.state = Slot::State::Ended;
  refresh();
  stop(ChoiceKind::Ended, 0);
  for (;;) wait_turn(index);
}

void Runtime::process_ends(int status) {
  if (!controls()) return;
  channel_->ending.kind = Ending::Kind::Exit;
  channel_->ending.agent = self();
  channel_->ending.status = static_cast<uint32_t>(status) & 0xff;
  for (uint32_t i = 0; i < agent_count(); ++i)
    if (i != self() && i != 0 && !ended(i) && !agents_[i].detached)
      note_uncontrolled(Uncontrolled::LeakedThread);
}

void Runtime::fail(Ending::Kind kind, uint64_t pc, const char* what) {
  const uint32_t agent = controls() ? self() : kNobody;
  if (agent != kNobody) {
    channel_->slots[agent].pc = pc;
    if (channel_->record_count + 1 < kMostRecords) tell(OpKind::Fail, 0, 0, 0, kNobody, what);
  }
  channel_->ending = {kind, agent, 0, put_text(what), pc};
  end_process();
}

void Runtime::note_uncontrolled(Uncontrolled what) {
  channel_->uncontrolled |= static_cast<uint32_t>(what);
}

void Runtime::cancel_point(bool begins) {
  Agent& agent = me();
  if (agent.cancelled && agent.cancellable) {
    agent.cancelled = false;
    agent.result = PTHREAD_CANCELED;
    SLALOM_REAL(pthread_exit)(PTHREAD_CANCELED);
  }
  agent.at_cancel_point = begins;
}

uint64_t Runtime::read_clock(uint64_t pc) {
  clock_ += kOperationTime;
  if (++clock_reads_ == kClockReads) pass(OpKind::Yield, pc, true);
  return clock_;
}

uint64_t Runtime::random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

void Runtime::hold_read(const void* lock) {
  if (read_hold_count_ < kMostReadHolds) read_holds_[read_hold_count_++] = {lock, self()};
}

bool Runtime::drop_read(const void* lock) {
  for (uint32_t i = 0; i < read_hold_count_; ++i) {
    if (read_holds_[i].lock != lock || read_holds_[i].agent != self()) continue;
    read_holds_[i] = read_holds_[--read_hold_count_];
    return true;
  }
  return false;
}

}  // namespace slalom::preload
