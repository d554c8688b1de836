// Protocol: the memory that slalom and the runtime inside a target share, and the rules for passing control.
//
// Slalom runs one execution at a time, and only one thread of slalom or of the target runs at a time. The
// side that passes control first writes all data, then sets the other side's word and wakes it. Both sides
// write only these words:
//
//   parent_turn   the target sets it when it has stopped (see Phase); slalom clears it
//   zygote_turn   slalom sets it to have a process forked (see Request); the zygote clears it
//   slot.turn     slalom sets it to let that agent run; the running agent sets it if it knows the next agent;
//                 the agent itself clears it
//
// The zygote is the target, warmed up to the entry of main(). It forks executions, or a process that first
// runs the program's set-up and then forks executions from there (preload/launch/set_up.cc). The target can
// write anything into this memory, so slalom checks every index and count that it reads here. Not for stored
// data: different builds of slalom need not agree on the layout, but kVersion must be equal.
#pragma once

#include <atomic>
#include <cstdint>

#include "trace/choice_policy.h"
#include "trace/forecast.h"
#include "trace/op.h"
#include "trace/program_objects.h"

namespace slalom::preload {

inline constexpr uint32_t kVersion = 12;
inline constexpr uint32_t kMostAgents = 1024;
inline constexpr uint32_t kMostRecords = 2048;
inline constexpr uint32_t kMostWrappers = 8192;
inline constexpr uint32_t kMostModules = 64;
inline constexpr uint32_t kMostHolders = 256;
inline constexpr uint32_t kMostWatched = 2048;
inline constexpr uint32_t kMostPlaces = 1024;
inline constexpr uint32_t kMostAccesses = 64;
inline constexpr uint32_t kMostFrames = 512;
inline constexpr uint32_t kMostScoped = 1 << 16;
inline constexpr uint32_t kMostOutside = 256;
inline constexpr uint32_t kMostForeseen = 512;
inline constexpr uint32_t kMostInMask = ChoiceRule::kMostAgents;  // with more agents no decision is foreseen
inline constexpr uint32_t kMostErrors = 4096;                     // errors of calls in one execution
inline constexpr uint32_t kMostSharedSignals = 1024;
inline constexpr uint32_t kTextBytes = 8192;
inline constexpr uint32_t kPathBytes = 1024;
// Limits on the freed blocks that the target keeps aside: their number and their total size.
inline constexpr uint32_t kMostKept = 1 << 12;
inline constexpr uint64_t kMostKeptBytes = 16 << 20;
inline constexpr uint32_t kNoAgent = UINT32_MAX;
inline constexpr uint64_t kInSetUp = UINT64_MAX;  // value of Channel::set_up_steps during set-up
inline constexpr int kProcessors = 4;             // that the program sees
// Ids of objects that are not memory: channels of the program to itself (such as pipes), numbered by order of
// creation. They lie above all addresses and below agents.
inline constexpr uint64_t kChannelObjects = kNoAddresses;
// The gate of a reader-writer lock (preload/runtime/lock_words.h) has the lock's address with this bit, which
// no address has.
inline constexpr uint64_t kGateBit = kChannelObjects >> 1;
using slalom::kSignalObject;  // channels count from 1
inline constexpr uint64_t kTimerObjects = kChannelObjects + (uint64_t{1} << 32);
// File locks, System V semaphore sets and message queues of both kinds, numbered by order of first use.
inline constexpr uint64_t kFileObjects = kTimerObjects + (uint64_t{1} << 32);
inline constexpr uint64_t kSemaphoreObjects = kFileObjects + (uint64_t{1} << 32);
inline constexpr uint64_t kQueueObjects = kSemaphoreObjects + (uint64_t{1} << 32);
// Objects of OpenMP's library: an OpenMpObject in the bits from kOpenMpBits up, and a hash of its owner
// below.
inline constexpr uint64_t kOpenMpObjects = kChannelObjects + (uint64_t{1} << 44);
inline constexpr int kOpenMpBits = 40;
enum class OpenMpObject : uint32_t { Team, Barrier, Loop, Ordered, Tasks, Critical, Atomic, Cancellation };
inline constexpr uint64_t kChildObject = kTimerObjects - 1;    // child processes of the program
inline constexpr uint64_t kHandlerObject = kTimerObjects - 2;  // signal dispositions
using slalom::kForkObject;
static_assert(kForkObject == kTimerObjects - 3);
// File descriptor of the Channel in a target whose environment has the variable kVariable.
inline constexpr int kDescriptor = 3;
inline constexpr char kVariable[] = "SLALOM_CHANNEL";

enum class Phase : uint32_t {
  Launching,
  Ready,    // the zygote, or the process that has run set-up, waits for zygote_turn
  Running,  // an agent runs
  Choice,   // slalom must answer `choice`
  Drain,    // the records are full; slalom reads them, then lets choice.current go on
  Loaded,   // as Drain, for a module that was loaded after main() began: `loaded`
  Over,     // the execution and all its processes have ended: `ending`, `wait_status`
  Refused,  // the target cannot be controlled: `message`
};

// What slalom requests with zygote_turn.
enum class Request : uint32_t { None, Execution, SetUp };

enum class Turn : uint32_t { Wait, Go, Die, Show };  // Show: let a debugger see where each agent stands

// When the time limit of a waiting thread may run out.
enum class Timeouts : uint32_t {
  Any,   // at any moment
  Idle,  // only when no other agent can run
};

// Things that slalom does not control and that the target has met; one bit each, in `uncontrolled`.
enum class Uncontrolled : uint32_t {
  Fork = 1,
  ForeignThread = 2,
  Blocking = 4,
  Timer = 8,          // of a kind that is not modelled, or too many
  LeakedThread = 32,  // neither joined nor detached, alive at the end
  Outside = 64,       // the program waits for another program
  KernelIo = 128,     // asynchronous input and output in the kernel
  Program = 256,      // another program is started, or replaces this one
  Signal = 512,       // a signal from outside
  Errors = 1024,      // more errors than are kept
  Namespace = 2048,   // a module namespace with a libc of its own
  Threads = 4096,     // more threads than there is room for
  OpenMp = 8192,      // a part of OpenMP that is not modelled
  Missing = 16384,    // a joined thread was started before main()
  Proc = 32768,       // reads of files in /proc whose contents change
};

// Whether the target waits for something other than its turn, outside its threads.
enum class Outside : uint32_t {
  No,
  Bounded,  // the wait has a limit of its own
  Endless,
};

// How errors of calls are treated (preload/runtime/errors.h).
enum class Errors : uint32_t {
  Unkept,
  Kept,
  RepeatOutside,  // kept; errors in `repeated` that do not depend on the schedule come again
  Repeat,         // kept; all errors in `repeated` come again
};

// The same facts as ErrorReturn.
struct RepeatedError {
  uint64_t agent;  // AgentId
  uint64_t subject;
  uint32_t ordinal;
  uint32_t call;
  int32_t error;
  uint32_t outside;
};

struct Slot {
  uint64_t id;      // AgentId
  uint64_t ops;     // retired operations
  uint64_t entry;   // start routine
  uint64_t pc;      // of the operation that the agent is about to do or waits in
  uint64_t object;  // of that operation
  std::atomic<uint32_t> turn;
  OpKind op;
  // Parked: another agent must complete the operation.
  enum class State : uint8_t { Enabled, Disabled, Parked, Ended } state;
  uint16_t unused;
};
static_assert(sizeof(Slot) == 48);

// One of four kinds of records (`what`). `text` is an offset into Channel::texts plus 1; 0 if there is no
// text.
//
// Happened: an access (if op is a memory operation) or an event.
//
// Stop: a stop of `agent` that the target has passed without asking, because it knew that `other` is next.
// Slalom examines it at the next question. Agent: an agent that was added, or that now waits for something
// else. In both, pc, object, op and ops are those of the agent's slot.
//
// Error: an error that a call gave to the agent. `object` is the hash of the call's subject, `state` the
// call's ordinal among the agent's calls, `value` the error, and `size` the CallId. `wrote` is set if the
// error comes from outside.
struct Record {
  uint64_t step;
  uint64_t pc;
  uint64_t object;
  uint64_t state;  // of a stop: the agent's count of operations; of an access: is its memory order weak?
  int64_t value;   // of a stop: a mask of the agents that could run; 0 means only `other`
  uint32_t agent;
  uint32_t other;
  OpKind op;
  uint8_t size;   // of a stop: ChoiceKind
  uint8_t wrote;  // of a stop: the agent's Slot::State
  enum class What : uint8_t { Happened, Stop, Agent, Error } what;
  uint32_t text;

