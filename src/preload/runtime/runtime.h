// Runtime: slalom inside a target. It runs one thread (agent) at a time, stops before every operation that
// others could see, and lets slalom decide, through the shared Channel, who goes on.
//
// An interposed function calls arrive() with what it is about to do; when that returns it is this agent's
// turn, and it does the whole operation on the model (the object's own memory), tell()s what happened and
// retire()s it. The real blocking function is never called. Between two operations an agent runs untouched
// code of the target. Nothing here allocates memory or uses locks: only one thread is ever awake.
//
// Not for decisions: those are made outside. Not for threads that it did not create (libc's own helpers):
// controls() is false in them, and interposed functions pass the call on.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <cstring>

#include "preload/protocol.h"
#include "preload/runtime/agent.h"
#include "preload/runtime/raw.h"
#include "trace/agent.h"
#include "trace/choice.h"
#include "trace/event.h"

namespace slalom::preload {

inline constexpr int kPid = 4000;           // of the program; its threads count from there,
inline constexpr int kFirstChild = 20'000;  // and the processes that it starts from here

class Runtime;
// The runtime itself: the one mutable global of the library. Never destroyed, never constructed: zero.
extern unsigned char runtime_storage[];
extern constinit thread_local uint32_t self_plus_one;
extern constinit thread_local uint32_t in_allocator;  // how deep

class Runtime {
 public:
  // Is the calling thread one of an execution, and not inside the allocator that the program brought along?
  // That one's locks say nothing about the program, and libc calls it while it holds locks of its own. Always
  // inlined: the return address is that of the interposed function which asks.
  [[gnu::always_inline]] bool controls() const {
    return acts() && !is_allocator(__builtin_return_address(0));
  }
  bool executes() const { return on_; }  // is this process an execution, in whatever thread?
  // The same, but also inside that allocator.
  bool runs_agent() const { return on_ && self_plus_one != 0; }
  bool is_allocator(const void* code) const {
    return reinterpret_cast<uint64_t>(code) - allocator_.begin < allocator_.end - allocator_.begin;
  }
  uint32_t self() const { return self_plus_one - 1; }  // kNobody: it is not controlled
  void set_self(uint32_t index);                       // of the calling thread
  Agent& me() { return agents_[self()]; }
  Agent& agent(uint32_t index) { return agents_[index]; }
  uint32_t agent_count() const { return channel_->agent_count; }
  uint32_t find(pthread_t thread) const;  // kNobody: not one of ours
  Slot& slot(uint32_t index) { return channel_->slots[index]; }
  const Slot& slot(uint32_t index) const { return channel_->slots[index]; }
  bool ended(uint32_t index) const { return slot(index).state == Slot::State::Ended; }

  // Stops before an operation that needs nothing.
  [[gnu::noinline]] void arrive(OpKind op, uint64_t object, uint64_t pc);
  // True: it can be done now. False: its time is over (only with a deadline), or a handler has ended it (only
  // inside an Interruptible).
  [[gnu::noinline]] bool arrive(OpKind op, uint64_t object, uint64_t pc, Need need, const void* at = nullptr,
                                uint64_t deadline = kNever, uint32_t count = 0);
  // The agent has begun to wait for others to complete its operation. True: they did.
  bool park(OpKind op, const void* at, uint64_t pc, uint64_t deadline);
  bool may_wake_alone() const { return agents_[self()].spurious < channel_->spurious; }
  // Ends the wait of another agent, which then does `relock`, or just goes on. Not told: where what follows
  // says enough about what comes after what.
  void wake(uint32_t other, uint64_t object, bool told = true);
  void move(uint32_t other, const void* to);  // it waits on, but on another object
  void may_stop_waiting(uint32_t other);      // if it is not woken before: a signal was sent to it
  uint32_t ask(uint32_t arity);               // a value below arity: the search chooses
  // One of several objects that the running agent waits for in a call, which is named by any address of its
  // own.
  bool watch(uint64_t object, const void* call);  // false: it was one of them before
  void tell_watched(OpKind op, uint64_t state, const void* call);
  void unwatch(const void* call);

