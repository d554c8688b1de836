// Machine: the controlled thing. Exactly one agent runs at a time; the same inputs and decisions give the
// same events.
//
// Life of an execution: reset(), start(sink), resume(decision)... until a Stop is an Outcome. Accesses and
// events reach the sink before the Stop that follows them. Abilities that not every machine has are optional
// interfaces.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>

#include "base/result.h"
#include "trace/choice.h"
#include "trace/choice_policy.h"
#include "trace/error_return.h"
#include "trace/feedback.h"
#include "trace/forecast.h"
#include "trace/names.h"
#include "trace/outcome.h"
#include "trace/sink.h"

namespace slalom {

struct Inputs {
  ChoicePolicy policy;
  uint64_t max_steps = 20'000;
  bool at_end = false;        // accesses and events may be delivered when the execution has ended
  bool looks = false;         // its feedback is to name the atomic operations
  bool keeps_values = false;  // its trace is kept: plain stores of a program are to say what they write
  // Errors that calls gave in an execution before this one: they come again. If this one has another
  // schedule, only those that do not depend on that. None: calls are made, whatever they give.
  std::optional<ErrorLog> errors;
  bool same_schedule = false;
  // Asked now and then where executions take long: true: the rest of this one is not wanted, and it ends as
  // Abandoned. Stays true then; null: never.
  std::function<bool()> stop;
};

using Stop = std::variant<ChoicePoint, Outcome>;

// Checkpoints of a machine that stands at a choice point. They belong to the machine and survive reset().
class Snapshots {
 public:
  using Id = uint64_t;
  virtual Id take() = 0;
  virtual Stop restore(
      Id id) = 0;  // the choice point at which it was taken; events go to the sink of start()
  virtual void drop(Id id) = 0;

 protected:
  ~Snapshots() = default;
};

// Of a machine that goes on unasked where it knows what the search will choose. It shows those choice points
// later, in their order, as if it stood there.
class Foresight {
 public:
  // Does it stand at its choice point, rather than far behind it?
  virtual bool stands() const = 0;
  // Of the next resume(): who will be chosen at the choice points after it, and how those after that.
  virtual void foresee(std::span<const AgentId> next, const Forecast& then) = 0;

 protected:
  ~Foresight() = default;
};

class Machine {
 public:
  virtual ~Machine() = default;
  virtual Result<void> reset(const Inputs& inputs) = 0;
  virtual Stop start(EventSink& sink) = 0;
  virtual Stop resume(Decision decision) = 0;
  // How many of these an execution did before a second agent could exist: its step limit counts from there.
  virtual uint64_t set_up_steps() const { return 0; }
  virtual Step step() const = 0;  // visible operations retired so far, also after the end
  // What agents wait to do that cannot run now (at a choice point, or at the end): one entry per object that
  // matters. Not those whose operation another agent will complete, as a wait on a condition variable.
  virtual std::vector<Option> blocked() const = 0;
  virtual uint64_t state_hash() const = 0;              // of everything the target can observe
  virtual uint64_t digest() const { return 0; }         // of the whole execution, after its end; 0: none
  virtual bool hashes_cheaply() const { return true; }  // else only where somebody compares
  virtual Snapshots* snapshots() = 0;                   // null: this machine has none
  virtual Foresight* foresight() { return nullptr; }    // null: it asks at every choice point
  // What calls gave that failed, after the end; null: it does not keep that.
  virtual const ErrorLog* errors() const { return nullptr; }
  virtual const Names& names() const = 0;
  virtual const Feedback* feedback() const { return nullptr; }  // after the end; null: it learns nothing
};

}  // namespace slalom
