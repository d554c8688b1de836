// Runtime: the part of slalom inside a target. It runs one thread (agent) of the target at a time, stops it
// before every operation that other agents could observe, and lets slalom decide, through the shared Channel,
// which agent runs next.
//
// An interposed function calls arrive() with the operation that it is about to do. When arrive() returns, it
// is this agent's turn. The function then does the whole operation on the model (the object's own memory),
// reports it with tell(), and calls retire(). It never calls the real blocking function. Between two
// operations an agent runs unmodified code of the target. Nothing here allocates memory or takes locks, since
// only one thread is awake at any time.
//
// Not for decisions: slalom's process makes them. Not for threads that the runtime did not create (such as
// libc's helper threads): controls() is false in them, and interposed functions pass the call on to libc.
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

// Process and thread ids that the program sees. Threads of the program count up from kPid, and processes that
// it starts count up from kFirstChild.
inline constexpr int kPid = 4000;
inline constexpr int kFirstChild = 20'000;

class Runtime;
// The storage of the runtime, which is the library's one mutable global. It is zero-initialised: no
// constructor or destructor ever runs.
extern unsigned char runtime_storage[];
extern constinit thread_local uint32_t self_plus_one;
extern constinit thread_local uint32_t in_allocator;  // depth of nested InAllocator scopes

class Runtime {
 public:
  // Returns whether the calling thread is an agent of an execution and does not run the code of an allocator
  // that the program brought along. The locks of such an allocator say nothing about the program, and libc
  // calls it while holding locks of its own. Always inlined, so that the return address is that of the
  // interposed function that asks.
  [[gnu::always_inline]] bool controls() const {
    return acts() && !is_allocator(__builtin_return_address(0));
  }
  bool executes() const { return on_; }  // whether this process is an execution; true in any thread
  // As controls(), but also true inside the program's own allocator.
  bool runs_agent() const { return on_ && self_plus_one != 0; }
  bool is_allocator(const void* code) const {
    return reinterpret_cast<uint64_t>(code) - allocator_.begin < allocator_.end - allocator_.begin;
  }
  uint32_t self() const { return self_plus_one - 1; }  // kNoAgent in a thread that is not controlled
  void set_self(uint32_t index);                       // sets self() of the calling thread
  Agent& me() { return agents_[self()]; }
  Agent& agent(uint32_t index) { return agents_[index]; }
  uint32_t agent_count() const { return channel_->agent_count; }
  uint32_t find(pthread_t thread) const;  // kNoAgent if no agent has this thread
  Slot& slot(uint32_t index) { return channel_->slots[index]; }
  const Slot& slot(uint32_t index) const { return channel_->slots[index]; }
  bool ended(uint32_t index) const { return slot(index).state == Slot::State::Ended; }

  // Stops before an operation that can always be done.
  [[gnu::noinline]] void arrive(OpKind op, uint64_t object, uint64_t pc);
  // Stops before an operation that needs `need`. Returns true if the operation can be done now. Returns false
  // if its deadline has passed, or (only inside an Interruptible) if a signal handler has ended it.
  [[gnu::noinline]] bool arrive(OpKind op, uint64_t object, uint64_t pc, Need need, const void* at = nullptr,
                                uint64_t deadline = kNever, uint32_t count = 0);
  // Waits until another agent completes the operation of the running agent. Returns false if the wait ended
  // otherwise.
  bool park(OpKind op, const void* at, uint64_t pc, uint64_t deadline);
  bool may_wake_alone() const { return agents_[self()].spurious < channel_->spurious; }
  // Ends the wait of another agent, which then locks its `relock` mutex or just goes on. With `report` false
  // no Wake event is reported, because later events already order the two agents.
  void wake(uint32_t other, uint64_t object, bool report = true);
  void move(uint32_t other, const void* to);  // makes a waiting agent wait for another object
  void may_stop_waiting(uint32_t other);      // a signal was sent to an agent that may be waiting
  uint32_t ask(uint32_t arity);               // returns a value below arity that the search chooses
  // Objects that the running agent waits for in a call that waits for any of several. Any address that is
  // unique to the call identifies it.
  bool watch(uint64_t object, const void* call);  // returns false if it was already watched
  void tell_watched(OpKind op, uint64_t state, const void* call);
  void unwatch(const void* call);