  void tell(OpKind op, uint64_t object, uint64_t state = 0, int64_t value = 0, uint32_t other = kNobody);
  void tell(OpKind op, uint64_t object, uint64_t state, int64_t value, uint32_t other, const char* text);
  void tell_access(OpKind op, const void* address, uint32_t size, uint64_t value, bool wrote,
                   bool weak = false) {
    const uint32_t agent = self();
    add({channel_->steps, channel_->slots[agent].pc, reinterpret_cast<uint64_t>(address), weak,
         static_cast<int64_t>(value), agent, kNobody, op, static_cast<uint8_t>(size), wrote,
         Record::What::Happened, 0});
  }
  // What stands there is not what the latest plain stores wrote: they keep no value.
  void drop_values(const void* address, uint64_t size) {
    if (first_store_ != kNobody) forget_stores(reinterpret_cast<uint64_t>(address), size);
  }
  // That an operation depends on who sends its agent a signal, and on who forks a process that inherits what
  // it does: arrive() does this, where there is anything to tell. Of what does not arrive, too, since it may
  // in another execution of the same schedule.
  bool has_surroundings() const { return has_handlers_ || forks_; }
  [[gnu::noinline, gnu::cold]] void tell_surroundings();
  void retire(bool yielded = false) {
    ++channel_->slots[self()].ops;
    if (++channel_->steps == channel_->show_at) [[unlikely]]
      show_last_step();
    clock_ += kOperationTime;
    clock_reads_ = 0;
    if (yielded) [[unlikely]]
      note_yield();
  }
  // A whole operation that needs nothing and concerns nobody.
  void pass(OpKind op, uint64_t pc, bool yielded);

  // A new agent, child of the running one; its thread is to call enter() first. kNobody: there are too many.
  uint32_t add_agent(uint64_t entry);
  AgentId child_id() const;       // what add_agent() will call it
  void enter(uint32_t index);     // in the new thread: waits for its first turn
  [[noreturn]] void end_agent();  // the running one is over
  void rest();                    // the same, until set_ended() takes it back
  void set_ended(uint32_t index, bool ended);
  [[noreturn]] void end_process();  // at once, without any of the target's code
  void process_ends(int status);    // libc ends the process

  // The target has broken. Ends the process. `object`: what it broke on, if known.
  [[noreturn]] void fail(Ending::Kind kind, uint64_t pc, const char* what, uint64_t object = 0);
  // Misuse of a primitive: "unlock of a mutex that ...".
  [[noreturn]] void misuse(uint64_t pc, const char* what) {
    const Slot& here = slot(self());
    fail(Ending::Kind::Crash, pc, what, here.pc == pc ? here.object : 0);
  }
  void note_uncontrolled(Uncontrolled what);
  uint64_t files_since() const { return channel_->files_since; }
  void note_foreign_thread(uint64_t entry);
  // One is joined that is not there: if any was started before main(), that may be why.
  void note_missing_thread();

  // Signals for handlers, as bits: those that an agent would take now, and those sent to the process as a
  // whole that nobody has taken yet.
  uint64_t deliverable(const Agent& agent) const { return (agent.arrived | arrived_) & ~agent.blocked; }
  uint64_t& arrived() { return arrived_; }
  // From here on what every agent does depends on those who send it signals.
  void note_handler() { has_handlers_ = true; }
  bool has_handlers() const { return has_handlers_; }

  // A signal came from outside, at any moment and in any thread: it is looked at when who runs stops next.
  void signal_came(int signal) { __atomic_fetch_or(&came_, uint64_t{1} << (signal - 1), __ATOMIC_RELAXED); }
  uint64_t take_signals_that_came() { return __atomic_exchange_n(&came_, 0, __ATOMIC_RELAXED); }
  // Processes that the program has started; it knows them by numbers that are the same each time
  // (preload/processes/pids.cc).
  int note_child(int real);     // gives that number
  void pass_fork(uint64_t pc);  // the operation before one is forked
  void pass_prepared_fork();    // the same, after the handlers that prepare it (pthread_atfork)
  void become_child();          // in one that it has forked, which ends being controlled,
  void become_grandchild() { own_number_ = 0; }
  int own_number() const { return own_number_; }            // of such a child; 0: none
  bool is_forked() const { return !on_ && process_ != 0; }  // is this one, or one's own child?
  // Condition variables that are shared with them: in one, before it signals for real; and that somebody may
  // signal who does not tell.
  void tell_shared_signal(const pthread_cond_t* condition, bool all);
  void note_stranger();
  // What a process id stands for that the program was given, and the other way round. Negative: a group.
  int real_process(int number) const;
  int number_of(int real) const;
  bool has_children() const { return (channel_->uncontrolled & kStartsProcesses) != 0; }  // or had some
  // Before a wait for one: most end soon, and by themselves, and whether that was before the turn of who
  // waits should not be a matter of chance.
  void let_child_end(const ChildWait& wanted);
  // The same, before a wait for what it may send.
  void let_child_answer(const struct pollfd* wanted, uint32_t count);
  // Around a call of libc that waits for these, or for who knows what, outside of the program.
  void set_outside(Outside how) { channel_->waits_outside = how; }

