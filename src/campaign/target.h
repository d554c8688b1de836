// Target: what is to be explored, as far as a campaign needs to know. Made in cli/, the only place that names
// concrete machines.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "campaign/claims.h"
#include "campaign/expectation.h"
#include "finding/finding.h"
#include "machine/machine.h"

namespace slalom {

// What a machine is made for.
struct MachineUse {
  bool checkpoints = false;  // false: without snapshots, every execution from the beginning
  // Are the locks and the memory of a kernel recognised, for detectors that need them? Executions are the
  // same.
  bool locks = true, memory = true;
  // Each execution is made from the very start of the target: it is compared with others.
  bool from_start = false;
  bool orders_set_up = false;  // executions are told apart by accesses in set-up, as in older capsules
};

struct Target {
  TargetId id;
  // A machine of its own for each worker.
  std::function<Result<std::unique_ptr<Machine>>(const MachineUse&)> make_machine;
  bool yields = false;  // waits by yielding: only a fair search ends. Its loops may give up and sleep
  // What suits it, unless the user says otherwise. Empty, 0: the usual.
  std::string strategy, choices, detectors;
  uint64_t max_steps = 0;
  // Executions of so many steps take seconds: few are made to shrink a finding and to replay it. 0: they do
  // not.
  uint64_t long_steps = 0;
  bool races_count = true;              // as findings; else only where the user says so
  std::string scope;                    // what the search is about; empty: the whole target
  bool keeps_states = false;            // a state hash means the same in every process
  bool learns = false;                  // where to switch: from executions that only look (trace/feedback.h)
  bool atomics = false;                 // it may switch only at those that nothing else orders
  std::string all_detectors = "all";    // what looks at replays of it
  std::optional<Expectation> expected;  // what its file says that a search finds; none: it does not say
  // A kernel's threads that it lets nobody pin to a CPU, so that when they run is up to the kernel; by name.
  std::vector<std::string> unpinned_threads;
  uint64_t serial_orders = 0;  // of whole system calls, with which results are compared
  // Which of its memory accesses its executions have shown so far; null: all.
  std::function<Sight()> sight;
  // What the user has told it to leave out, beside the scope.
  std::vector<Caveat> standing;
  uint64_t most_places = 0;  // at which it can switch besides those of the policy's `where`; 0: any number
  // What of its executions is not compared with what it should be, each with the reason, in words.
  std::vector<std::string> not_compared;
  // What its executions have met so far that slalom does not control, in words; null: nothing that it could
  // meet.
  std::function<std::vector<UncontrolledAct>()> uncontrolled;
  // What the user should know of the target after a search besides, in words; null if there is nothing.
  std::function<std::vector<std::string>()> remarks;
  // Where its executions run, as far as replays may depend on it (Finding::surroundings); null: nowhere else.
  std::function<std::string()> surroundings;
  // Figures of its machines' executions since it was last asked, by name; empty: it has none.
  std::function<std::vector<std::pair<std::string, double>>()> statistics;
  // Runs without control, as under plain stress, for comparing with; null: not for this kind of target.
  struct Stress {
    uint64_t runs = 0, failures = 0;
    std::map<std::string, uint64_t> titles;  // how often each
  };
  std::function<Result<Stress>(uint64_t runs, uint64_t seed, const std::string& detectors)> stress;
  // What is wrong with the user's input where the first executions of a search all end so; null, empty:
  // nothing.
  std::function<std::string(const Outcome&)> input_trouble;
  // What the user sets for longer executions, and for more switches; empty: the command's options.
  std::string more_steps, everywhere;
  // How the user replays a capsule; empty: by slalom replay.
  std::function<std::string(const std::string& capsule)> replay_command;
};

}  // namespace slalom