  // Values of `text` in a plain store. kKnown: `state` is the value that it wrote, and `value` the one
  // before. kForgotten: the written value is unknown. See preload/memory/stored_values.cc.
  static constexpr uint32_t kKnown = 1, kForgotten = 2;
};
static_assert(sizeof(Record) == 56);

struct Range {
  uint64_t begin, end;
};

// A function, or a place where it was inlined. `function` is equal in all pieces of one function; 0 if
// unknown.
struct ScopedCode {
  uint64_t begin, end;
  uint32_t function;
  enum class Kind : uint8_t {
    Unnamed,
    Scope,   // the search switches threads there and in functions called from there
    Atomic,  // the search switches only before its first operation
    Closed,  // the search does not switch even before its first operation, because the code began long before
  } kind;
  bool loops;     // it may execute an instruction twice
  bool in_scope;  // inlined into a function of the scope
};

// A call at `pc`, and the number of stack bytes from there to the call in the caller's frame; 0 if there is
// no caller. Only the target reads these.
struct FrameSize {
  uint64_t pc, size;
};

// How an execution ended, as far as the runtime could report it. The rest is in wait_status.
struct Ending {
  enum class Kind : uint32_t { None, Exit, Assertion, Crash } kind;
  uint32_t agent;
  uint32_t status;  // exit status, if Exit
  uint32_t text;    // as in Record
  uint64_t pc;
};

struct Channel {
  uint32_t version;
  std::atomic<uint32_t> parent_turn;
  std::atomic<uint32_t> zygote_turn;
  std::atomic<Phase> phase;

