// Target: what to explore, as far as a campaign needs to know. cli/ makes the targets of the command, check/
// that of slalom::check; no other folder names concrete machines.
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
#include "trace/facilities.h"

namespace slalom {

// What a machine is made for.
struct MachineUse {
  bool checkpoints = false;                  // false: no snapshots, every execution runs from the beginning
  Facilities recognise = Facilities::all();  // for detectors; executions do not depend on it
  // Make each execution from the very start of the target, because it will be compared with others.
  bool from_start = false;
  bool orders_set_up = false;  // accesses in set-up make executions differ, as in older capsules
};

struct Target {
  TargetId id;
  // Returns a new machine; each worker gets its own.
  std::function<Result<std::unique_ptr<Machine>>(const MachineUse&)> make_machine;
  bool yields = false;  // waits by yielding, so only a fair search ends; its loops may give up and sleep
  // Defaults for this target. Empty or 0: the usual default.
  std::string strategy, choices, detectors;
  uint64_t max_steps = 0;
  // Executions with this many steps take seconds, so few are made to shrink and replay a finding. 0:
  // executions are always fast.
  uint64_t long_steps = 0;
  bool races_count = true;    // races count as findings; false: only if the user says so
  std::string scope;          // the part that the search is about; empty: the whole target
  bool keeps_states = false;  // a state hash means the same in every process
  bool learns = false;        // learns where to switch from executions before the search
  bool atomics = false;       // it may skip atomic operations that other synchronisation always orders
  // Returns a learner for one worker; `atomics`: it should collect atomic operations. Empty: its machines
  // collect what their executions teach, or they teach nothing.
  std::function<std::unique_ptr<Learner>(bool atomics)> make_learner;
  std::string all_detectors = "all";    // the detectors for replays
  std::optional<Expectation> expected;  // the findings that its file expects; empty if the file does not say
  // Names of kernel threads that cannot be pinned to a CPU. The kernel decides when they run.
  std::vector<std::string> unpinned_threads;
  uint64_t serial_orders = 0;  // serial orders of whole system calls to compare results with
  // Returns which of its memory accesses its executions have shown so far. Empty: it sees all.
  std::function<Sight()> sight;
  // What the user's options leave out, besides the scope.
  std::vector<Caveat> standing;
  // The most places to switch at, besides those of the policy's `where`; 0 means unlimited.
  uint64_t most_places = 0;
  // What is not compared with its expected value, each a phrase with the reason.
  std::vector<std::string> not_compared;
  // Returns the uncontrolled acts that its executions have met so far. Empty: it cannot meet any.
  std::function<std::vector<UncontrolledAct>()> uncontrolled;
  // Returns further remarks for the user after a search. Empty: it has none.
  std::function<std::vector<std::string>()> remarks;
  // Returns where its executions run, as far as replays may depend on it (Finding::surroundings). Empty:
  // replays do not depend on it.
  std::function<std::string()> surroundings;
  // Returns figures of its machines' executions since the last call, by name. Empty: it has none.
  std::function<std::vector<std::pair<std::string, double>>()> statistics;
  // Runs without control, as under plain stress, for comparison. Empty: this kind of target has none.
  struct Stress {
    uint64_t runs = 0, failures = 0;
    std::map<std::string, uint64_t> titles;  // number of runs with each title
  };
  std::function<Result<Stress>(uint64_t runs, uint64_t seed, const std::string& detectors)> stress;
  // Returns what is wrong with the user's input if the first executions of a search all end with this
  // outcome; "" if nothing is wrong. Empty: it cannot tell.
  std::function<std::string(const Outcome&)> input_trouble;
  // What the user sets for longer executions and for more switches. Empty: the command's options.
  std::string more_steps, everywhere;
  // Returns how the user replays a capsule. Empty: with slalom replay.
  std::function<std::string(const std::string& capsule)> replay_command;
};

}  // namespace slalom
