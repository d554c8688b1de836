#include "preload/runtime/runtime.h"

#include "preload/runtime/debugger.h"
#include "preload/runtime/handlers.h"
#include "preload/runtime/raw.h"

namespace slalom::preload {
namespace {

// In virtual nanoseconds. Reading the clock takes longer than an operation, so that loops which wait for time
// to pass end.
constexpr uint64_t kClockReadTime = 1'000;
constexpr uint64_t kRandomSeed = 0x9e3779b97f4a7c15u;
constexpr uint32_t kClockReads = 64;  // this many reads in a row mean a loop that waits for time to pass

// Returns whether the operation touches only the program's memory. A forked process then has its effect, too.
bool is_private(OpKind op, uint64_t object) {
  if (object >= kChannelObjects) return false;
  return (op >= OpKind::Load && op <= OpKind::WriteUnlock) || op == OpKind::Signal ||
         op == OpKind::Broadcast || op == OpKind::SemWait || op == OpKind::SemPost;
}

// Calls `act` further down the stack. Its frames then leave no data where a program may look that uses stack
// memory that it no longer owns. A replay does not call `act`, so such a program would behave differently.
template <typename Act>
[[gnu::noinline]] bool call_further_down(Act act) {
  constexpr size_t kStackGap = 4096;
  const void* room = __builtin_alloca(kStackGap);
  asm volatile("" ::"r"(room));
  return act();
}

}  // namespace

alignas(Runtime) constinit unsigned char runtime_storage[sizeof(Runtime)] = {};
constinit thread_local uint32_t self_plus_one = 0;
constinit thread_local uint32_t in_allocator = 0;

void Runtime::set_self(uint32_t index) {
  self_plus_one = index == kNoAgent ? 0 : index + 1;
}

void InAllocator::enter() {
  ++in_allocator;
}
void InAllocator::leave() {
  --in_allocator;
}

uint32_t Runtime::find(pthread_t thread) const {
  for (uint32_t i = 0; i < agent_count(); ++i)
    if (agents_[i].thread == thread) return i;
  return kNoAgent;
}

bool Runtime::alone() const {
  for (uint32_t i = 0; i < agent_count(); ++i)
    if (i != self() && !ended(i)) return false;
  return true;
}

// Returns whether an agent that could go on may do so without asking the search.
bool Runtime::may_skip_stop() {
  if (in_set_up_) return channel_->steps < channel_->max_steps;
  if (slot(self()).ops == channel_->stop_at || channel_->steps >= channel_->max_steps) return false;
  if (channel_->scoped_count != 0 && !switches_here()) return true;
  using enum Channel::ChoicePoints;
  if (channel_->choice_points == All) return false;
  return channel_->choice_points == SeveralAlive ? alone() : enabled_ == 1;
}

// Returns whether the forecast keeps the agent, which could go on.
bool Runtime::keeps_agent() const {
  if (agents_changed_ || slot(self()).ops == channel_->stop_at || channel_->steps >= channel_->max_steps)
    return false;
  return enabled_ == channel_->forecast.keep_enabled;
}

[[gnu::always_inline]] inline void Runtime::settle_stores(OpKind next) {
  if (first_store_ == kNoAgent) return;
  next_ = next;
  call_on_own_stack([](void* runtime) { static_cast<Runtime*>(runtime)->read_settled_stores(); }, this);
}

void Runtime::drain() {
  channel_->choice.current = self();  // the reporting agent; the record may be about another one
  // Keeps the record of a store that was not executed yet until its value is known.
  const bool waits = first_store_ == kMostRecords - 1;
  const Record last = channel_->records[kMostRecords - 1];
  if (waits) --channel_->record_count;
  hand_over(Phase::Drain);
  first_store_ = waits ? 0 : kNoAgent;
  if (waits) channel_->records[channel_->record_count++] = last;
}

void Runtime::stop(ChoiceKind kind, uint32_t arity) {
  settle_stores(OpKind::None);
  if (in_set_up_ && kind != ChoiceKind::Start && channel_->steps < channel_->max_steps) [[unlikely]]
    leave_set_up();
  if (channel_->forecast.keep != 0 && kind == ChoiceKind::Running && keeps_agent()) {
    --channel_->forecast.keep;
    return;
  }
  if (call_further_down([&] { return channel_->passes_stops != 0 && passes(kind); })) return;
  if (channel_->passes_stops != 0) forget_forecast();
  channel_->choice = {static_cast<uint32_t>(kind), self(), arity};
  agents_changed_ = false;
  hand_over(Phase::Choice);
}

// Flattened, because the processor mispredicts the return of every call between here and the code that passes
// turns.
[[gnu::flatten]] void Runtime::arrive(OpKind op, uint64_t object, uint64_t pc) {
  wait_for_turn(op, object, pc, Need::Nothing, nullptr, kNever, 0);
  if (is_disturbed()) disturb(op, object, pc, Need::Nothing, nullptr, kNever, 0, true);
}

[[gnu::flatten]] bool Runtime::arrive(OpKind op, uint64_t object, uint64_t pc, Need need, const void* at,
                                      uint64_t deadline, uint32_t count) {
  const bool can = wait_for_turn(op, object, pc, need, at, deadline, count);
  return is_disturbed() ? disturb(op, object, pc, need, at, deadline, count, can) : can;
}

void Runtime::tell_hidden_dependencies() {
  if (has_handlers_) tell(OpKind::CpuUse, signals_object(slot(self())));
  if (forks_) tell(OpKind::CpuUse, kForkObject);
}

// The part of arrive() after its turn has come, if is_disturbed().
bool Runtime::disturb(OpKind op, uint64_t object, uint64_t pc, Need need, const void* at, uint64_t deadline,
                      uint32_t count, bool can) {
  Agent& agent = me();
  for (;;) {
    tell_hidden_dependencies();
    if (deliverable(agent) == 0) break;
    const bool waited = agent.lacked_need;
    tell_handling(need, deadline);
    const bool restarts = run_handlers();
    if (need == Need::Handler) return true;
    if (waited &&
        (agent.on_signal == OnSignal::Ends || (agent.on_signal == OnSignal::EndsOrRestarts && !restarts))) {
      agent.interrupted = true;
      return false;
    }
    if (need == Need::Wakeup) {  // others treat it as no longer waiting, so its wait ends
      agent.left_after_signal = !agent.woken;
      agent.woken = true;
      deadline = kNever;
      at = agent.relock;
      need = at != nullptr ? Need::Mutex : Need::Nothing;
      op = at != nullptr ? OpKind::Lock : OpKind::GoOn;
      object = object_id(at);
    }
    can = wait_for_turn(op, object, pc, need, at, deadline, count);
  }
  // Not while it takes back the mutex of a condition variable, because it must own that mutex when it ends.
  if (agent.asynchronous && agent.relock == nullptr) cancel_point(false);
  return can;
}

[[gnu::always_inline]] inline bool Runtime::wait_for_turn(OpKind op, uint64_t object, uint64_t pc, Need need,
                                                          const void* at, uint64_t deadline, uint32_t count) {
  settle_stores(op);
  const uint32_t index = self();
  Agent& agent = agents_[index];
  Slot& slot = channel_->slots[index];
  if (in_set_up_ && !is_private(op, object)) [[unlikely]]
    leave_set_up();
  slot.op = op;
  slot.object = object;
  slot.pc = pc;
  agent.need = need;
  agent.object = at;
  agent.count = count;
  agent.deadline = deadline;
  const auto is_there = [&] { return need == Need::Nothing || satisfied(index); };
  refresh();
  const bool ready = is_there();
  ChoiceKind kind = ChoiceKind::Blocked;
  if (need == Need::Nothing || slot.state == Slot::State::Enabled)
    kind = ready && !agent.yielded ? ChoiceKind::Running : ChoiceKind::Yielded;
  agent.yielded = false;
  if (kind != ChoiceKind::Running || !may_skip_stop()) stop(kind, 0);
  const bool can = is_there();
  agent.lacked_need = need != Need::Nothing && !available(index);
  if (!can) pass_time(deadline);
  agent.need = Need::Nothing;
  agent.deadline = kNever;
  return can;
}

bool Runtime::park(OpKind op, const void* at, uint64_t pc, uint64_t deadline) {
  Agent& agent = me();
  agent.woken = agent.left_after_signal = false;
  // A wait with a time limit may end by itself, which is an operation of its own.
  arrive(deadline == kNever ? op : OpKind::TimerFire, object_id(at), pc, Need::Wakeup, at, deadline);
  return agent.woken;
}

void Runtime::wake(uint32_t other, uint64_t object, bool report) {
  if (report) tell(OpKind::Wake, object, 0, 0, other);
  // It might have left because of a signal.
  if (has_handlers_) tell(OpKind::CpuUse, signals_object(slot(other)));
  agents_changed_ = true;
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
  tell_agent(other);
}

void Runtime::move(uint32_t other, const void* to) {
  agents_changed_ = true;
  agents_[other].object = to;
  channel_->slots[other].object = object_id(to);
  tell_agent(other);
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

void Runtime::tell(OpKind op, uint64_t object, uint64_t state, int64_t value, uint32_t other) {
  tell_event(op, object, state, value, other, 0);
}
void Runtime::tell(OpKind op, uint64_t object, uint64_t state, int64_t value, uint32_t other,
                   const char* text) {
  tell_event(op, object, state, value, other, put_text(text));
}

[[gnu::always_inline]] inline void Runtime::tell_event(OpKind op, uint64_t object, uint64_t state,
                                                       int64_t value, uint32_t other, uint32_t text) {
  const uint32_t agent = controls() ? self() : kNoAgent;
  const uint64_t pc = agent == kNoAgent ? 0 : channel_->slots[agent].pc;
  add({channel_->steps, pc, object, state, value, agent, other, op, 0, 0, Record::What::Happened, text});
}

void Runtime::tell_stop(ChoiceKind kind, uint32_t next, uint64_t enabled) {
  const Slot& here = slot(self());
  add({channel_->steps, here.pc, here.object, here.ops, static_cast<int64_t>(enabled), self(), next, here.op,
       static_cast<uint8_t>(kind), static_cast<uint8_t>(here.state), Record::What::Stop, 0});
}

// Reports that an agent was added or now waits for something else. Slalom needs it to examine passed stops
// later.
void Runtime::tell_agent(uint32_t index) {
  if (channel_->passes_stops == 0) return;
  const Slot& slot = channel_->slots[index];
  add({channel_->steps, slot.pc, slot.object, slot.ops, 0, index, kNoAgent, slot.op, 0, 0,
       Record::What::Agent, 0});
}

void Runtime::tell_error(Record record) {
  record.step = channel_->steps;
  record.agent = self();
  record.other = kNoAgent;
  record.what = Record::What::Error;
  add(record);
}

void Runtime::show_last_step() {
  slalom_failed("the last step of the finding");
}

void Runtime::note_yield() {
  // An operation that is no choice point, such as a plain access after a yield, leaves the flag to the next
  // one that is.
  me().yielded = true;
  if (has_children()) let_children_run();
}

void Runtime::pass(OpKind op, uint64_t pc, bool yielded) {
  arrive(op, 0, pc);
  tell(op, 0);
  retire(yielded);
}

uint32_t Runtime::begin_execution(pthread_t first) {
  clock_ = 0;
  clock_reads_ = 0;
  random_ = kRandomSeed;
  process_signals_ = outside_signals_ = 0;
  outside_changer_ = kNoAgent;
  child_count_ = 0;
  forget_shared_signals();
  yielded_ = false;
  read_hold_count_ = 0;
  first_store_ = kNoAgent;
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

void Runtime::fail(Ending::Kind kind, uint64_t pc, const char* what, uint64_t object) {
  const uint32_t agent = controls() ? self() : kNoAgent;
  if (agent != kNoAgent) {
    // A store that crashes has no effect; the one before an assertion does.
    settle_stores(kind == Ending::Kind::Crash ? OpKind::Load : OpKind::None);
    channel_->slots[agent].pc = pc;
    if (channel_->record_count + 1 < kMostRecords) tell(OpKind::Fail, object, 0, 0, kNoAgent, what);
  }
  channel_->ending = {kind, agent, 0, put_text(what), pc};
  if (channel_->debugged != 0) slalom_failed(what);
  end_process();
}

void Runtime::note_uncontrolled(Uncontrolled what) {
  begin_executions_here();
  channel_->uncontrolled |= static_cast<uint32_t>(what);
}

void Runtime::note_foreign_thread(uint64_t entry) {
  note_uncontrolled(Uncontrolled::ForeignThread);
  if (channel_->foreign_entry == 0) channel_->foreign_entry = entry;
}

void Runtime::note_missing_thread() {
  if (channel_->foreign_entry != 0) note_uncontrolled(Uncontrolled::Missing);
}

void Runtime::cancel_point(bool begins) {
  me().at_cancel_point = begins;
  if (begins) return;
  tell(OpKind::CpuUse, agent_object(slot(self())));  // depends on the agents that may cancel it
  end_if_cancelled();
}

void Runtime::end_if_cancelled() {
  Agent& agent = me();
  if (!agent.cancelled || !agent.cancellable) return;
  agent.cancellable = false;  // it is already ending
  agent.result = PTHREAD_CANCELED;
  SLALOM_REAL(pthread_exit)(PTHREAD_CANCELED);
}

uint64_t Runtime::read_clock(uint64_t pc) {
  clock_ += kClockReadTime;
  if (++clock_reads_ == kClockReads) pass(OpKind::Yield, pc, true);
  return clock_;
}

uint64_t Runtime::random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

}  // namespace slalom::preload