  // Written by slalom.
  Timeouts timeouts;
  enum class ChoicePoints : uint32_t {
    All,             // every stop
    SeveralAlive,    // of stops at which the agent can go on, only those while other agents are alive
    SeveralEnabled,  // and can run
  } choice_points;
  uint32_t spurious;  // how many spurious wake-ups from condition variables each agent may have
  // Files changed after this time (host clock, nanoseconds) were changed by this target.
  uint64_t files_since;
  uint64_t max_steps;  // of set-up; after set-up, of the whole execution (the target adds max_after_set_up)
  uint64_t max_after_set_up;
  uint64_t stop_at;           // the running agent's count of operations at which it must stop
  uint32_t value;             // the answer to a Data choice
  uint32_t stop_at_accesses;  // every memory access is a choice point, not only atomic ones
  uint32_t debugged;          // a debugger is attached: call slalom_failed() and slalom_switched()
  uint64_t show_at;           // the step after which to call the debugger
  uint32_t keeps_values;      // plain stores report the values that they write
  // The runtime processes the records when there are this many; 1 if it keeps values.
  uint32_t record_limit;
  uint32_t passes_stops;  // pass stops whose next agent is known, and report them later (What::Stop)
  uint32_t place_count;   // of `places`
  uint32_t access_count;  // of `accesses`
  uint32_t named_count;   // of both; 0: no plain access is a choice point
  uint32_t passed_count;  // of `passed`
  uint32_t wrapper_count, user_count;
  uint32_t scoped_count;      // of `scoped`; 0 means that the search switches everywhere
  uint32_t switches_outside;  // the search also switches outside the code in `scoped`
  Errors errors;
  uint32_t repeated_count;  // of `repeated`
  // The forecast of the last decision (trace/forecast.h).
  struct Forecast {
    uint32_t keep;          // number of stops that the running agent passes without a report,
    uint32_t keep_enabled;  // while exactly this many agents can run
    uint32_t agent_count;   // of `agents`
    uint64_t agents[kMostForeseen];
    ChoiceRule rule;
    int64_t priorities[kMostInMask];  // of the rule's agents, by index
  } forecast;

  // Written by the target.
  uint32_t agent_count;
  uint32_t record_count;
  uint32_t text_used;
  uint32_t error_count;  // errors of calls, including those beyond kMostErrors
  uint32_t uncontrolled;
  Outside waits_outside;
  uint64_t foreign_entry;  // start routine of the first thread that is not controlled
  struct {
    Range range;
    char path[kPathBytes];
  } loaded;
  uint64_t steps;
  uint64_t set_up_steps;  // steps before a second agent could exist; kInSetUp during set-up
  uint32_t set_up_calls;  // calls that could fail, made before the executions were forked
  struct {
    uint32_t kind;  // ChoiceKind
    uint32_t current;
    uint32_t arity;
  } choice;
  // The last operation that is one of `accesses`: its agent, and the agent's count of operations before it.
  uint32_t access_agent;
  uint64_t access_ops;
  uint32_t holder_count, watched_count;
  Ending ending;
  int32_t child;  // process id, with which slalom ends it
  int32_t wait_status;
  char message[512];

  Slot slots[kMostAgents];
  // Blocked agents, each with the agent that could unblock it.
  struct Holder {
    uint32_t waiting, holder;
  } holders[kMostHolders];
  // Objects that agents wait for in calls that wait for any of several. Only the target uses `call`.
  struct Watched {
    uint64_t object, call;
    uint32_t agent;
  } watched[kMostWatched];
  Record records[kMostRecords];
  char texts[kTextBytes];
  // Code of the user's own modules, and the functions in it that belong to the language's library (inlined or
  // instantiated there). An operation's place is the nearest caller inside `user` but not inside `wrappers`.
  Range user[kMostModules];
  Range wrappers[kMostWrappers];
  uint64_t outside[kMostOutside];  // code known to be in no wrapper, indexed by a hash
  uint64_t places[kMostPlaces];    // code addresses where plain accesses are choice points; sorted
  // Accesses that are choice points, besides those of `places`.
  ChoicePolicy::WatchedAccess accesses[kMostAccesses];
  // Code addresses where atomic accesses are no choice points, unless they are in `places`; sorted.
  uint64_t passed[kMostPlaces];
  FrameSize frames[kMostFrames];
  ScopedCode scoped[kMostScoped];       // sorted, without overlaps
  RepeatedError repeated[kMostErrors];  // by agent, then by ordinal

  // Written by processes that the program has forked, for the program (preload/sync/shared_signals.cc).
  std::atomic<uint64_t> shared_signals[kMostSharedSignals];
  uint32_t futile_waits;  // waits for a child that neither ended nor answered by itself; over all executions
  std::atomic<uint32_t> unreported_signals;  // a process may signal without reporting it
};

}  // namespace slalom::preload