  // Around a call that may fail for reasons outside of the program (preload/runtime/errors.h): true: it gives
  // this error again, and is not made. Else what it gave; 0: it succeeded.
  [[gnu::noinline]] bool repeats_error(const struct FallibleCall& what, int& error);
  void note_result(const struct FallibleCall& what, int error) { note_result(what, error, me().calls - 1); }
  [[gnu::noinline]] void note_result(const struct FallibleCall& what, int error, uint32_t ordinal);
  void note_change();  // the running agent has changed what others may find outside

  bool is_held(uint64_t object) const;  // by hold_read(), in any agent
  // Held by an agent that has ended, and of the kind that tells the next one so.
  bool is_abandoned(const pthread_mutex_t* mutex) const;

  // Every operation that POSIX calls a cancellation point begins and ends here: the running agent ends, if it
  // was cancelled, when it is its turn.
  void cancel_point(bool begins);
  void end_if_cancelled();

  // Virtual time, a function of what was executed, in nanoseconds since the program's start.
  uint64_t now() const { return clock_; }
  uint64_t read_clock(uint64_t pc);  // a loop that waits for time to pass gets there, and gives way
  void pass_time(uint64_t until) {
    if (until > clock_) clock_ = until;
  }
  uint64_t random();

  void hold_read(const void* lock);
  bool drop_read(const void* lock) { return drop_read(lock, self()); }  // false: it does not hold it
  bool drop_read(const void* lock, uint32_t agent);

  // The life of an execution: the first agent is added, and is to call begin_first() at its first turn.
  void attach(Channel* channel) { channel_ = channel; }
  uint32_t begin_execution(pthread_t first);
  void begin_first();

  // The life of the process (preload/launch/forked.cc). connect() maps the channel; serve() forks the
  // executions and returns in each.
  bool connect();
  bool connected() const;  // is this process a target, and nothing else?
  void serve();
  // Set-up is what the program does before a second agent can exist (preload/launch/set_up.cc): nothing in
  // it is a choice point, and it has a step limit of its own.
  bool in_set_up() const { return in_set_up_; }
  void end_set_up() {
    if (in_set_up_) [[unlikely]]
      leave_set_up();
  }
  // Call before anything that executions forked later would share, or would not have: they begin here, unless
  // they have begun already.
  void begin_executions_here() {
    if (begins_later_) [[unlikely]]
      begin_executions();
  }
  void leave();  // in a process that the target has forked: no more control
  void find_allocator();

  // Where in the user's own code an operation is: `return_address`, or a caller's.
  // `stack`: just above where that was stored, if known.
  uint64_t place(void* return_address, const void* stack = nullptr);
  void prepare_places()
      const;  // the unwinder does at its first use what an execution would take for the target's
  bool is_user_code(uint64_t pc) const;
  // Code that is loaded after main() began (preload/launch/modules.cc): slalom is told of it before it is
  // first seen.
  void note_modules();  // those that are there then
  void look_for_forks();
  void load_modules() { looks_ = kMostLooks; }
  void look_for_modules() {
    if (looks_ != 0) find_modules();
  }
  // In the user's modules, but of the C++ library's headers? Mostly it is not, and the same ones come again
  // and again.
  bool is_library_code(uint64_t pc) const { return known_outside(pc) != pc && find_in_library(pc); }
  // Must the running agent stop before a plain memory access there?
  bool stops_at_access(uint64_t pc) const {
    if (channel_->stop_at_accesses != 0 || slot(self()).ops == channel_->stop_at) return true;
    return channel_->place_count != 0 && is_place(pc);
  }
  bool stops_at_atomic(uint64_t pc) const;  // before an atomic one?
  bool is_at_limit() const { return channel_->steps >= channel_->max_steps; }
  void set_place(uint64_t pc) { channel_->slots[self()].pc = pc; }
  // The program was built so that its memory accesses are seen; what libc does for it, then, is as well.
  void see_accesses() { accesses_seen_ = true; }
  bool warms_up() const { return accesses_seen_ && connected() && !on_; }  // before main()
  bool sees_accesses() const { return accesses_seen_ && controls(); }