  void tell(OpKind op, uint64_t object, uint64_t state = 0, int64_t value = 0, uint32_t other = kNoAgent);
  void tell(OpKind op, uint64_t object, uint64_t state, int64_t value, uint32_t other, const char* text);
  void tell_access(OpKind op, const void* address, uint32_t size, uint64_t value, bool wrote,
                   bool weak = false) {
    const uint32_t agent = self();
    add({channel_->steps, channel_->slots[agent].pc, reinterpret_cast<uint64_t>(address), weak,
         static_cast<int64_t>(value), agent, kNoAgent, op, static_cast<uint8_t>(size), wrote,
         Record::What::Happened, 0});
  }
  // Forgets the values of pending plain stores to this range, because something else has overwritten them.
  void drop_values(const void* address, uint64_t size) {
    if (first_store_ != kNoAgent) forget_stores(reinterpret_cast<uint64_t>(address), size);
  }
  // An operation depends on the agents that may send a signal to its agent, and on those that fork a process
  // that inherits its effect. tell_hidden_dependencies() reports that; arrive() calls it if
  // has_hidden_dependencies(). Operations that do not arrive must be reported too, since they may arrive in
  // another execution of the same schedule.
  bool has_hidden_dependencies() const { return has_handlers_ || forks_; }
  [[gnu::noinline, gnu::cold]] void tell_hidden_dependencies();
  void retire(bool yielded = false) {
    ++channel_->slots[self()].ops;
    if (++channel_->steps == channel_->show_at) [[unlikely]]
      show_last_step();
    clock_ += kOperationTime;
    clock_reads_ = 0;
    if (yielded) [[unlikely]]
      note_yield();
  }
  // Does a whole operation that can always be done and touches no object.
  void pass(OpKind op, uint64_t pc, bool yielded);

  // Adds a child agent of the running one. Its thread must call enter() first. Returns kNoAgent if there are
  // too many.
  uint32_t add_agent(uint64_t entry);
  AgentId child_id() const;       // the id that add_agent() will give next
  void enter(uint32_t index);     // call in the new thread; waits for its first turn
  [[noreturn]] void end_agent();  // ends the running agent
  void rest();                    // as end_agent(), until set_ended() undoes it
  void set_ended(uint32_t index, bool ended);
  [[noreturn]] void end_process();  // immediately, without running any of the target's code
  void process_ends(int status);    // libc is ending the process

  // Reports a failure of the target and ends the process. `object` is the object that it failed on, 0 if
  // unknown.
  [[noreturn]] void fail(Ending::Kind kind, uint64_t pc, const char* what, uint64_t object = 0);
  // Reports the misuse of a primitive, such as "unlock of a mutex that ...".
  [[noreturn]] void misuse(uint64_t pc, const char* what) {
    const Slot& here = slot(self());
    fail(Ending::Kind::Crash, pc, what, here.pc == pc ? here.object : 0);
  }
  void note_uncontrolled(Uncontrolled what);
  uint64_t files_since() const { return channel_->files_since; }
  void note_foreign_thread(uint64_t entry);
  // The joined thread does not exist. If any thread was started before main(), that may be the reason.
  void note_missing_thread();

  // Signals that have handlers, as bits: the ones that `agent` would take now, and the ones that were sent to
  // the whole process and that no agent has taken yet.
  uint64_t deliverable(const Agent& agent) const {
    return (agent.pending_signals | process_signals_) & ~agent.blocked;
  }
  uint64_t& process_signals() { return process_signals_; }
  // From here on every operation depends on the agents that may send its agent a signal.
  void note_handler() { has_handlers_ = true; }
  bool has_handlers() const { return has_handlers_; }

