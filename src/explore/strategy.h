// Strategy: the search. It knows nothing of kernels, processes or detectors.
//
// The strategy object runs in one place and hands out Tasks. A task is a serialisable description of one
// execution. Any worker, in any process, makes a Walker from a task and runs it; walker() is const, and
// several threads may call it at once. Results come back through end() in the order in which begin() handed
// the tasks out, for any number of workers. What a strategy learns and counts therefore depends only on its
// options and the target. Other tasks of the same round execute meanwhile: neither walker() nor a Walker may
// read anything that begin() or end() changes while a task is outstanding.
//
// If begin() returns no task, the strategy has none until the outstanding ones end; if none is outstanding,
// the search is finished. A strategy must not read clocks, and must draw random numbers from (seed, task
// index) only.
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
#include "explore/task.h"
#include "trace/forecast.h"

namespace slalom {

// How much an Execution must record for this strategy.
enum class Recording : uint8_t { Schedule, Choices, Footprints };

class Walker {
 public:
  virtual ~Walker() = default;
  // `so_far` holds what Recording asked for, up to this choice point. At a Running choice, `options` are
  // those that fairness allows. Returns Abandoned if this execution can show nothing new.
  virtual std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                                   const Execution& so_far) = 0;
  // Whether the runner may restrict choices to fair ones. False for the replay of a schedule: it was fair
  // when it was made, but a replay may have other choice points.
  virtual bool fair() const { return true; }
  // Sets the rule that choose() follows from here on. By default the rule remains Unknown.
  virtual void rule(ChoiceRule&) const {}
};

// What the strategy has handed out and taken in. What slalom may claim depends on more, such as executions
// that were cut off and accesses that were not seen (campaign/claims.h).
struct Coverage {
  bool exhausted = false;  // no task is left (within `bound`, if it is set)
  bool fair_only = false;  // fairness left out schedules; the statement says so
  std::string bound;  // "preemptions" or "delays" if schedules with more of them were left out; else empty
  std::optional<uint64_t> completed;  // the largest bound completed
  double estimated_total = 0;         // estimated number of executions in all; 0 if there is no estimate
  double missed = 1;      // upper bound of the probability that a sampling strategy's statement gives
  std::string statement;  // one sentence for people

  // Returns what was completed: "1 preemption", "2 preemptions".
  std::string in_words() const {
    return fmt::format("{} {}", *completed, bound.substr(0, bound.size() - (*completed == 1 ? 1 : 0)));
  }
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string name() const = 0;
  virtual Recording recording() const = 0;
  // Whether the runner may restrict choices to fair ones (CHESS 4.3).
  virtual bool fair() const { return true; }
  // Whether the choice policy may grow between rounds by what executions teach (trace/knowledge.h). False for
  // strategies whose tasks repeat prefixes.
  virtual bool adapts() const { return false; }
  // Whether the policy may grow if the strategy then restarts.
  virtual bool restarts() const { return false; }
  // Forgets all prefixes and counts of choice points, which mean something else under another policy. Called
  // only if restarts() is true and no task is outstanding.
  virtual void restart() {}
  // Announces that up to this many tasks will be asked for before any of them ends. For strategies that
  // choose several tasks at a time. Called when no task is outstanding.
  virtual void next_round(size_t) {}
  virtual std::optional<Task> begin() = 0;
  virtual std::unique_ptr<Walker> walker(const Task& task) const = 0;
  virtual void end(const Task& task, const Execution& execution) = 0;
  virtual Coverage coverage() const = 0;
  // Saves everything learned so far. Called when no task is outstanding. load() gets what save() of an equal
  // strategy wrote.
  virtual void save(ByteWriter& out) const = 0;
  virtual bool load(ByteReader& in) = 0;
};

// Returns the default choice where a strategy has no opinion: the current agent if it can run, else the next
// one in cyclic order.
const Option& next_in_order(const ChoicePoint& point, std::span<const Option> options);

}  // namespace slalom
