// Protocol: the memory that slalom and the runtime inside a target share, and the rules of handing over.
//
// One execution at a time, and one thread of slalom or of the target at a time: whoever hands over writes
// everything first, then sets the other's word and wakes it. The words are the only things that two write:
//
//   parent_turn   set by the target when it has stopped (see Phase); cleared by slalom
//   zygote_turn   set by slalom to have a process forked (see Request); cleared by the zygote
//   slot.turn     set by slalom to let that agent run, or by the agent that ran, where it knows who is next;
//                 cleared by the agent
//
// The zygote is the target, warmed up to the entry of main(). It forks executions, or a process that first
// runs the program's set-up and then forks executions from there (preload/launch/set_up.cc). The memory is
// as untrusted as everything a target can write: slalom checks every index and count that it reads here. Not
// for anything that is kept: no two builds of slalom need to agree on it, kVersion must just be equal.
#pragma once

#include <atomic>
#include <cstdint>

#include "trace/forecast.h"
#include "trace/op.h"

namespace slalom::preload {

inline constexpr uint32_t kVersion = 11;
inline constexpr uint32_t kMostAgents = 1024;
inline constexpr uint32_t kMostRecords = 2048;
inline constexpr uint32_t kMostWrappers = 8192;
inline constexpr uint32_t kMostModules = 64;
inline constexpr uint32_t kMostHolders = 256;
inline constexpr uint32_t kMostWatched = 2048;
inline constexpr uint32_t kMostPlaces = 1024;
inline constexpr uint32_t kMostFrames = 512;
inline constexpr uint32_t kMostScoped = 1 << 16;
inline constexpr uint32_t kMostOutside = 256;
inline constexpr uint32_t kMostForeseen = 512;
inline constexpr uint32_t kMostInMask = Forecast::kMostAgents;  // with more, no decision is foreseen
inline constexpr uint32_t kMostErrors = 4096;                   // of calls, in an execution
inline constexpr uint32_t kMostSharedSignals = 1024;
inline constexpr uint32_t kTextBytes = 8192;
inline constexpr uint32_t kPathBytes = 1024;
// Freed blocks that the target keeps aside: so many, of so many bytes together.
inline constexpr uint32_t kMostKept = 1 << 12;
inline constexpr uint64_t kMostKeptBytes = 16 << 20;
inline constexpr uint32_t kNobody = UINT32_MAX;
inline constexpr uint64_t kInSetUp = UINT64_MAX;  // Channel::set_up_steps, until set-up is over
inline constexpr int kProcessors = 4;             // as far as the program can see
// Objects that are no memory: channels of the program to itself (pipes and the like), by their order of
// creation. Above all addresses, below agents.
inline constexpr uint64_t kChannelObjects = uint64_t{1} << 48;
// The gate of a reader-writer lock (preload/sync/locks.h): the lock's address with this bit, which no address
// has.
inline constexpr uint64_t kGateBit = kChannelObjects >> 1;
inline constexpr uint64_t kSignalObject = kChannelObjects;  // the process's signals; channels count from 1
inline constexpr uint64_t kTimerObjects = kChannelObjects + (uint64_t{1} << 32);
// Locks of files, sets of System V semaphores and message queues of both kinds, by their order of first use.
inline constexpr uint64_t kFileObjects = kTimerObjects + (uint64_t{1} << 32);
inline constexpr uint64_t kSemaphoreObjects = kFileObjects + (uint64_t{1} << 32);
inline constexpr uint64_t kQueueObjects = kSemaphoreObjects + (uint64_t{1} << 32);
// What OpenMP's library has for its teams: a kind of them in the bits above kOpenMpBits, and a hash of whose
// it is.
inline constexpr uint64_t kOpenMpObjects = kChannelObjects + (uint64_t{1} << 44);
inline constexpr int kOpenMpBits = 40;
enum class OpenMpObject : uint32_t { Team, Barrier, Loop, Ordered, Tasks, Critical, Atomic, Cancellation };
inline constexpr uint64_t kChildObject = kTimerObjects - 1;    // processes that the program has started
inline constexpr uint64_t kHandlerObject = kTimerObjects - 2;  // what is done with signals that come
inline constexpr uint64_t kForkObject = kTimerObjects - 3;     // what a process inherits that is forked
inline constexpr int kDescriptor = 3;  // of the Channel, in a target that has this environment variable
inline constexpr char kVariable[] = "SLALOM_CHANNEL";

enum class Phase : uint32_t {
  Launching,
  Ready,    // the zygote, or the process that has run set-up, waits for zygote_turn
  Running,  // an agent runs
  Choice,   // `choice` asks
  Drain,    // the records are full: read them, then let choice.current go on
  Loaded,   // the same, for a module that was loaded after main() began: `loaded`
  Over,     // the execution has ended and nothing of it is left: `ending`, `wait_status`
  Refused,  // the target cannot be controlled: `message`
};

// What zygote_turn asks for.
enum class Request : uint32_t { None, Execution, SetUp };

enum class Turn : uint32_t { Wait, Go, Die, Show };  // Show: to a debugger, where everybody stands

// What may happen when a thread waits with a time limit.
enum class Timeouts : uint32_t {
  Any,   // it may run out at any moment
  Idle,  // it runs out only when nothing else can run
};

// Things met that slalom does not control; a bit each, in `uncontrolled`.
enum class Uncontrolled : uint32_t {
  Fork = 1,
  ForeignThread = 2,
  Blocking = 4,
  Timer = 8,          // of a kind, or in a number, that is not modelled
  LeakedThread = 32,  // neither joined nor detached, still there at the end
  Outside = 64,       // the program waits for another one
  KernelIo = 128,     // asynchronous input and output in the kernel
  Program = 256,      // another one is started, or takes this one's place
  Signal = 512,       // from outside
  Errors = 1024,      // more than are kept
  Namespace = 2048,   // of a module, with a libc of its own
  Threads = 4096,     // more than there is room for
  OpenMp = 8192,      // what is not modelled of it
  Missing = 16384,    // a thread is joined that was started before main()
  Proc = 32768,       // files of /proc whose contents change are read
};

// Does the target wait for something outside of its threads, rather than for its turn?
enum class Outside : uint32_t {
  No,
  Bounded,  // it gives up by itself
  Endless,
};

// What becomes of errors that calls give (preload/runtime/errors.h).
enum class Errors : uint32_t {
  Unkept,
  Kept,
  RepeatOutside,  // kept, and those in `repeated` come again if they do not depend on the schedule,
  Repeat,         // or all of them
};

// As ErrorReturn.
struct RepeatedError {
  uint64_t agent;  // its id
  uint64_t subject;
  uint32_t ordinal;
  uint32_t call;
  int32_t error;
  uint32_t outside;
};

struct Slot {
  uint64_t id;      // AgentId
  uint64_t ops;     // retired
  uint64_t entry;   // its start routine
  uint64_t pc;      // of the operation it is about to do, or waits in
  uint64_t object;  // of that operation
  std::atomic<uint32_t> turn;
  OpKind op;
  enum class State : uint8_t { Enabled, Disabled, Parked, Ended } state;  // Parked: others must complete it
  uint16_t unused;
};
static_assert(sizeof(Slot) == 48);

// An access (op is a memory one) or an event. `text` is an offset into Channel::texts plus 1; 0: none.
//
// Or a stop of `agent` which the target has passed, since it knew that `other` is next: slalom looks at it
// when it is next asked. Or an agent that was made, or that waits for something else now. Of both, pc,
// object, op and ops are those of the agent's slot.
//
// Or an error that a call gave the agent: `object` is the hash of what it was about, `state` the call's
// number among the agent's, `value` the error, `size` the Call, `wrote`: it comes from outside.
struct Record {
  uint64_t step;
  uint64_t pc;
  uint64_t object;
  uint64_t state;  // of a stop: the agent's count of operations; of an access: is its memory order weak?
  int64_t value;   // of a stop: who could run, a bit each; 0: only `other`
  uint32_t agent;
  uint32_t other;
  OpKind op;
  uint8_t size;   // of a stop: its ChoiceKind
  uint8_t wrote;  // of a stop: the agent's Slot::State
  enum class What : uint8_t { Happened, Stop, Agent, Error } what;
  uint32_t text;