  // Notes a signal that came from outside the program. Callable at any moment and in any thread. Examined at
  // the running thread's next stop.
  void note_outside_signal(int signal) {
    __atomic_fetch_or(&outside_signals_, uint64_t{1} << (signal - 1), __ATOMIC_RELAXED);
  }
  uint64_t fetch_outside_signals() { return __atomic_exchange_n(&outside_signals_, 0, __ATOMIC_RELAXED); }
  // Processes that the program has started. The program sees numbers that are the same in each execution
  // (preload/processes/pids.cc).
  int note_child(int real);     // returns the number that the program sees
  void pass_fork(uint64_t pc);  // the operation before a fork
  void pass_prepared_fork();    // as pass_fork(), after the pthread_atfork() prepare handlers
  void become_child();          // call in a forked process; ends control there
  void become_grandchild() { own_number_ = 0; }
  int own_number() const { return own_number_; }  // the number of such a child; 0 in any other process
  // Returns whether this process is a child, or a child's child.
  bool is_forked() const { return !on_ && process_ != 0; }
  // Condition variables shared with child processes. tell_shared_signal(): a child is about to do the real
  // signal. note_unreported_signals(): a process may signal without reporting it.
  void tell_shared_signal(const pthread_cond_t* condition, bool all);
  void note_unreported_signals();
  // Translates between process numbers that the program sees and real ones. A negative number is a process
  // group.
  int real_process(int number) const;
  int number_of(int real) const;
  // Returns whether the program has started a process; also true after all of them have ended.
  bool has_children() const { return (channel_->uncontrolled & kStartsProcesses) != 0; }
  // Gives a child time to end before the program waits for it. Most children end soon. Without this pause,
  // chance would decide whether the child ends before the turn of the waiting agent.
  void let_child_end(const ChildWait& wanted);
  // As let_child_end(), before a wait for data that a child may send, or another program at the other end of
  // a connection.
  void let_others_answer(const struct pollfd* wanted, uint32_t count);
  // Call before and after a libc call that waits for child processes or for anything else outside the
  // program.
  void set_outside(Outside how) { channel_->waits_outside = how; }

  // Call these around a call that may fail for reasons outside the program (preload/runtime/errors.h).
  // repeats_error() returns true if the call must not be made and must give `error` again. Otherwise make the
  // call and pass its result to note_result(); error 0 means success.
  [[gnu::noinline]] bool repeats_error(const struct FallibleCall& what, int& error);
  void note_result(const struct FallibleCall& what, int error) { note_result(what, error, me().calls - 1); }
  [[gnu::noinline]] void note_result(const struct FallibleCall& what, int error, uint32_t ordinal);
  void note_change();  // the running agent has changed something outside the program

  bool is_held(uint64_t object) const;  // whether any agent holds it through hold_read()
  // Returns whether an ended agent holds this mutex and the mutex is robust.
  bool is_abandoned(const pthread_mutex_t* mutex) const;

  // Every cancellation point of POSIX calls this at its start and at its end. A cancelled agent ends at its
  // turn.
  void cancel_point(bool begins);
  void end_if_cancelled();

  // Virtual time in nanoseconds since the program's start. It depends only on the executed operations.
  uint64_t now() const { return clock_; }
  uint64_t read_clock(uint64_t pc);  // advances time, and yields in a loop that polls the clock
  void pass_time(uint64_t until) {
    if (until > clock_) clock_ = until;
  }
  uint64_t random();

  void hold_read(const void* lock);
  // Returns false if the agent does not hold it.
  bool drop_read(const void* lock) { return drop_read(lock, self()); }
  bool drop_read(const void* lock, uint32_t agent);

  // Starts an execution: begin_execution() adds the first agent, which must call begin_first() at its first
  // turn.
  void attach(Channel* channel) { channel_ = channel; }
  uint32_t begin_execution(pthread_t first);
  void begin_first();

