// CPUs that wait for each other: when the machine sees that they spin, and deadlocks.
#include <array>

#include "base/rng.h"
#include "unit/vm/two_flows.h"

namespace slalom::vm {
namespace {

// lock: mov eax,1; xchg [0x100100],eax; test eax,eax; jnz -> pause; jmp lock
TinyCode& lock(TinyCode& code, bool pauses) {
  code.add({0xb8}).word(1);
  code.add({0x87, 0x05}).word(0x100100);
  code.add({0x85, 0xc0, 0x74, pauses ? 13 : 11});
  if (pauses) code.add({0xf3, 0x90});
  code.add({0x83, 0x3d}).word(0x100100).add({0x00});  // cmp dword [lock], 0
  code.add({0x75, pauses ? 0xf5 : 0xf7});             // jnz: pause (or cmp) again
  code.add({0xeb, pauses ? 0xe4 : 0xe6});             // jmp lock
  return code;
}

TinyCode& unlock(TinyCode& code) {
  code.add({0xc7, 0x05}).word(0x100100).word(0);
  return code;
}

TEST(KernelMachine, ASpinLockThatPausesEndsUnderEverySchedule) {
  TinyCode first, second;
  unlock(lock(first, true).increment()).done(0);
  unlock(lock(second, true).increment()).done(1);
  const auto machine = make(first, second);
  const Explored all = explore(*machine, kEverywhere);
  EXPECT_LT(all.executions, 5'000);
  EXPECT_EQ(all.results.size(), 1u);
  EXPECT_EQ(all.results.count(2), 1u);
  EXPECT_EQ(all.deadlocks, 0);
}

// A lock that is only tried in a loop, without reading it in between.
//   mov eax, 1; 1: xchg [0x100100], eax; test eax, eax; jnz 1b
TinyCode& lock_by_exchange(TinyCode& code) {
  code.add({0xb8}).word(1);
  return code.add({0x87, 0x05}).word(0x100100).add({0x85, 0xc0, 0x75, 0xf6});
}

//   mov ecx, 1; 1: xor eax, eax; lock cmpxchg [0x100100], ecx; jnz 1b
TinyCode& lock_by_compare_exchange(TinyCode& code) {
  code.add({0xb9}).word(1);
  return code.add({0x31, 0xc0, 0xf0, 0x0f, 0xb1, 0x0d}).word(0x100100).add({0x75, 0xf4});
}

// CPU 0 has taken the lock and stands before its update. CPU 1 runs as long as it can.
void expect_seen_to_wait(TinyCode& (*take)(TinyCode&)) {
  TinyCode first, second;
  unlock(take(first).increment()).done(0);
  unlock(take(second).increment()).done(1);
  const auto machine = make(first, second);
  Quiet sink;
  ASSERT_TRUE(machine->reset(kEverywhere).ok());
  Stop stop = machine->start(sink);
  stop = machine->resume({.next = KernelMachine::cpu_agent(0)});
  stop = machine->resume({.next = KernelMachine::cpu_agent(0)});
  uint64_t asked = 0;
  for (; std::holds_alternative<ChoicePoint>(stop); ++asked) {
    const std::vector<Option> options = others_first(std::get<ChoicePoint>(stop));
    stop = machine->resume({.next = options.back().agent});
  }
  EXPECT_TRUE(std::holds_alternative<Exited>(std::get<Outcome>(stop)));
  EXPECT_EQ(counter(*machine), 2u);
  EXPECT_EQ(machine->liveness_counts()[static_cast<size_t>(Liveness::Why::Loop)], 1u);
  EXPECT_EQ(machine->liveness_counts()[static_cast<size_t>(Liveness::Why::Starvation)], 0u);
  EXPECT_LT(asked, 1'000u);
}

TEST(KernelMachine, ACpuThatOnlyExchangesIsSeenToSpin) {
  expect_seen_to_wait(lock_by_exchange);
}

TEST(KernelMachine, ACpuThatOnlyComparesAndExchangesIsSeenToSpin) {
  expect_seen_to_wait(lock_by_compare_exchange);
}

// CPU 0 has the lock. CPUs 1 and 2 try to take it, each as long as it seems to make progress.
TEST(KernelMachine, CpusThatSpinForOneLockDoNotWakeEachOther) {
  std::array<TinyCode, 3> flows;
  for (unsigned i = 0; i < flows.size(); ++i) unlock(lock_by_exchange(flows[i]).increment()).done(i);
  const auto machine = make_flows({flows[0], flows[1], flows[2]});
  Quiet sink;
  ASSERT_TRUE(machine->reset(kEverywhere).ok());
  Stop stop = machine->start(sink);
  for (int i = 0; i < 2; ++i) stop = machine->resume({.next = KernelMachine::cpu_agent(0)});
  while (std::holds_alternative<ChoicePoint>(stop))
    stop = machine->resume({.next = others_first(std::get<ChoicePoint>(stop)).back().agent});
  EXPECT_TRUE(std::holds_alternative<Exited>(std::get<Outcome>(stop)));
  EXPECT_EQ(counter(*machine), 3u);
  EXPECT_EQ(machine->liveness_counts()[static_cast<size_t>(Liveness::Why::Loop)], 2u);
}

// Every round of the loop is a choice, so there are too many schedules to try all. This is the worst case:
// one CPU takes the lock, and the other one runs whenever it can.
TEST(KernelMachine, ASpinLockThatDoesNotPauseIsSeenToSpin) {
  for (int steps = 2; steps < 6; ++steps) {
    TinyCode first, second;
    unlock(lock(first, false).increment()).done(0);
    unlock(lock(second, false).increment()).done(1);
    const auto machine = make(first, second);
    Quiet sink;
    ASSERT_TRUE(machine->reset(kEverywhere).ok());
    Stop stop = machine->start(sink);
    for (int i = 0; std::holds_alternative<ChoicePoint>(stop); ++i) {
      const std::vector<Option> options = others_first(std::get<ChoicePoint>(stop));
      stop = machine->resume({.next = (i < steps ? options.front() : options.back()).agent});
    }
    EXPECT_TRUE(std::holds_alternative<Exited>(std::get<Outcome>(stop)));
    EXPECT_EQ(counter(*machine), 2u);
    const uint64_t spins = machine->liveness_counts()[static_cast<size_t>(Liveness::Why::Loop)];
    EXPECT_EQ(spins > 0, steps < 5) << steps;  // two steps take the lock, three more release it
  }
}

// A loop that reads only its own stack makes no visible reads. So its waiting is only noticed after it has
// run for too long, wherever its pauses are.
TEST(KernelMachine, WhoPausesForWhatLiesOnItsOwnStackGivesWayInTheEnd) {
  for (int nops = 0; nops < 4; ++nops) {
    TinyCode first, second;
    for (int i = 0; i < nops; ++i) first.add({0x90});
    first.add({0x6a, 0x01});  // push 1
    // pause; nop; cmp dword [esp], 0; jnz: pause again
    first.add({0xf3, 0x90, 0x90, 0x83, 0x3c, 0x24, 0x00, 0x75, 0xf7}).increment().done(0);
    const auto find_stack = make(first, second);
    const auto stack = static_cast<uint32_t>(find_stack->pc().cpu(0).gpr(kRsp));
    second.add({0xc7, 0x05}).word(stack - 4).word(0);
    second.increment().done(1);
    const auto machine = make(first, second);
    Quiet sink;
    ASSERT_TRUE(
        machine->reset({.policy = {.where = ChoicePolicy::Where::Nowhere}, .max_steps = 2'000'000}).ok());
    Stop stop = machine->start(sink);
    while (std::holds_alternative<ChoicePoint>(stop))
      stop = machine->resume({.next = others_first(std::get<ChoicePoint>(stop)).front().agent});
    EXPECT_TRUE(std::holds_alternative<Exited>(std::get<Outcome>(stop))) << nops;
    EXPECT_EQ(machine->liveness_counts()[static_cast<size_t>(Liveness::Why::Starvation)], 1u) << nops;
  }
}

// The guess which CPU waits is made at the same instructions, wherever else the machine stops.
TEST(KernelMachine, ASchedulesWithWaitingReplaysWithoutThePolicy) {
  uint64_t spins = 0;
  for (const auto where : {ChoicePolicy::Where::Everywhere, ChoicePolicy::Where::Sync})
    for (uint64_t seed = 0; seed < 100; ++seed) {
      TinyCode first, second;
      unlock(lock(first, seed % 2 == 0).increment()).done(0);
      unlock(lock(second, seed % 2 == 0).increment()).done(1);
      const auto machine = make(first, second);
      Rng rng(seed, 0);
      Quiet sink;
      ASSERT_TRUE(machine->reset({.policy = {.where = where}, .max_steps = 100'000}).ok());
      Stop stop = machine->start(sink);
      Schedule schedule;
      while (std::holds_alternative<ChoicePoint>(stop)) {
        const ChoicePoint& point = std::get<ChoicePoint>(stop);
        // Few and early switches, so that a CPU waits for long.
        const std::vector<Option> options = others_first(point);
        AgentId next = options[rng.below(options.size())].agent;
        if (point.kind == ChoiceKind::Running && rng.below(point.position.raw < 10 ? 4 : 4'000) != 0)
          next = point.current;
        if (next != point.current) schedule.switches.push_back({point.current, point.current_ops, next});
        stop = machine->resume({.next = next});
      }
      spins += machine->liveness_counts()[static_cast<size_t>(Liveness::Why::Loop)];
      EXPECT_EQ(replay(*machine, schedule, where).counter, 2u);
      expect_same_under_every_policy(*machine, schedule);
    }
  EXPECT_GT(spins, 0u);
}

TEST(KernelMachine, LocksInOppositeOrderAreADeadlock) {
  const auto take = [](TinyCode& code, uint32_t address) {
    code.add({0xb8}).word(1);
    code.add({0x87, 0x05}).word(address);
    code.add({0x85, 0xc0, 0x74, 0x04, 0xf3, 0x90, 0xeb, 0xed});
  };
  TinyCode first, second;
  take(first, 0x100100);
  take(first, 0x100200);
  first.done(0);
  take(second, 0x100200);
  take(second, 0x100100);
  second.done(1);
  const auto machine = make(first, second);
  Quiet sink;
  ASSERT_TRUE(machine->reset({.policy = {.where = ChoicePolicy::Where::Sync}, .max_steps = 3'000'000}).ok());
  Stop stop = machine->start(sink);
  // Each CPU takes one lock, then the CPU that can run.
  stop = machine->resume({.next = KernelMachine::cpu_agent(0)});
  ASSERT_TRUE(std::holds_alternative<ChoicePoint>(stop));
  stop = machine->resume({.next = KernelMachine::cpu_agent(0)});
  ASSERT_TRUE(std::holds_alternative<ChoicePoint>(stop));
  stop = machine->resume({.next = KernelMachine::cpu_agent(1)});
  ASSERT_TRUE(std::holds_alternative<ChoicePoint>(stop));
  stop = machine->resume({.next = KernelMachine::cpu_agent(1)});
  while (std::holds_alternative<ChoicePoint>(stop))
    stop = machine->resume({.next = others_first(std::get<ChoicePoint>(stop)).back().agent});
  EXPECT_TRUE(std::holds_alternative<Deadlocked>(std::get<Outcome>(stop)));
}

}  // namespace
}  // namespace slalom::vm
