// Machine: runs a target under control. Exactly one agent runs at a time; the same inputs and decisions give
// the same events.
//
// An execution is reset(), start(sink), then resume(decision) until a Stop is an Outcome. Accesses and events
// reach the sink before the Stop that follows them. Abilities that only some machines have are optional
// interfaces. explore/runner.cc has this loop; debuggers go through recorded executions without it
// (vm/replay/scheduled_run.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "trace/choice.h"
#include "trace/choice_policy.h"
#include "trace/error_return.h"
#include "trace/knowledge.h"
#include "trace/names.h"
#include "trace/outcome.h"
#include "trace/sink.h"

namespace slalom {

// How much of an execution decisions control.
enum class Control : uint8_t {
  Search,  // all that a search of this target decides about
  Whole,   // the whole target, without what its search adds or leaves out: scopes, early timers, a check
  None,    // nothing: the target goes on by itself. The machine asks once, at the start, for the first agent
           // and (as Forecast::keep) for the operations of its first turn. Few machines can do this.
};

// What those who watch an execution need of it.
struct Reporting {
  bool at_end = false;  // the machine may deliver accesses and events after the execution has ended
  // The trace is kept, so plain stores of a program should carry the values that they write.
  bool keeps_values = false;
};

// What an execution repeats of an earlier one, besides its decisions.
struct Repeated {
  // Errors that calls returned. The machine returns them again; if the schedule differs (!same_schedule),
  // only those that do not depend on it. If empty, the machine makes the calls.
  std::optional<ErrorLog> errors;
  bool same_schedule = false;
};

// A test that a machine runs in an execution, if the machine was made for any number of tests: a kernel that
// was booted and prepared once. It is shared, since switching to another test should cost nothing.
struct TestInput {
  using Results = std::vector<std::vector<uint8_t>>;  // by flow, as the target wrote them
  std::vector<std::vector<uint8_t>> programs;         // by flow, in the target's own form
  // Returns what is wrong with the results, or "". Empty: they are not judged.
  std::function<std::string(const Results&)> judge;
  // Returns how many objects of each allocation site may remain allocated; nullptr if unknown. The machine
  // emits them at the end of an execution, as Alloc events with state kMayStay. Empty: unknown.
  std::function<const std::map<Place, uint64_t>*()> leftovers;
};

struct Inputs {
  ChoicePolicy policy;
  uint64_t max_steps = 20'000;
  Control control = Control::Search;
  Reporting reporting;
  Repeated repeated;
  std::shared_ptr<const TestInput> test;  // nullptr: the one that the machine was made with
  // Long executions call this now and then. If it returns true, the machine ends the execution as Abandoned.
  // Once true, it must stay true. Empty: the execution is never stopped.
  std::function<bool()> stop;
};

using Stop = std::variant<ChoicePoint, Outcome>;

// Checkpoints of a machine that stands at a choice point. They belong to the machine and survive reset().
class Snapshots {
 public:
  using Id = uint64_t;
  virtual Id take() = 0;
  // Returns the choice point of take(). Further events go to the sink of start().
  virtual Stop restore(Id id) = 0;
  virtual void drop(Id id) = 0;

 protected:
  ~Snapshots() = default;
};

// What a machine knows of an execution when it has ended. Pointers are valid until the next reset().
struct EndFacts {
  Step steps;                 // Inputs::max_steps limits it
  Position positions;         // of all agents
  uint64_t set_up_steps = 0;  // steps before a second agent could exist; the step limit counts from there
  uint64_t digest = 0;        // of the whole execution; 0 if the machine has none
  const ErrorLog* errors = nullptr;  // that calls returned; nullptr if the machine does not record them
  // What the machine itself has collected, beyond what its inputs held; nullptr if it leaves that to
  // learners.
  const Knowledge* knowledge = nullptr;
};

// Nothing has a default: a machine that wraps another one must pass on every question.
class Machine {
 public:
  virtual ~Machine() = default;
  virtual Result<void> reset(const Inputs& inputs) = 0;
  virtual Stop start(EventSink& sink) = 0;
  virtual Stop resume(Decision decision) = 0;
  virtual Position position() const = 0;  // at a choice point, or at the end
  // Returns the operations that blocked agents wait to do, at a choice point or at the end: one entry per
  // object that matters. Leaves out operations that another agent will complete, such as a wait on a
  // condition variable.
  virtual std::vector<Option> blocked() const = 0;
  virtual EndFacts ending() const = 0;      // also of an execution that the search gave up
  virtual uint64_t state_hash() const = 0;  // of everything the target can observe
  virtual bool hashes_cheaply() const = 0;  // false: call state_hash() only where it is compared
  virtual Snapshots* snapshots() = 0;       // nullptr if the machine has none
  virtual const Names& names() const = 0;
};

}  // namespace slalom
