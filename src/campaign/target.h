// Target: what to explore, as far as a campaign needs to know. targets/ makes the targets of the command,
// check/ that of slalom::check; no other folder names concrete machines. A campaign does not ask what kind a
// target is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "campaign/claims.h"
#include "campaign/expectation.h"
#include "campaign/preliminary.h"
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

// What a search uses if the user says nothing else. Empty or 0: the usual default.
struct TargetDefaults {
  std::string strategy, choices, detectors;
  std::string replay_detectors = "all";
  uint64_t max_steps = 0;
  bool races_count = true;  // races count as findings
  bool proves_all = false;  // shrinks and replays all findings, not only failures
};

// How its executions behave.
struct TargetTraits {
  bool yields = false;  // waits by yielding, so only a fair search ends; its loops may give up and sleep
  // Executions with this many steps take seconds, so few are made to shrink and replay a finding. 0:
  // executions are always fast.
  uint64_t long_steps = 0;
  bool keeps_states = false;  // a state hash means the same in every process
  bool learns = false;        // learns where to switch from executions before the search
  bool atomics = false;       // it may skip atomic operations that other synchronisation always orders
  bool needs_consent = true;  // replaying its capsule runs commands or code from the capsule
  uint32_t free_turn = 0;     // usual length of a turn without control, in operations; 0: it needs control
  // The most places to switch at, besides those of the policy's `where`; 0 means unlimited.
  uint64_t most_places = 0;
};

// What its searches leave out.
struct TargetLimits {
  std::string scope;             // the part that the search is about; empty: the whole target
  std::vector<Caveat> standing;  // what the user's options leave out, besides the scope
  // Names of kernel threads that cannot be pinned to a CPU. The kernel decides when they run.
  std::vector<std::string> unpinned_threads;
};

// How users know it.
struct TargetWords {
  std::string communicate = "threads";  // the agents that communicate
  // What the user sets for longer executions and for more switches.
  std::string more_steps = "--max-steps", everywhere = "--choices everywhere";
  // Returns how the user replays a capsule. Empty: with slalom replay.
  std::function<std::string(const std::string& capsule)> replay_command;
};

// What the preliminary search has found to compare results with.
struct ComparedResults {
  uint64_t serial_orders = 0;  // of whole system calls
  // What is not compared with its expected value, each a phrase with the reason.
  std::vector<std::string> not_compared;
};

// What it can say of its executions so far. Empty: it has nothing of the kind.
struct TargetReports {
  std::function<Sight()> sight;  // the memory accesses that executions have shown; empty: it sees all
  std::function<std::vector<UncontrolledAct>()> uncontrolled;  // acts that executions have met
  std::function<std::vector<std::string>()> remarks;           // further ones, for the user, after a search
  std::function<ComparedResults()> compared;
  // Returns where its executions run, as far as replays may depend on it (Finding::surroundings).
  std::function<std::string()> surroundings;
  // Returns figures of its machines' executions since the last call, by name.
  std::function<std::vector<std::pair<std::string, double>>()> statistics;
  // Returns what is wrong with the user's input if the first executions of a search all end with this
  // outcome; "" if nothing is wrong.
  std::function<std::string(const Outcome&)> input_trouble;
};

struct Target {
  TargetId id;
  // Returns a new machine; each worker gets its own.
  std::function<Result<std::unique_ptr<Machine>>(const MachineUse&)> make_machine;
  // Returns a learner for one worker; `atomics`: it should collect atomic operations. Empty: its machines
  // collect what their executions teach, or they teach nothing.
  std::function<std::unique_ptr<Learner>(bool atomics)> make_learner = {};
  std::shared_ptr<Preliminary> preliminary = {};  // nullptr if searches can begin at once
  TargetDefaults defaults = {};
  TargetTraits traits = {};
  TargetLimits limits = {};
  TargetWords words = {};
  TargetReports reports = {};
  std::optional<Expectation> expected = {};  // the findings that its file expects; empty if it does not say
};

}  // namespace slalom
