// Interrupts and contexts on a real kernel. Interrupts by which CPUs invalidate each other's TLBs arrive,
// however long they are held back. Contexts that a test does not list are not offered as options, but still
// run.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "explore/explorer.h"
#include "explore/strategies/pct.h"
#include "explore/strategies/random.h"
#include "kernel_store/kernel_cache.h"
#include "learn/communication.h"
#include "support/source_dir.h"
#include "vm/control/kernel_machine.h"
#include "vm/guests/linux/linux_traits.h"
#include "vm/scenario/kernel_names.h"
#include "vm/scenario/kernel_test.h"
#include "vm/scenario/prepare.h"

namespace slalom::vm {
namespace {

constexpr unsigned kCpus = 2;
constexpr uint64_t kInstructions = 20'000'000;  // more than any of these executions needs
// Linux's vector for work on one other CPU, such as a TLB flush.
constexpr uint8_t kCallFunctionSingle = 0xfb;

enum class Sampled : uint8_t { Pct, Random };

// When pending interrupts may arrive.
enum class Interrupts : uint8_t {
  AnyTime,
  AtLast,  // only if nothing else can run
  NoIpis,  // interrupts between CPUs never arrive
};

struct Seen {
  std::map<uint8_t, uint64_t> came;     // interrupts that arrived, by vector
  std::set<uint8_t> offered;            // as options
  bool chose_cpus = false;              // two CPUs that could run were options at the same time
  uint64_t fewest_ipis = ~uint64_t{0};  // the fewest that arrived in one execution
  uint64_t compared = 0, taught = 0;    // executions whose knowledge was compared, and places in it
  uint64_t stuck = 0;                   // executions that stopped because only forbidden options were left
};

// The agents of all possible interrupts, with their vectors.
const std::map<AgentId, uint8_t>& interrupt_agents() {
  static const std::map<AgentId, uint8_t> all = [] {
    std::map<AgentId, uint8_t> vectors;
    for (unsigned cpu = 0; cpu < kCpus; ++cpu)
      for (unsigned vector = 0; vector < 256; ++vector)
        for (unsigned nested = 0; nested < 8; ++nested)
          vectors[KernelMachine::interrupt_agent(cpu, static_cast<uint8_t>(vector), nested)] =
              static_cast<uint8_t>(vector);
    return vectors;
  }();
  return all;
}

// Records what a machine offers and what happens, and removes options. Checks that the machine collects what
// the generic learner finds.
class Watched final : public Machine, private OptionSource, private EventSink {
 public:
  Watched(std::unique_ptr<KernelMachine> machine, Interrupts interrupts, Seen& seen)
      : machine_(std::move(machine)), interrupts_(interrupts), seen_(seen) {}

  Result<void> reset(const Inputs& inputs) override {
    places_ = inputs.policy.places;
    return machine_->reset(inputs);
  }
  Stop start(EventSink& sink) override {
    sink_ = &sink;
    learner_.reset();
    ipis_ = 0;
    return watch(machine_->start(*this));
  }
  Stop resume(Decision decision) override { return watch(machine_->resume(decision)); }
  Position position() const override { return machine_->position(); }
  std::vector<Option> blocked() const override { return machine_->blocked(); }
  uint64_t state_hash() const override { return machine_->state_hash(); }
  bool hashes_cheaply() const override { return false; }
  Snapshots* snapshots() override { return nullptr; }
  const Names& names() const override { return machine_->names(); }
  EndFacts ending() const override { return machine_->ending(); }

 private:
  std::span<const Option> options() const override { return options_; }
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override {
    learner_.on_accesses(accesses, header);
    sink_->on_accesses(accesses, header);
  }
  void on_event(const Event& event) override {
    learner_.on_event(event);
    if (event.op == OpKind::IrqEnter) {
      ++seen_.came[static_cast<uint8_t>(event.value)];
      ipis_ += event.value >= linux_traits().first_ipi;
    }
    sink_->on_event(event);
  }
  void on_end(const Outcome& outcome) override {
    seen_.fewest_ipis = std::min(seen_.fewest_ipis, ipis_);
    sink_->on_end(outcome);
  }