  // The life of the process (preload/launch/forked.cc). connect() maps the channel. serve() forks the
  // executions and returns in each of them.
  bool connect();
  bool connected() const;  // whether this process is a target
  void serve();
  // Set-up is the part of the program before a second agent can exist (preload/launch/set_up.cc). Nothing in
  // it is a choice point, and it has a step limit of its own.
  bool in_set_up() const { return in_set_up_; }
  void end_set_up() {
    if (in_set_up_) [[unlikely]]
      leave_set_up();
  }
  // Call before any action whose effect later forked executions would share or lack. Executions begin here,
  // unless they have begun already.
  void begin_executions_here() {
    if (begins_later_) [[unlikely]]
      begin_executions();
  }
  void leave();  // call in a process that the target has forked; ends control
  void find_allocator();

  // Returns the place of an operation in the user's own code: `return_address`, or that of a caller. `stack`
  // is the address just above where the return address was stored, nullptr if unknown.
  uint64_t place(void* return_address, const void* stack = nullptr);
  // Makes the unwinder do its first-use work now, because an execution would take that work for the target's.
  void prepare_places() const;
  bool is_user_code(uint64_t pc) const;
  // Code that is loaded after main() began (preload/launch/modules.cc). The runtime reports a module to
  // slalom before any operation in it.
  void note_modules();  // the modules that are loaded at the time of the call
  void look_for_forks();
  void load_modules() { module_scans_left_ = kMostModuleScans; }
  void look_for_modules() {
    if (module_scans_left_ != 0) find_modules();
  }
  // Returns whether code in the user's modules comes from headers of the C++ library. It is mostly false, and
  // the same addresses recur; hence the cache.
  bool is_library_code(uint64_t pc) const { return known_outside(pc) != pc && find_in_library(pc); }
  // A memory access that the running agent is about to make.
  struct NextAccess {
    OpKind op;
    uint64_t address;
    uint32_t size;
    uint64_t pc;
  };
  // Returns whether the running agent must stop before a plain access.
  bool stops_at_access(const NextAccess& access) {
    if (channel_->stop_at_accesses != 0 || slot(self()).ops == channel_->stop_at) return true;
    return channel_->named_count != 0 && is_named(access);
  }
  bool stops_at_atomic(const NextAccess& access);  // the same for an atomic access
  bool is_at_limit() const { return channel_->steps >= channel_->max_steps; }
  void set_place(uint64_t pc) { channel_->slots[self()].pc = pc; }
  // The program was built so that the runtime sees its memory accesses. The runtime then reports libc's
  // accesses, too.
  void see_accesses() { accesses_seen_ = true; }
  bool warms_up() const { return accesses_seen_ && connected() && !on_; }  // true before main()
  bool sees_accesses() const { return accesses_seen_ && controls(); }

 private:
  struct ReadHold {
    const void* lock;
    uint32_t agent;
  };
  static constexpr uint32_t kMostReadHolds = 512;
  static constexpr uint32_t kMostChildren = 64;
  // All modules of a dlopen() are mapped when the first constructor runs. Before that, the loader only
  // allocates memory.
  static constexpr uint32_t kMostModuleScans = 256;
  static constexpr auto kStartsProcesses =
      static_cast<uint32_t>(Uncontrolled::Fork) | static_cast<uint32_t>(Uncontrolled::Program);

