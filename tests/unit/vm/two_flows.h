// A KernelMachine whose flows are a few instructions each, all its interleavings, and replays of its
// schedules.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "learn/communication.h"
#include "trace/schedule.h"
#include "unit/vm/tiny_code.h"
#include "unit/vm/tiny_machine.h"
#include "vm/control/kernel_machine.h"

namespace slalom::vm {

inline constexpr Physical kSecondCode = 0x20000;

// Flow i runs on CPU i.
inline std::unique_ptr<KernelMachine> make_flows(std::initializer_list<TinyCode> flows,
                                                 std::shared_ptr<const TestInput> test = nullptr) {
  const auto count = static_cast<unsigned>(flows.size());
  std::unique_ptr<Pc> pc = make_tiny(flows.begin()->bytes, count);
  Pc::Rest rest = pc->rest();
  for (unsigned i = 1; i < count; ++i) {
    const Physical code = kTinyCode + i * (kSecondCode - kTinyCode);
    pc->ram().write(code, flows.begin()[i].bytes);
    rest.cpus[i] = rest.cpus[0];
    rest.cpus[i].gpr[kRip] = code;
    rest.cpus[i].gpr[kRsp] = 0x9000 - 0x1000 * i;
    rest.privileges[i] = rest.privileges[0];
  }
  CHECK(pc->set_rest(rest).ok(), "{} CPUs", count);
  return std::make_unique<KernelMachine>(Booted{.pc = std::move(pc), .kernel = "", .identity = ""},
                                         KernelMachineOptions{.flows = count, .test = std::move(test)},
                                         std::make_shared<NumberNames>());
}

inline std::unique_ptr<KernelMachine> make(const TinyCode& first, const TinyCode& second) {
  return make_flows({first, second});
}

class Quiet : public EventSink {
 public:
  void on_accesses(std::span<const Access> accesses, const BatchHeader&) override {
    count += accesses.size();
  }
  void on_event(const Event&) override {}
  void on_end(const Outcome&) override {}
  size_t count = 0;
};

inline uint32_t counter(KernelMachine& machine) {
  uint8_t bytes[4];
  machine.pc().ram().read(0x100000, bytes);
  return bytes[0] | bytes[1] << 8u;
}

// Moves a CPU that seems to wait behind the others, as a fair search would.
inline std::vector<Option> others_first(const ChoicePoint& point) {
  std::vector<Option> options(point.options().begin(), point.options().end());
  if (point.kind == ChoiceKind::Yielded && options.size() > 1)
    std::erase_if(options, [&](const Option& option) { return option.agent == point.current; });
  return options;
}

// What the machine has collected is what the generic learner finds in its accesses and events.
inline void expect_knowledge(const KernelMachine& machine, const ChoicePolicy& policy,
                             CommunicationLearner& learner) {
  std::vector<Place> more;
  std::ranges::set_difference(learner.knowledge().places, policy.places, std::back_inserter(more));
  EXPECT_EQ(machine.ending().knowledge->places, more);
}

// All interleavings at the policy's choice points, in depth-first order.
struct Explored {
  std::map<uint32_t, int> results;
  int executions = 0, deadlocks = 0;
  std::vector<Schedule> schedules;
};

inline Explored explore(KernelMachine& machine, const Inputs& inputs) {
  Explored all;
  std::vector<size_t> path;  // the option taken at each choice
  while (true) {
    CommunicationLearner learner;
    EXPECT_TRUE(machine.reset(inputs).ok());
    Stop stop = machine.start(learner);
    Schedule schedule;
    std::vector<size_t> counts;
    for (size_t depth = 0; std::holds_alternative<ChoicePoint>(stop); ++depth) {
      const ChoicePoint& point = std::get<ChoicePoint>(stop);
      const std::vector<Option> options = others_first(point);
      if (depth == path.size()) path.push_back(0);
      counts.push_back(options.size());
      const AgentId next = options[path[depth]].agent;
      if (next != point.current) schedule.switches.push_back({point.current, point.current_ops, next});
      stop = machine.resume({.next = next});
    }
    expect_knowledge(machine, inputs.policy, learner);
    ++all.executions;
    if (std::holds_alternative<Deadlocked>(std::get<Outcome>(stop))) ++all.deadlocks;
    ++all.results[counter(machine)];
    all.schedules.push_back(schedule);
    while (!path.empty() && path.back() + 1 == counts[path.size() - 1]) path.pop_back();
    if (path.empty()) return all;
    ++path.back();
    if (all.executions > 5'000) return all;
  }
}

inline const Inputs kEverywhere{.policy = {.where = ChoicePolicy::Where::Everywhere}, .max_steps = 100'000};

// Replays a schedule under another policy and returns the results.
struct Replayed {
  uint32_t counter = 0;
  uint64_t state_hash = 0, digest = 0;
  bool operator==(const Replayed&) const = default;
};

inline Replayed replay(KernelMachine& machine, const Schedule& schedule, ChoicePolicy::Where where,
                       bool at_end = false) {
  Inputs inputs{.policy = {.where = where}, .max_steps = 100'000, .reporting = {.at_end = at_end}};
  for (const Switch& s : schedule.switches)
    if (s.from) inputs.policy.stops.push_back({s.from, s.from_ops});
  std::ranges::sort(inputs.policy.stops);
  Quiet sink;
  EXPECT_TRUE(machine.reset(inputs).ok());
  Stop stop = machine.start(sink);
  size_t at = 0;
  while (std::holds_alternative<ChoicePoint>(stop)) {
    const ChoicePoint& point = std::get<ChoicePoint>(stop);
    AgentId next = point.current;
    if (at < schedule.switches.size() && schedule.switches[at].from == point.current &&
        schedule.switches[at].from_ops == point.current_ops)
      next = schedule.switches[at++].to;
    stop = machine.resume({.next = next});
  }
  EXPECT_TRUE(std::holds_alternative<Exited>(std::get<Outcome>(stop)));
  EXPECT_EQ(at, schedule.switches.size());
  return {counter(machine), machine.pc().state_hash(), machine.ending().digest};
}

inline void expect_same_under_every_policy(KernelMachine& machine, const Schedule& schedule) {
  const Replayed expected = replay(machine, schedule, ChoicePolicy::Where::Everywhere);
  EXPECT_EQ(replay(machine, schedule, ChoicePolicy::Where::Everywhere, true), expected);
  EXPECT_EQ(replay(machine, schedule, ChoicePolicy::Where::Nowhere), expected);
  EXPECT_EQ(replay(machine, schedule, ChoicePolicy::Where::Sync), expected);
}

}  // namespace slalom::vm