 private:
  struct ReadHold {
    const void* lock;
    uint32_t agent;
  };
  static constexpr uint32_t kMostReadHolds = 512;
  static constexpr uint32_t kMostChildren = 64;
  // All of a dlopen() is there when the first constructor runs; before, the loader just allocates memory.
  static constexpr uint32_t kMostLooks = 256;
  static constexpr auto kStartsProcesses =
      static_cast<uint32_t>(Uncontrolled::Fork) | static_cast<uint32_t>(Uncontrolled::Program);

  // In virtual nanoseconds. Operations are fast, so that code which tries for some microseconds before it
  // waits (libstdc++'s semaphores with a time limit) comes to waiting, where the search takes over.
  static constexpr uint64_t kOperationTime = 100;
  bool acts() const { return on_ && self_plus_one != 0 && in_allocator == 0; }
  [[gnu::noinline, gnu::cold]] void show_last_step();
  [[gnu::noinline, gnu::cold]] void note_yield();
  bool is_place(uint64_t pc) const;
  [[gnu::noinline, gnu::cold]] void leave_set_up();
  [[gnu::noinline, gnu::cold]] void begin_executions();
  [[gnu::noinline]] void fork_after_set_up();
  void fork_executions(bool adopts);  // returns in each
  void tell_parent(Phase phase);
  uint64_t& known_outside(uint64_t pc) const {
    return channel_->outside[(pc * 0x9e3779b97f4a7c15u >> 40) % kMostOutside];
  }
  [[gnu::noinline]] bool find_in_library(uint64_t pc) const;
  [[gnu::noinline, gnu::cold]] void find_modules();
  bool wait_for_turn(OpKind op, uint64_t object, uint64_t pc, Need need, const void* at, uint64_t deadline,
                     uint32_t count);
  // By a signal, which may have come, or since it may be cancelled anywhere.
  bool is_disturbed() const {
    const Agent& agent = agents_[self()];
    return has_surroundings() || deliverable(agent) != 0 || agent.asynchronous;
  }
  [[gnu::noinline, gnu::cold]] bool disturb(OpKind op, uint64_t object, uint64_t pc, Need need,
                                            const void* at, uint64_t deadline, uint32_t count, bool can);
  void tell_handling(Need need, uint64_t deadline);
  bool satisfied(uint32_t index) const;
  bool available(uint32_t index) const;
  void refresh();
  [[gnu::noinline, gnu::cold]] void nobody_can_run();
  // In preload/processes/outside.cc, and in check/in_process.cc, where there is no outside.
  bool wait_outside(bool for_long);
  bool await_outside(bool for_long);
  bool children_live() const;
  bool wake_shared(bool again);
  void take_shared_signals();
  void forget_shared_signals();
  void give_way_at_end();
  [[gnu::noinline, gnu::cold]] void let_children_run();
  void list_holders();
  bool alone() const;
  bool goes_unasked();
  [[gnu::noinline, gnu::cold]] bool switches_here();
  void stop(ChoiceKind kind, uint32_t arity);
  // How turns are passed, with end_process() above: in preload/launch/forked.cc and in check/in_process.cc.
  void hand_over(Phase phase);
  void pass_turn(uint32_t next);
  void wait_turn(uint32_t index);
  [[noreturn]] void end_last();  // nobody is left
  void end_signals();            // the kernel has none for the running agent from here on
  uint32_t put_text(const char* text);
  void tell_event(OpKind op, uint64_t object, uint64_t state, int64_t value, uint32_t other, uint32_t text);
  // Inlined, so that records are made where they stay.
  [[gnu::always_inline]] void add(const Record& record) {
    channel_->records[channel_->record_count] = record;
    if (++channel_->record_count >= channel_->record_limit) [[unlikely]] {
      if (channel_->keeps_values != 0)
        call_on_own_stack([](void* runtime) { static_cast<Runtime*>(runtime)->keep_values(); }, this);
      if (channel_->record_count >= kMostRecords) drain();
    }
  }
  [[gnu::noinline, gnu::cold]] void drain();
  // What plain stores write (preload/memory/stored_values.cc).
  bool reports_range() const;
  [[gnu::noinline, gnu::cold]] void keep_values();
  [[gnu::noinline, gnu::cold]] void read_stores(uint32_t end, bool certain);
  void settle_stores(OpKind next);  // before the agent does that, or stops
  [[gnu::noinline, gnu::cold]] void read_settled_stores();
  [[gnu::noinline, gnu::cold]] void forget_stores(uint64_t address, uint64_t size);
  bool has_lease() const;
  // Where it is known who is next (preload/runtime/passing.cc).
  bool passes(ChoiceKind kind);
  uint32_t who_is_next(ChoiceKind kind, uint64_t& enabled);
  uint32_t in_order(uint64_t enabled, bool goes_on) const;
  uint32_t drawn(uint64_t enabled, bool goes_on);
  void forget_forecast();
  void order_agent(uint32_t index);
  void tell_stop(ChoiceKind kind, uint32_t next, uint64_t enabled);
  void tell_agent(uint32_t index);
  bool is_from_outside(const struct Subject& subject, int error) const;
  const RepeatedError* find_repeated(uint32_t ordinal);
  void keep_error(const struct FallibleCall& what, int error, uint32_t ordinal);
  void tell_error(Record record);

