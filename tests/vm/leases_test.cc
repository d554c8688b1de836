// Leases until a conflict, on a real kernel: a strategy that is asked at few choice points decides as if it
// were asked at all of them.
#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "explore/explorer.h"
#include "explore/strategies/pos.h"
#include "support/source_dir.h"
#include "vm/boot/kernel_cache.h"
#include "vm/kernel/kernel_machine.h"
#include "vm/kernel/kernel_names.h"
#include "vm/test/kernel_test.h"
#include "vm/test/prepare.h"

namespace slalom::vm {
namespace {

constexpr const char* kKernel = "debian:6.1";
constexpr uint64_t kSchedules = 64;

// Asks at every choice point.
class Asking final : public Machine {
 public:
  explicit Asking(std::unique_ptr<KernelMachine> machine) : machine_(std::move(machine)) {}

  Result<void> reset(const Inputs& inputs) override { return machine_->reset(inputs); }
  Stop start(EventSink& sink) override { return without_lease(machine_->start(sink)); }
  Stop resume(Decision decision) override { return without_lease(machine_->resume(decision)); }
  Step step() const override { return machine_->step(); }
  std::vector<Option> blocked() const override { return machine_->blocked(); }
  uint64_t state_hash() const override { return machine_->state_hash(); }
  uint64_t digest() const override { return machine_->digest(); }
  bool hashes_cheaply() const override { return false; }
  Snapshots* snapshots() override { return nullptr; }
  const Names& names() const override { return machine_->names(); }
  const Feedback* feedback() const override { return machine_->feedback(); }

 private:
  static Stop without_lease(Stop stop) {
    if (auto* point = std::get_if<ChoicePoint>(&stop)) point->heeds_conflicts = false;
    return stop;
  }
  std::unique_ptr<KernelMachine> machine_;
};

struct Searched {
  std::vector<Schedule> schedules;  // with the digests of their executions
  uint64_t choice_points = 0;
};

Searched search(const KernelTest& test, bool asks) {
  const auto factory = [&]() -> Result<Worker> {
    TRY_ASSIGN(PreparedTest prepared, prepare(test));
    std::vector<std::string> flows;
    for (const KernelTest::Flow& flow : test.flows) flows.push_back(flow.name);
    auto machine = std::make_unique<KernelMachine>(
        std::move(prepared.machine),
        KernelMachineOptions{.flows = static_cast<unsigned>(flows.size()), .programs = prepared.images},
        std::make_shared<KernelNames>(SymbolTable(), flows, test.cpus));
    if (!asks) return Worker{std::move(machine), nullptr};
    return Worker{std::make_unique<Asking>(std::move(machine)), nullptr};
  };
  const Inputs inputs{.policy = {.where = ChoicePolicy::Where::Nowhere}, .max_steps = 20'000'000};
  Pos strategy({.seed = 1});
  Explorer explorer(strategy, factory, {.inputs = inputs, .schedules = kSchedules});
  Searched all;
  explorer.on_execution = [&](const Task&, const Execution& execution) {
    all.schedules.push_back(execution.schedule);
    all.choice_points += execution.choice_points;
  };
  const Result<ExploreResult> result = explorer.run();
  CHECK(result.ok(), "{}", result.error().message);
  CHECK(result->executions == kSchedules, "{} executions", result->executions);
  return all;
}

// Between them: locks that are waited for, timers, interrupts to other CPUs, flows that sleep and are woken.
class Leases : public testing::TestWithParam<const char*> {};

TEST_P(Leases, UntilAConflictChangeNothing) {
  const Result<KernelCache> cache = KernelCache::open();
  if (!cache.ok() || !cache->has(kKernel))
    GTEST_SKIP() << kKernel << " is not in the cache: scripts/fetch-kernel fetches it";
  const std::string path = source_dir() + "/" + GetParam() + ".toml";
  const std::vector<uint8_t> text = read_file(path).value();
  const KernelTest test =
      parse_kernel_test({reinterpret_cast<const char*>(text.data()), text.size()}, path).value();
  const Searched leased = search(test, false), asked = search(test, true);
  ASSERT_EQ(leased.schedules.size(), asked.schedules.size());
  for (size_t i = 0; i < leased.schedules.size(); ++i)
    ASSERT_EQ(leased.schedules[i], asked.schedules[i]) << "execution " << i;
  EXPECT_LT(leased.choice_points, asked.choice_points / 3);
}

INSTANTIATE_TEST_SUITE_P(
    Pairs, Leases,
    testing::Values("examples/kernel/pairs/futex-wait-wake", "examples/kernel/pairs/mount-umount",
                    "examples/kernel/pairs/timer-set-delete", "examples/kernel/pairs/tty-write-flush",
                    "bench/kernel/bind-unmount"),
    [](const auto& one) {
      std::string name = std::string(one.param).substr(std::string(one.param).rfind('/') + 1);
      std::erase(name, '-');
      return name;
    });

}  // namespace
}  // namespace slalom::vm
