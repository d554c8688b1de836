// Shrinking executions of many instructions with few places to switch: limits must count instructions.
#include <gtest/gtest.h>

#include "explore/explorer.h"
#include "explore/runner.h"
#include "explore/shrink/shrink.h"
#include "explore/strategies/random.h"
#include "unit/vm/tiny_code.h"
#include "unit/vm/tiny_machine.h"
#include "vm/control/kernel_machine.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kLateCounter = 0x100000;
constexpr uint32_t kRounds = 30'000;  // of two instructions each, before and after the increment

TinyCode counts_late(unsigned flow) {
  TinyCode code;
  const auto loop = [&] { code.add({0xb9}).word(kRounds).add({0x49, 0x75, 0xfd}); };  // mov ecx; dec ecx; jnz
  loop();
  code.increment();
  loop();
  return code.done(flow);
}

std::unique_ptr<KernelMachine> two_counters() {
  const TinyCode first = counts_late(0), second = counts_late(1);
  std::unique_ptr<Pc> pc = make_tiny(first.bytes, 2);
  constexpr Physical kSecondCode = 0x20000;
  pc->ram().write(kSecondCode, second.bytes);
  Pc::Rest rest = pc->rest();
  rest.cpus[1] = rest.cpus[0];
  rest.cpus[1].gpr[kRip] = kSecondCode;
  rest.cpus[1].gpr[kRsp] = 0x8000;
  rest.privileges[1] = rest.privileges[0];
  CHECK(pc->set_rest(rest).ok(), "two CPUs");
  return std::make_unique<KernelMachine>(Booted{.pc = std::move(pc), .kernel = "", .identity = ""},
                                         KernelMachineOptions{.flows = 2}, std::make_shared<NumberNames>());
}

// Reports an execution whose counter ends at 1.
class LostUpdates : public Observer {
 public:
  void on_accesses(std::span<const Access> accesses, const BatchHeader&) override {
    for (const Access& access : accesses)
      if (access.physical == kLateCounter && access.wrote != 0) last_ = access.value;
  }
  void on_event(const Event&) override {}
  void on_end(const Outcome& outcome) override { ended_ = std::holds_alternative<Exited>(outcome); }
  void reset() override {
    last_ = 0;
    ended_ = false;
  }
  std::unique_ptr<State> save() const override {
    auto saved = std::make_unique<Saved>();
    saved->last = last_;
    return saved;
  }
  void restore(const State& state) override {
    last_ = static_cast<const Saved&>(state).last;
    ended_ = false;
  }
  void harvest(std::vector<Verdict>& verdicts) override {
    if (ended_ && last_ == 1) verdicts.push_back({BugKind::Assertion, Severity::Failure, "lost update"});
  }

 private:
  struct Saved : State {
    uint64_t last = 0;
  };
  uint64_t last_ = 0;
  bool ended_ = false;
};

TEST(LongKernelExecutions, AreShrunkToAMinimum) {
  Random random({.seed = 1});
  ExploreOptions options;
  options.inputs = {.policy = {.where = ChoicePolicy::Where::Everywhere}, .max_steps = 10'000'000};
  options.schedules = 50;
  Explorer explorer(
      random,
      []() -> Result<Worker> {
        Worker worker;
        worker.machine = two_counters();
        worker.observer = std::make_unique<LostUpdates>();
        return worker;
      },
      options);
  const ExploreResult result = explorer.run().value();
  ASSERT_EQ(result.found.size(), 1u);
  const auto machine = two_counters();
  LostUpdates observer;
  Shrinker shrinker(*machine, observer, options.inputs);
  const Shrunk shrunk = shrinker.shrink(result.found[0].schedule, "lost update").value();
  EXPECT_EQ(shrunk.preemptions, 1u);
  EXPECT_EQ(shrunk.proof, Shrunk::Proof::Minimum);
  const EndFacts ending = machine->ending();
  EXPECT_GT(ending.steps.raw, 4 * kRounds);
  EXPECT_LT(ending.positions.raw, 100u);
}

}  // namespace
}  // namespace slalom::vm
