// Execution: the record of one run of the target, as detailed as the search asked for.
//
// A *transition* is what an agent does between two scheduling choice points. Its footprint (the touches) is
// all that partial-order reduction knows about it. An Execution is a plain value that owns all its data,
// because it crosses threads and queues.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trace/choice.h"
#include "trace/knowledge.h"
#include "trace/outcome.h"
#include "trace/schedule.h"
#include "trace/verdict.h"

namespace slalom {

// One operation of a transition on one object.
struct Touch {
  ObjectId object;
  uint64_t state = 0;  // state of the object before, for operations that can block
  AgentId other;       // the spawned or woken agent
  OpKind op = OpKind::None;
  Effect effect = Effect::None;

  bool operator==(const Touch&) const = default;
};

// A decision as it was taken: the agent or the value of a data choice, and the digest of the choice point.
struct Pick {
  AgentId agent;
  uint32_t value = 0;
  bool data = false;
  uint64_t digest = 0;  // 0: unknown, matches every choice point

  bool operator==(const Pick&) const = default;
};

struct ChoiceRecord {
  ChoiceKind kind = ChoiceKind::Start;
  AgentId current;
  uint64_t current_ops = 0;
  uint32_t arity = 0;
  Pick taken;
  uint64_t history = 0;  // happens-before hash of everything before this choice point
  uint32_t first_option = 0;
  uint32_t first_touch = 0;  // the transition's touches end where the next record's begin
};

// A replayed prefix met other choice points than before: the target is not deterministic.
struct Divergence {
  uint64_t choice = 0;  // the first choice point that differed
  Position position;
  std::string what;
  std::string detail;  // the operation that differed; empty if unknown
};

struct Execution {
  Outcome outcome = Abandoned{"not run"};
  std::vector<Verdict> verdicts;
  Schedule schedule;
  uint64_t steps = 0;          // of the whole execution (base/strong.h)
  uint64_t set_up_steps = 0;   // of these, steps before a second agent could exist
  uint64_t positions = 0;      // of the whole execution (base/strong.h)
  uint64_t positions_run = 0;  // of these, positions executed now; the others came from a checkpoint
  uint64_t choice_points = 0;
  uint64_t class_hash = 0;  // of the happens-before equivalence class
  uint64_t state_hash = 0;  // of the target at the end
  uint32_t attempts = 1;    // more than one if a prefix diverged and was retried
  bool withheld = false;    // fairness removed options from this execution
  std::optional<Divergence> divergence;
  std::vector<std::pair<AgentId, uint64_t>> agent_ops;  // operations of each agent, by id
  Knowledge knowledge;                                  // for later executions

  // With Recording::Choices and more:
  std::vector<ChoiceRecord> choices;
  std::vector<Option> options;
  // With Recording::Footprints:
  std::vector<Touch> touches;
  std::vector<Option> blocked;  // operations that agents were waiting for at the end

  std::span<const Option> options_at(size_t choice) const {
    const size_t end = choice + 1 < choices.size() ? choices[choice + 1].first_option : options.size();
    return std::span(options).subspan(choices[choice].first_option, end - choices[choice].first_option);
  }
  std::span<const Touch> touches_at(size_t choice) const {
    const size_t end = choice + 1 < choices.size() ? choices[choice + 1].first_touch : touches.size();
    return std::span(touches).subspan(choices[choice].first_touch, end - choices[choice].first_touch);
  }
};

}  // namespace slalom