  // Values of `text` in a plain store: `state` is what it wrote (`value` is what was there before); or that
  // is not known. See preload/memory/stored_values.cc.
  static constexpr uint32_t kKnown = 1, kForgotten = 2;
};
static_assert(sizeof(Record) == 56);

struct Range {
  uint64_t begin, end;
};

// A function, or a place where it was inlined. `function`: the same for all of its pieces; 0: it is not
// known.
struct ScopedCode {
  uint64_t begin, end;
  uint32_t function;
  enum class Kind : uint8_t {
    Unnamed,
    Scope,   // the search switches threads there, and in what it calls
    Atomic,  // there it does not, but before
    Closed,  // nor before the first operation there: it has begun long before that
  } kind;
  bool loops;     // it can execute an instruction twice, as far as is known
  bool in_scope;  // it was inlined into a function of the scope
};

// A call at `pc`, and the bytes of stack from there to the caller's own call (0: there is no caller). Only
// the target looks at these.
struct FrameSize {
  uint64_t pc, size;
};

// How an execution ended, as far as the runtime could say; the rest is in wait_status.
struct Ending {
  enum class Kind : uint32_t { None, Exit, Assertion, Crash } kind;
  uint32_t agent;
  uint32_t status;  // of Exit
  uint32_t text;    // as in Record
  uint64_t pc;
};

struct Channel {
  uint32_t version;
  std::atomic<uint32_t> parent_turn;
  std::atomic<uint32_t> zygote_turn;
  std::atomic<Phase> phase;