  static constexpr uint32_t kSeveral = kNobody - 1;
  Channel* channel_ = nullptr;
  bool on_ = false;
  bool in_set_up_ = false;
  bool begins_later_ = false;        // where the executions begin has not come yet
  bool forks_after_set_up_ = false;  // this process will fork them there
  bool accesses_seen_ = false;
  bool has_handlers_ = false;   // the program has, or had, a signal's handler
  bool forks_ = false;          // it may fork: its code calls a function that does
  uint32_t looks_ = 0;          // so often is still looked for modules that it may have loaded by itself
  Range allocator_{};           // code of a shared library; empty: it is libc's
  uint32_t ran_last_ = 0;       // kept for a debugger
  uint32_t enabled_ = 0;        // how many can run, as refresh() has found
  bool unseen_ = false;         // an agent was made or woken since slalom last looked
  bool yielded_ = false;        // an agent has, in this execution, without slalom being asked
  OpKind next_ = OpKind::None;  // what settle_stores() was told
  bool copied_from_ = false;    // a load was reported after first_store_
  uint32_t first_store_ = 0;    // the record of the first store whose value was not read yet; kNobody: none
  uint32_t foreseen_ = 0;       // how many of the foreseen stops were passed
  uint8_t order_[kMostInMask];  // the first agents, in the order of ids
  uint64_t clock_ = 0;
  uint64_t random_ = 0;
  uint64_t arrived_ = 0;
  uint64_t came_ = 0;
  uint32_t changer_ = kNobody;  // who has changed what is outside, in this execution; or kSeveral
  uint32_t child_count_ = 0;
  uint32_t shared_wakes_ = 0;
  uint32_t shared_signals_taken_ = 0;
  int32_t children_[kMostChildren];  // their real numbers
  int own_number_ = 0;
  uint32_t clock_reads_ = 0;  // since the last operation
  uint32_t read_hold_count_ = 0;
  int process_ = 0;  // of the execution
  ReadHold read_holds_[kMostReadHolds];
  Agent agents_[kMostAgents];
};

inline Runtime& runtime() {
  return *reinterpret_cast<Runtime*>(runtime_storage);
}

// Around a call of a function that may be one of the program's own allocator.
class InAllocator {
 public:
  explicit InAllocator(const void* function) : is_(runtime().is_allocator(function)) {
    if (is_) enter();
  }
  ~InAllocator() {
    if (is_) leave();
  }
  InAllocator(const InAllocator&) = delete;
  InAllocator& operator=(const InAllocator&) = delete;

 private:
  static void enter();
  static void leave();
  bool is_;
};

// Around the arrive() of a call that a signal's handler can end.
class Interruptible {
 public:
  explicit Interruptible(OnSignal how) {
    runtime().me().on_signal = how;
    runtime().me().interrupted = false;
  }
  ~Interruptible() { runtime().me().on_signal = OnSignal::GoesOn; }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  bool ended() const { return runtime().me().interrupted; }
};

// What an operation is called before it is done: with a time limit it may also fail, at any moment.
inline OpKind unless_limited(OpKind op, uint64_t deadline) {
  return deadline == kNever ? op : OpKind::TryLock;
}

inline uint64_t object_id(const void* object) {
  return reinterpret_cast<uint64_t>(object);
}
// Agents are objects too: their paths lie above all addresses.
inline uint64_t agent_object(const Slot& slot) {
  return slot.id;
}
// And so are the signals that an agent takes: none has a path that ends like this.
inline uint64_t signals_object(const Slot& slot) {
  return AgentId{slot.id}.interrupt(0).raw;
}

}  // namespace slalom::preload

// The caller's place, for the first line of an interposed function.
#define SLALOM_PLACE() ::slalom::preload::runtime().place(__builtin_return_address(0), __builtin_dwarf_cfa())
// Interposed functions are the only symbols that leave the library.
#define SLALOM_EXPORT extern "C" __attribute__((visibility("default")))