  // In virtual nanoseconds. Operations are fast, so that code which retries for some microseconds before it
  // waits (libstdc++'s semaphores with a time limit) reaches the wait, where the search takes over.
  static constexpr uint64_t kOperationTime = 100;
  bool acts() const { return on_ && self_plus_one != 0 && in_allocator == 0; }
  [[gnu::noinline, gnu::cold]] void show_last_step();
  [[gnu::noinline, gnu::cold]] void note_yield();
  [[gnu::noinline]] bool is_named(const NextAccess& access);  // by the policy
  [[gnu::noinline, gnu::cold]] void leave_set_up();
  [[gnu::noinline, gnu::cold]] void begin_executions();
  [[gnu::noinline]] void fork_after_set_up();
  void fork_executions(bool adopts);  // returns in each execution
  void tell_parent(Phase phase);
  uint64_t& known_outside(uint64_t pc) const {
    return channel_->outside[(pc * 0x9e3779b97f4a7c15u >> 40) % kMostOutside];
  }
  [[gnu::noinline]] bool find_in_library(uint64_t pc) const;
  [[gnu::noinline, gnu::cold]] void find_modules();
  bool wait_for_turn(OpKind op, uint64_t object, uint64_t pc, Need need, const void* at, uint64_t deadline,
                     uint32_t count);
  // A signal may be pending, or the agent may be cancelled at any operation.
  bool is_disturbed() const {
    const Agent& agent = agents_[self()];
    return has_hidden_dependencies() || deliverable(agent) != 0 || agent.asynchronous;
  }
  [[gnu::noinline, gnu::cold]] bool disturb(OpKind op, uint64_t object, uint64_t pc, Need need,
                                            const void* at, uint64_t deadline, uint32_t count, bool can);
  void tell_handling(Need need, uint64_t deadline);
  bool satisfied(uint32_t index) const;
  bool available(uint32_t index) const;
  void refresh();
  [[gnu::noinline, gnu::cold]] void handle_none_enabled();
  // Defined in preload/processes/outside.cc and in check/in_process.cc, which has no outside.
  bool wait_outside(bool for_long);
  bool await_outside(bool for_long);
  bool children_live() const;
  bool wake_shared(bool again);
  void take_shared_signals();
  void forget_shared_signals();
  void yield_at_end();
  void let_child_answer(const struct pollfd* wanted, uint32_t count);
  [[gnu::noinline, gnu::cold]] void let_children_run();
  void list_holders();
  bool alone() const;
  bool may_skip_stop();
  [[gnu::noinline, gnu::cold]] bool switches_here();
  void stop(ChoiceKind kind, uint32_t arity);
  // How turns are passed. Defined, as end_process() is, in preload/launch/forked.cc and in
  // check/in_process.cc.
  void hand_over(Phase phase);
  void pass_turn(uint32_t next);
  void wait_turn(uint32_t index);
  [[noreturn]] void end_last();  // the last agent has ended
  void end_signals();            // the kernel delivers no more signals to the running agent
  uint32_t put_text(const char* text);
  void tell_event(OpKind op, uint64_t object, uint64_t state, int64_t value, uint32_t other, uint32_t text);
  // Inlined, so that the compiler builds records in place.
  [[gnu::always_inline]] void add(const Record& record) {
    channel_->records[channel_->record_count] = record;
    if (++channel_->record_count >= channel_->record_limit) [[unlikely]] {
      if (channel_->keeps_values != 0)
        call_on_own_stack([](void* runtime) { static_cast<Runtime*>(runtime)->keep_values(); }, this);
      if (channel_->record_count >= kMostRecords) drain();
    }
  }
  [[gnu::noinline, gnu::cold]] void drain();
  // The values of plain stores (preload/memory/stored_values.cc).
  bool reports_range() const;
  [[gnu::noinline, gnu::cold]] void keep_values();
  [[gnu::noinline, gnu::cold]] void read_stores(uint32_t end, bool certain);
  void settle_stores(OpKind next);  // call before the agent does `next` or stops
  [[gnu::noinline, gnu::cold]] void read_settled_stores();
  [[gnu::noinline, gnu::cold]] void forget_stores(uint64_t address, uint64_t size);
  bool keeps_agent() const;
  // Stops at which the target knows the next agent (preload/runtime/passing.cc).
  bool passes(ChoiceKind kind);
  uint32_t predict_next(ChoiceKind kind, uint64_t& enabled);
  uint32_t predict_in_order(uint64_t enabled, bool goes_on) const;
  uint32_t predict_drawn(uint64_t enabled, bool goes_on);
  void forget_forecast();
  void order_agent(uint32_t index);
  void tell_stop(ChoiceKind kind, uint32_t next, uint64_t enabled);
  void tell_agent(uint32_t index);
  bool is_from_outside(const struct Subject& subject, int error) const;
  const RepeatedError* find_repeated(uint32_t ordinal);
  void keep_error(const struct FallibleCall& what, int error, uint32_t ordinal);
  void tell_error(Record record);