  Stop watch(Stop stop) {
    ChoicePoint* point = std::get_if<ChoicePoint>(&stop);
    if (point == nullptr) {
      std::vector<Place> taught;
      std::ranges::set_difference(learner_.knowledge().places, places_, std::back_inserter(taught));
      EXPECT_EQ(machine_->ending().knowledge->places, taught);
      ++seen_.compared;
      seen_.taught += taught.size();
    }
    if (point == nullptr || point->kind == ChoiceKind::Data) return stop;
    options_.assign(point->options().begin(), point->options().end());
    unsigned cpus = 0;
    for (const Option& option : options_)
      if (is_interrupt(option))
        seen_.offered.insert(interrupt_agents().at(option.agent));
      else
        cpus += point->kind != ChoiceKind::Yielded || option.agent != point->current;
    seen_.chose_cpus |= cpus > 1;
    // A CPU that waits for others must not block them.
    if (interrupts_ != Interrupts::AnyTime && point->kind == ChoiceKind::Yielded && options_.size() > 1)
      std::erase_if(options_, [&](const Option& option) { return option.agent == point->current; });
    if (interrupts_ == Interrupts::NoIpis)
      std::erase_if(options_, [&](const Option& option) {
        return is_interrupt(option) && interrupt_agents().at(option.agent) >= linux_traits().first_ipi;
      });
    if (interrupts_ == Interrupts::AtLast && !std::ranges::all_of(options_, is_interrupt))
      std::erase_if(options_, is_interrupt);
    if (!options_.empty()) {
      point->source = this;
      return stop;
    }
    ++seen_.stuck;
    on_end(Deadlocked{});
    return Outcome(Deadlocked{});
  }

  static bool is_interrupt(const Option& option) { return option.op.kind == OpKind::IrqEnter; }

  std::unique_ptr<KernelMachine> machine_;
  Interrupts interrupts_;
  Seen& seen_;
  uint64_t ipis_ = 0;  // that arrived in this execution
  std::vector<Option> options_;
  EventSink* sink_ = nullptr;
  CommunicationLearner learner_;
  std::vector<Place> places_;  // of the policy
};

struct Explored {
  Seen seen;
  ExploreResult result;
  std::set<uint8_t> decided;  // interrupts that a schedule switches to
  uint64_t deadlocks = 0;

  bool all_ended(uint64_t executions) const {
    return result.executions == executions && result.truncated + result.failed + deadlocks == 0;
  }
};

class ContextsTest : public testing::Test {
 protected:
  static constexpr const char* kKernel = "debian:6.1";

  void SetUp() override {
    const Result<KernelCache> cache = KernelCache::open();
    if (!cache.ok() || !cache->has(kKernel))
      GTEST_SKIP() << kKernel << " is not in the cache: scripts/fetch-kernel fetches it";
  }

