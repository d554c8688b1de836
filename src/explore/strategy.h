// Strategy: the search. It knows nothing of kernels, processes or detectors.
//
// The strategy itself runs in one place and hands out Tasks: serialisable descriptions of one execution each.
// Any worker, in any process, turns a task into a Walker (walker() is const and may be called from many
// threads) and runs it. Results come back through end() in the order in which begin() gave the tasks out,
// whatever the number of workers; so what a strategy learns, and everything it counts, depends on its options
// and the target only. Meanwhile other tasks of the same round are being executed: neither walker() nor a
// Walker may look at anything that begin() and end() change while something is outstanding.
//
// begin() returning nothing means: no task before the outstanding ones have ended; with none outstanding:
// finished. A strategy must not look at clocks, and must draw random numbers from (seed, task index) only.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "explore/execution.h"
#include "trace/forecast.h"

namespace slalom {

// An agent whose next transition need not be explored here: an earlier branch does it (sleep sets).
struct Sleeper {
  AgentId agent;
  std::vector<Touch> touches;
  bool fatal = false;  // its transition ends the execution
};

struct Task {
  uint64_t index = 0;
  uint64_t number = 0;            // the strategy's own: an arm, a depth, a node
  std::vector<Pick> prefix;       // decisions to repeat before the walker is asked
  uint64_t digest = 0;            // of the choice point after the prefix; 0: not known
  std::vector<Sleeper> sleepers;  // at the end of the prefix
  std::vector<uint64_t>
      parameters;  // learned values the walker needs (k, weights): fixed when the task is made
};

// How much an Execution must hold for this strategy.
enum class Recording : uint8_t { Schedule, Choices, Footprints };

class Walker {
 public:
  virtual ~Walker() = default;
  // `so_far` holds what Recording asked for, up to this choice point; of a Running choice, `options` are
  // those allowed by fairness. Abandoned: this execution can show nothing new.
  virtual std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                                   const Execution& so_far) = 0;
  // May the runner restrict its choices to fair ones? Not those of a schedule that is repeated, which was
  // fair enough when it was made, and may be asked in other places now.
  virtual bool fair() const { return true; }
  // What choose() will say from here on; it is Unknown, unless this says otherwise.
  virtual void forecast(Forecast&) const {}
};

// What the strategy has handed out and taken in. What the user may conclude depends on more: on executions
// that were cut off, accesses that were not seen and so on (campaign/claims.h).
struct Coverage {
  bool exhausted = false;             // no task is left (within the bound, if one is named)
  bool fair_only = false;             // fairness left schedules out; the statement says so
  std::string bound;                  // "preemptions" or "delays", if more of these were left out
  std::optional<uint64_t> completed;  // the largest bound completed
  double estimated_total = 0;         // executions, all told; 0: no estimate
  double missed = 1;                  // at most: the probability that the statement of a sampling one gives
  std::string statement;              // one sentence for people

  std::string in_words() const {  // what was completed: "1 preemption", "2 preemptions"
    return fmt::format("{} {}", *completed, bound.substr(0, bound.size() - (*completed == 1 ? 1 : 0)));
  }
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string name() const = 0;
  virtual Recording recording() const = 0;
  virtual bool fair() const { return true; }  // may the runner restrict choices to fair ones (CHESS 4.3)?
  // May the choice policy grow between rounds by what executions learn (trace/feedback.h)? Not where tasks
  // repeat prefixes.
  virtual bool adapts() const { return false; }
  // May the policy grow if the strategy then begins anew?
  virtual bool restarts() const { return false; }
  // Forgets where it has been: prefixes and counts of choice points mean something else under another policy.
  // Called when nothing is outstanding, and only if it restarts().
  virtual void restart() {}
  // Up to this many tasks will be asked for before any of them ends: for strategies that choose several at a
  // time. Called when nothing is outstanding.
  virtual void next_round(size_t) {}
  virtual std::optional<Task> begin() = 0;
  virtual std::unique_ptr<Walker> walker(const Task& task) const = 0;
  virtual void end(const Task& task, const Execution& execution) = 0;
  virtual Coverage coverage() const = 0;
  // Everything learned so far, when no task is outstanding; load() gets what save() of an equal strategy
  // wrote.
  virtual void save(ByteWriter& out) const = 0;
  virtual bool load(ByteReader& in) = 0;
};

// The default way on where a strategy has no opinion: the current agent if it can, else the next one in
// cyclic order.
const Option& next_in_order(const ChoicePoint& point, std::span<const Option> options);

}  // namespace slalom
