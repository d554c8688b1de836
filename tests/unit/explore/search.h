// Shortcuts to run a search over a toy program, for tests.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "campaign/claims.h"
#include "detect/detector_set.h"
#include "explore/explorer.h"
#include "support/source_dir.h"
#include "toy/toy_builder.h"
#include "toy/toy_file.h"
#include "toy/toy_machine.h"

namespace slalom {

inline std::shared_ptr<const ToyProgram> example(const std::string& name, const ToySettings& settings = {}) {
  Result<ToyProgram> program = load_toy_file(source_dir() + "/examples/toy/" + name + ".toml", settings);
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().message);
  return std::make_shared<const ToyProgram>(*std::move(program));
}

inline std::shared_ptr<const ToyProgram> built(const ToyBuilder& builder) {
  Result<ToyProgram> program = builder.build();
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().message);
  return std::make_shared<const ToyProgram>(*std::move(program));
}

inline bool exhausted(const ExploreResult& result) {
  return make_claim({.explored = result}).exhausted;
}

struct SearchOptions {
  ExploreOptions explore;
  bool snapshots = true;
  bool detect = true;
};

// What to compare explorations by: the ways in which the program can end, and the verdicts.
struct Reached {
  ExploreResult result;
  std::set<uint64_t> states;     // of executions without a failure
  std::set<std::string> titles;  // of failures
  bool operator==(const Reached& other) const { return states == other.states && titles == other.titles; }
};

inline Reached search(std::shared_ptr<const ToyProgram> program, Strategy& strategy,
                      SearchOptions options = {}) {
  const auto mode = options.snapshots ? ToyMachine::SnapshotMode::On : ToyMachine::SnapshotMode::Off;
  const auto factory = [=]() -> Result<Worker> {
    Worker worker;
    worker.machine = std::make_unique<ToyMachine>(program, mode);
    if (options.detect) worker.observer = all_detectors(worker.machine->names());
    return worker;
  };
  Explorer explorer(strategy, factory, options.explore);
  Reached reached;
  explorer.on_execution = [&](const Task&, const Execution& execution) {
    if (std::holds_alternative<Exited>(execution.outcome) ||
        std::holds_alternative<Deadlocked>(execution.outcome))
      reached.states.insert(execution.state_hash);
    for (const Verdict& verdict : execution.verdicts)
      if (verdict.severity == Severity::Failure) reached.titles.insert(verdict.title);
  };
  Result<ExploreResult> result = explorer.run();
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  if (result.ok()) reached.result = *result;
  for (const std::string& trouble : reached.result.trouble) ADD_FAILURE() << trouble;
  return reached;
}

}  // namespace slalom
