// Where a debugger stops at a deadlock in which all CPUs sleep: where the last flow began to wait, not where
// the CPUs halt.
#include <gtest/gtest.h>

#include "kernel_store/kernel_cache.h"
#include "vm/gdb/failure_place.h"
#include "vm/guests/linux/linux_kernel.h"
#include "vm/guests/linux/linux_traits.h"
#include "vm/replay/scheduled_run.h"
#include "vm/scenario/kernel_names.h"
#include "vm/scenario/kernel_test.h"
#include "vm/scenario/prepare.h"

namespace slalom::vm {
namespace {

constexpr const char* kKernel = "debian:6.1";
constexpr size_t kCallsBefore = 3;  // of a flow, before it requests the lock that the other flow holds

// A thread that waits for a file lock sleeps.
constexpr const char* kFlows = R"toml(
setup = ["touch /tmp/f /tmp/g"]
[[flow]]
name = "forth"
calls = '''
f = open("/tmp/f", O_RDWR)
g = open("/tmp/g", O_RDWR)
flock(f, LOCK_EX)
flock(g, LOCK_EX)
close(f)
close(g)
'''
[[flow]]
name = "back"
calls = '''
f = open("/tmp/f", O_RDWR)
g = open("/tmp/g", O_RDWR)
flock(g, LOCK_EX)
flock(f, LOCK_EX)
close(g)
close(f)
'''
)toml";

// For each CPU, the instruction counts before each of its system calls, if no other CPU ran before.
class Calls : public EventSink {
 public:
  void on_accesses(std::span<const Access>, const BatchHeader&) override {}
  void on_event(const Event& event) override {
    if (event.op == OpKind::SyscallEnter) steps.push_back(event.step.raw);
  }
  void on_end(const Outcome&) override {}
  std::vector<uint64_t> steps;
};

class SleepingDeadlock : public testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    const Result<KernelCache> cache = KernelCache::open();
    if (!cache.ok() || !cache->has(kKernel))
      GTEST_SKIP() << kKernel << " is not in the cache: scripts/fetch-kernel fetches it";
  }
};

// Runs one CPU as long as possible, then the other one. Interrupts arrive only if nothing else can run.
// `stop`: if set, the second CPU's turn begins there.
Outcome run(KernelMachine& machine, unsigned first, std::optional<uint64_t> stop, EventSink& sink) {
  Inputs inputs{.policy = {.where = ChoicePolicy::Where::Nowhere}, .max_steps = 50'000'000};
  const AgentId one = KernelMachine::cpu_agent(first), other = KernelMachine::cpu_agent(1 - first);
  if (stop) inputs.policy.stops = {{one, *stop}};
  CHECK(machine.reset(inputs).ok(), "the machine");
  Stop now = machine.start(sink);
  bool others_turn = false;
  while (const ChoicePoint* point = std::get_if<ChoicePoint>(&now)) {
    others_turn |= stop && point->kind == ChoiceKind::Running && point->current_ops == *stop;
    std::vector<Option> options(point->options().begin(), point->options().end());
    if (point->kind == ChoiceKind::Yielded && options.size() > 1)  // it waits for the others
      std::erase_if(options, [&](const Option& option) { return option.agent == point->current; });
    AgentId next = options.front().agent;
    for (const AgentId wanted : {others_turn ? one : other, others_turn ? other : one})
      for (const Option& option : options)
        if (option.agent == wanted) next = wanted;
    now = machine.resume({.next = next});
  }
  return std::get<Outcome>(now);
}

TEST_P(SleepingDeadlock, TheDebuggerStandsWhereTheLastFlowBeginsToWait) {
  const unsigned last = GetParam();
  const Result<KernelTest> test = parse_kernel_test(kFlows, "x.toml");
  ASSERT_TRUE(test.ok());
  Result<PreparedTest> prepared = prepare(*test);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  const Result<GuestKernel> kernel = load_guest_kernel(prepared->machine.kernel);
  ASSERT_TRUE(kernel.ok());
  const auto names =
      std::make_shared<KernelNames>(kernel->symbols, std::vector<std::string>{"forth", "back"}, 2);
  KernelMachine machine(std::move(prepared->machine),
                        {.flows = 2,
                         .test = std::make_shared<const TestInput>(TestInput{.programs = prepared->images}),
                         .guest = linux_traits(),
                         .early_timers = 0},
                        names);

  // A CPU that runs alone finishes. In the second run, it is interrupted just before it requests its second
  // lock.
  Calls alone;
  EXPECT_TRUE(std::holds_alternative<Exited>(run(machine, last, std::nullopt, alone)));
  ASSERT_GT(alone.steps.size(), kCallsBefore);
  Course course;
  machine.record_into(&course);
  Calls both;
  const Outcome outcome = run(machine, last, alone.steps[kCallsBefore], both);
  machine.record_into(nullptr);
  const auto* deadlock = std::get_if<Deadlocked>(&outcome);
  ASSERT_NE(deadlock, nullptr);
  ASSERT_EQ(deadlock->waiting.size(), 2u);
  Verdict verdict{BugKind::Deadlock, Severity::Failure, "deadlock", "", {}};
  for (const Deadlocked::Waiting& waiting : deadlock->waiting) {
    EXPECT_TRUE(names->place(waiting.pc).starts_with("locks_lock_inode_wait+")) << names->place(waiting.pc);
    verdict.evidence.push_back({Step{course.end - course.begin}, waiting.agent, waiting.pc, "waits"});
  }

  ScheduledRun again(machine, course);
  ASSERT_TRUE(again.leads_to_the_same_end());
  Debugger debugger(again, {.checkpoint_every = 200'000});
  const FailurePlace place = go_to_failure(debugger, course, verdict, kernel->symbols);
  EXPECT_EQ(place.text, "where the last flow begins to wait");
  EXPECT_EQ(place.stop.cpu, last);
  EXPECT_TRUE(names->place(Place{debugger.address_of(last)}).starts_with("locks_lock_inode_wait+"));
  EXPECT_EQ(debugger.pc().cpu(last).regs.activity, Activity::Running);
  EXPECT_EQ(debugger.pc().cpu(1 - last).regs.activity, Activity::Halted);
  EXPECT_TRUE(debugger.breakpoints.empty());
  debugger.step(last);
  EXPECT_EQ(names->place(Place{debugger.address_of(last)}), "schedule");
  // The flow never returns from there, so that must be the last time.
  debugger.breakpoints = {deadlock->waiting[last].pc.raw};
  EXPECT_EQ(debugger.go().kind, DebugStop::Kind::End);
  for (unsigned cpu = 0; cpu < 2; ++cpu) EXPECT_EQ(debugger.pc().cpu(cpu).regs.activity, Activity::Halted);
}

INSTANTIATE_TEST_SUITE_P(Cpus, SleepingDeadlock, testing::Values(0u, 1u));

}  // namespace
}  // namespace slalom::vm
