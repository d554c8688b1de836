// Shared code of the toy machine's tests: building programs, running them under a chooser, and enumerating
// every interleaving with checkpoints. The enumeration is a search of its own, so that it can disagree with
// the real searches.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "toy/toy_builder.h"
#include "toy/toy_file.h"
#include "toy/toy_machine.h"

namespace slalom::test {

inline ToyProgram built(const ToyBuilder& builder) {
  Result<ToyProgram> program = builder.build();
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().message);
  return program.ok() ? *std::move(program) : ToyProgram{};
}

// Returns the message of the expected error.
inline std::string refusal(const Result<ToyProgram>& program) {
  return program.ok() ? "no error" : program.error().message;
}

// Records everything that a machine emits, one line each: "3 worker#0 store x 1".
class Recorder : public EventSink {
 public:
  explicit Recorder(const Names& names) : names_(names) {}

  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override {
    for (const Access& access : accesses)
      lines.push_back(fmt::format("{} {} {} {} {}{}", header.first_step.raw + access.retired,
                                  names_.agent(header.agent), name(access.op()),
                                  names_.object(access.address()), static_cast<int64_t>(access.value),
                                  access.wrote ? " w" : ""));
  }
  void on_event(const Event& event) override {
    std::string line = fmt::format("{} {} {}", event.step.raw, event.agent ? names_.agent(event.agent) : "-",
                                   name(event.op));
    if (event.object.raw != 0) line += fmt::format(" {} state={}", names_.object(event.object), event.state);
    if (event.other) line += fmt::format(" other={}", names_.agent(event.other));
    if (event.value != 0) line += fmt::format(" value={}", event.value);
    if (!event.text.empty()) line += fmt::format(" \"{}\"", event.text);
    lines.push_back(std::move(line));
  }
  void on_end(const Outcome&) override { ++ends; }

  std::vector<std::string> lines;
  int ends = 0;

 private:
  const Names& names_;
};

using Chooser = std::function<Decision(const ChoicePoint&)>;

// Runs the current agent as long as it can run, else the first enabled one. Every data choice is 0.
inline Decision go_on(const ChoicePoint& point) {
  if (point.kind == ChoiceKind::Data || point.current_enabled()) return {point.current};
  return {point.options()[0].agent};
}

inline Chooser randomly(uint64_t seed) {
  return [rng = Rng(seed)](const ChoicePoint& point) mutable -> Decision {
    if (point.kind == ChoiceKind::Data) return {point.current, static_cast<uint32_t>(rng.below(point.arity))};
    const auto options = point.options();
    return {options[rng.below(options.size())].agent};
  };
}

inline Outcome finish(ToyMachine& machine, Stop stop, const Chooser& choose) {
  while (const auto* point = std::get_if<ChoicePoint>(&stop)) stop = machine.resume(choose(*point));
  return std::get<Outcome>(std::move(stop));
}

struct Execution {
  Outcome outcome;
  std::vector<std::string> lines;
  uint64_t hash = 0;
};

inline Execution run(ToyMachine& machine, const Chooser& choose, const Inputs& inputs = {}) {
  EXPECT_TRUE(machine.reset(inputs).ok());
  Recorder recorder(machine.names());
  Outcome outcome = finish(machine, machine.start(recorder), choose);
  EXPECT_EQ(recorder.ends, 1);
  return {std::move(outcome), std::move(recorder.lines), machine.state_hash()};
}

inline Execution run(const ToyBuilder& builder, const Chooser& choose = go_on, const Inputs& inputs = {}) {
  ToyMachine machine(built(builder));
  return run(machine, choose, inputs);
}

// Runs the named agents, one operation each; "worker=2" answers a data choice. Then uses `rest`.
inline Chooser scripted(std::vector<std::pair<AgentId, uint32_t>> script, Chooser rest = go_on) {
  return
      [script = std::move(script), rest = std::move(rest), at = size_t{0}](const ChoicePoint& point) mutable {
        if (at == script.size()) return rest(point);
        const auto& [agent, value] = script[at++];
        return Decision{agent, value};
      };
}

inline std::string text_of(const Outcome& outcome) {
  return std::visit(Overloaded{[](const Exited&) { return std::string("exited"); },
                               [](const Deadlocked&) { return std::string("deadlocked"); },
                               [](const Faulted& fault) {
                                 const bool crash = fault.kind == Faulted::Kind::Crash;
                                 return (crash ? "crash: " : "assertion: ") + fault.what;
                               },
                               [](const LimitReached&) { return std::string("limit"); },
                               [](const Abandoned& abandoned) { return "abandoned: " + abandoned.why; },
                               [](const ToolError& error) { return "tool error: " + error.message; }},
                    outcome);
}

// Executes every interleaving of a program. Returns how many end in each way.
inline std::map<std::string, uint64_t> every_interleaving(const ToyBuilder& builder,
                                                          const Inputs& inputs = {}) {
  ToyMachine machine(built(builder));
  EXPECT_TRUE(machine.reset(inputs).ok());
  Recorder recorder(machine.names());
  std::map<std::string, uint64_t> outcomes;
  const std::function<void(Stop)> visit = [&](Stop stop) {
    if (const auto* outcome = std::get_if<Outcome>(&stop)) {
      ++outcomes[text_of(*outcome)];
      return;
    }
    const ChoicePoint point = std::get<ChoicePoint>(stop);
    std::vector<Decision> decisions;
    if (point.kind == ChoiceKind::Data)
      for (uint32_t value = 0; value < point.arity; ++value) decisions.push_back({point.current, value});
    else
      for (const Option& option : point.options()) decisions.push_back({option.agent});
    const Snapshots::Id here = machine.snapshots()->take();
    for (const Decision& decision : decisions) {
      machine.snapshots()->restore(here);
      visit(machine.resume(decision));
    }
    machine.snapshots()->drop(here);
    recorder.lines.clear();
  };
  visit(machine.start(recorder));
  return outcomes;
}

using Outcomes = std::map<std::string, uint64_t>;

inline std::set<std::string> kinds_of(const Outcomes& outcomes) {
  std::set<std::string> kinds;
  for (const auto& [text, count] : outcomes) kinds.insert(text);
  return kinds;
}

inline AgentId initial(uint32_t ordinal) {
  return AgentId::initial(ordinal);
}

}  // namespace slalom::test