  static constexpr uint32_t kSeveral = kNoAgent - 1;
  Channel* channel_ = nullptr;
  bool on_ = false;
  bool in_set_up_ = false;
  bool begins_later_ = false;        // executions begin at a later point of the program
  bool forks_after_set_up_ = false;  // this process forks the executions at the end of set-up
  bool accesses_seen_ = false;
  bool has_handlers_ = false;       // the program has or had a signal handler
  bool forks_ = false;              // the program's code calls a function that forks
  uint32_t module_scans_left_ = 0;  // how many more times to look for modules loaded by the program itself
  Range allocator_{};               // code of the shared library that allocates; empty if libc does
  uint32_t ran_last_ = 0;           // kept for a debugger
  uint32_t enabled_ = 0;            // number of agents that could run at the last refresh()
  bool agents_changed_ = false;     // an agent was made or woken since slalom last looked
  bool yielded_ = false;            // an agent of this execution yielded at a stop that was passed
  OpKind next_ = OpKind::None;      // argument of settle_stores()
  bool copied_from_ = false;        // a load was reported after first_store_
  // Index of the first store record whose value was not read yet; kNoAgent if there is none.
  uint32_t first_store_ = 0;
  uint32_t foreseen_ = 0;       // number of the forecast's agents that have run so far
  uint8_t order_[kMostInMask];  // the first agents, in the order of ids
  uint64_t clock_ = 0;
  uint64_t random_ = 0;
  uint64_t process_signals_ = 0;
  uint64_t outside_signals_ = 0;
  // The agent that has changed something outside in this execution; kNoAgent if none, kSeveral if more than
  // one.
  uint32_t outside_changer_ = kNoAgent;
  uint32_t child_count_ = 0;
  uint32_t shared_wakes_ = 0;
  uint32_t shared_signals_taken_ = 0;
  int32_t children_[kMostChildren];  // their real process ids
  int own_number_ = 0;
  uint32_t clock_reads_ = 0;  // since the last operation
  uint32_t read_hold_count_ = 0;
  int process_ = 0;  // process id of the execution
  ReadHold read_holds_[kMostReadHolds];
  Agent agents_[kMostAgents];
};

inline Runtime& runtime() {
  return *reinterpret_cast<Runtime*>(runtime_storage);
}

// Construct around a call of a function that may belong to the program's own allocator.
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

// Construct around the arrive() of a call that a signal handler can end.
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

// Returns the kind to announce before the operation. With a time limit the operation may also fail at any
// moment.
inline OpKind unless_limited(OpKind op, uint64_t deadline) {
  return deadline == kNever ? op : OpKind::TryLock;
}

inline uint64_t object_id(const void* object) {
  return reinterpret_cast<uint64_t>(object);
}
// Agents are objects too. Their ids lie above all addresses.
inline uint64_t agent_object(const Slot& slot) {
  return slot.id;
}
// The signals that an agent takes are one object. No agent's id ends like this one.
inline uint64_t signals_object(const Slot& slot) {
  return AgentId{slot.id}.interrupt(0).raw;
}

}  // namespace slalom::preload

// The place of the caller. Use it in the first line of an interposed function.
#define SLALOM_PLACE() ::slalom::preload::runtime().place(__builtin_return_address(0), __builtin_dwarf_cfa())
// Interposed functions are the only symbols that the library exports.
#define SLALOM_EXPORT extern "C" __attribute__((visibility("default")))