  // from slalom
  Timeouts timeouts;
  enum class Skip : uint32_t {
    Nothing,
    Last,  // an agent that is the only one left is not asked
    Only,  // nor one that is the only one that can run
  } skip;
  uint32_t spurious;  // how often each agent may wake from a condition variable by itself
  uint64_t
      files_since;     // files changed later, by the host's clock in nanoseconds, are of this target's making
  uint64_t max_steps;  // of set-up; then of the whole execution: the target adds the next one
  uint64_t max_after_set_up;
  uint64_t stop_at;           // the running agent's count of operations at which it must stop
  uint32_t value;             // the answer to a Data choice
  uint32_t lease;             // so many stops the running agent passes unasked,
  uint32_t lease_enabled;     // as long as so many agents can run
  uint32_t stop_at_accesses;  // every memory access is a choice point, not only atomic ones
  uint32_t debugged;          // a debugger is attached: slalom_failed() and slalom_switched() are called
  uint64_t show_at;           // the step after which the debugger is to look
  uint32_t keeps_values;      // plain stores are to say what they write
  uint32_t record_limit;    // the runtime looks at the records when there are this many: 1 if it keeps values
  uint32_t passes_stops;    // stops whose next agent is known: they are reported later (What::Stop)
  uint32_t foreseen_count;  // of `foreseen`
  uint32_t place_count;     // of `places`
  uint32_t passed_count;    // of `passed`
  uint32_t wrapper_count, user_count;
  uint32_t scoped_count;      // of `scoped`; 0: the search switches everywhere
  uint32_t switches_outside;  // of all that is named there
  Errors errors;
  uint32_t repeated_count;  // of `repeated`

  // from the target
  uint32_t agent_count;
  uint32_t record_count;
  uint32_t text_used;
  uint32_t error_count;  // that calls gave, also those that were too many to be told
  uint32_t uncontrolled;
  Outside waits_outside;
  uint64_t foreign_entry;  // the start routine of the first thread that is not controlled
  struct {
    Range range;
    char path[kPathBytes];
  } loaded;
  uint64_t steps;
  uint64_t set_up_steps;  // those before a second agent could exist; kInSetUp: none could yet
  uint32_t set_up_calls;  // that could fail, made before executions were forked
  struct {
    uint32_t kind;  // ChoiceKind
    uint32_t current;
    uint32_t arity;
  } choice;
  uint32_t holder_count, watched_count;
  Ending ending;
  int32_t child;  // its pid, for slalom to end it
  int32_t wait_status;
  char message[512];

  Slot slots[kMostAgents];
  struct Holder {
    uint32_t waiting, holder;
  } holders[kMostHolders];  // of blocked operations, where somebody in particular could let them go on
  // What agents wait for in calls that wait for one of several objects. `call`: for the target only.
  struct Watched {
    uint64_t object, call;
    uint32_t agent;
  } watched[kMostWatched];
  Record records[kMostRecords];
  char texts[kTextBytes];
  // Code of the user's own modules, and the functions in it that are parts of the language's library (inlined
  // or instantiated there): an operation's place is the nearest caller in the first but not in the second.
  Range user[kMostModules];
  Range wrappers[kMostWrappers];
  uint64_t outside[kMostOutside];  // code that was found to be in none of the wrappers, by a hash
  uint64_t places[kMostPlaces];    // where plain accesses are choice points; sorted
  uint64_t passed[kMostPlaces];    // where atomic ones are none, unless these are among the places; sorted
  // Who is next at the stops to come, by their ids; and how it is chosen after these.
  uint64_t foreseen[kMostForeseen];
  Forecast forecast;
  int64_t priorities[kMostInMask];  // of its agents, by index
  FrameSize frames[kMostFrames];
  ScopedCode scoped[kMostScoped];       // sorted, without overlaps
  RepeatedError repeated[kMostErrors];  // by agent, then by ordinal

  // From processes that the program has forked, to the program (preload/sync/shared_signals.cc).
  std::atomic<uint64_t> shared_signals[kMostSharedSignals];
  uint32_t vain_waits;              // for a child that did not end, or answer, by itself; in all executions
  std::atomic<uint32_t> strangers;  // there may be signals that are not told
};

}  // namespace slalom::preload