  static Explored explore(std::string_view text, Sampled by, uint64_t schedules, Interrupts interrupts,
                          const Contexts& contexts = {}) {
    Pct pct({.seed = 1, .depth = 3});
    Random random({.seed = 1});
    Strategy& strategy = by == Sampled::Pct ? static_cast<Strategy&>(pct) : random;
    const Result<KernelTest> test = parse_kernel_test(text, source_dir() + "/tests/vm/x.toml");
    CHECK(test.ok(), "{}", test.error().message);
    Explored all;
    const auto factory = [&]() -> Result<Worker> {
      TRY_ASSIGN(PreparedTest prepared, prepare(*test));
      auto machine = std::make_unique<KernelMachine>(
          std::move(prepared.machine),
          KernelMachineOptions{
              .flows = kCpus,
              .test = std::make_shared<const TestInput>(TestInput{.programs = prepared.images}),
              .guest = linux_traits(),
              .contexts = contexts},
          std::make_shared<KernelNames>(SymbolTable(), std::vector<std::string>{"one", "two"}, kCpus));
      return Worker{std::make_unique<Watched>(std::move(machine), interrupts, all.seen), nullptr};
    };
    const Inputs inputs{.policy = {.where = ChoicePolicy::Where::Nowhere}, .max_steps = kInstructions};
    Explorer explorer(strategy, factory, {.inputs = inputs, .schedules = schedules});
    explorer.on_execution = [&](const Task&, const Execution& execution) {
      all.deadlocks += std::holds_alternative<Deadlocked>(execution.outcome);
      for (const Switch& one : execution.schedule.switches)
        if (const auto found = interrupt_agents().find(one.to); found != interrupt_agents().end())
          all.decided.insert(found->second);
    };
    Result<ExploreResult> result = explorer.run();
    CHECK(result.ok(), "{}", result.error().message);
    all.result = *std::move(result);
    return all;
  }
};

constexpr std::string_view kSharedMemory = R"toml(
[[flow]]
source = "shared_memory.c"
[[flow]]
source = "shared_memory.c"
)toml";

TEST_F(ContextsTest, TlbFlushesComplete) {
  for (const Interrupts interrupts : {Interrupts::AnyTime, Interrupts::AtLast})
    for (const Sampled by : {Sampled::Pct, Sampled::Random}) {
      const Explored all = explore(kSharedMemory, by, 60, interrupts);
      EXPECT_TRUE(all.all_ended(60));
      EXPECT_GT(all.result.classes, 1u);  // the executions are not all the same
      EXPECT_EQ(all.seen.compared, 60u);
      EXPECT_GT(all.seen.taught, 100u);
      EXPECT_GT(all.seen.fewest_ipis, 0u);
      EXPECT_GT(all.seen.came.at(kCallFunctionSingle), 2 * 60u);
    }
}

// The executions of the test above can only end because interrupts arrive.
TEST_F(ContextsTest, WithoutInterruptsNoTlbFlushCompletes) {
  for (const Sampled by : {Sampled::Pct, Sampled::Random}) {
    const Explored all = explore(kSharedMemory, by, 20, Interrupts::NoIpis);
    EXPECT_EQ(all.deadlocks, 20u);
    EXPECT_EQ(all.seen.stuck, 20u);
    EXPECT_FALSE(all.seen.came.contains(kCallFunctionSingle));
    EXPECT_TRUE(all.seen.offered.contains(kCallFunctionSingle));
  }
}

TEST_F(ContextsTest, InterruptsThatAreNotListedComeByThemselves) {
  for (const Sampled by : {Sampled::Pct, Sampled::Random}) {
    const Explored all = explore(kSharedMemory, by, 40, Interrupts::AnyTime, {.ipis = false});
    EXPECT_TRUE(all.all_ended(40));
    EXPECT_GT(all.seen.fewest_ipis, 0u);
    EXPECT_EQ(all.seen.offered, std::set<uint8_t>{linux_traits().timer_vector});
    EXPECT_EQ(all.decided, std::set<uint8_t>{linux_traits().timer_vector});
    EXPECT_TRUE(all.seen.chose_cpus);
  }
}

TEST_F(ContextsTest, TimersThatAreNotListedWakeSleepers) {
  constexpr std::string_view kSleepers = R"toml(
[[flow]]
calls = "nanosleep({u64 0, u64 20000000}, 0)"
[[flow]]
calls = "nanosleep({u64 0, u64 30000000}, 0)"
)toml";
  const Explored listed = explore(kSleepers, Sampled::Random, 10, Interrupts::AnyTime);
  EXPECT_TRUE(listed.all_ended(10));
  EXPECT_TRUE(listed.seen.offered.contains(linux_traits().timer_vector));
  EXPECT_TRUE(listed.decided.contains(linux_traits().timer_vector));
  const Explored unlisted = explore(kSleepers, Sampled::Random, 10, Interrupts::AnyTime, {.timers = false});
  EXPECT_TRUE(unlisted.all_ended(10));
  EXPECT_FALSE(unlisted.seen.offered.contains(linux_traits().timer_vector));
  EXPECT_FALSE(unlisted.decided.contains(linux_traits().timer_vector));
  EXPECT_GE(unlisted.seen.came.at(linux_traits().timer_vector), 2 * 10u);  // at least one for each sleeper
}

TEST_F(ContextsTest, CpusThatAreNotListedRunWhereNobodyElseCan) {
  const Explored all = explore(kSharedMemory, Sampled::Random, 20, Interrupts::AnyTime, {.cpus = 1});
  EXPECT_TRUE(all.all_ended(20));  // so the flow of the other CPU ended, too
  EXPECT_FALSE(all.seen.chose_cpus);
}

}  // namespace
}  // namespace slalom::vm
