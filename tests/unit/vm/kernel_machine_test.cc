// Contexts, choice points and replays on two CPUs with a few instructions each, so that every interleaving is
// known.
#include "vm/control/kernel_machine.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

#include "base/rng.h"
#include "trace/schedule.h"
#include "unit/vm/tiny_code.h"
#include "unit/vm/tiny_machine.h"
#include "vm/replay/scheduled_run.h"

namespace slalom::vm {
namespace {

constexpr Physical kSecond = 0x20000;

// Flow i runs on CPU i.
std::unique_ptr<KernelMachine> make_flows(std::initializer_list<TinyCode> flows) {
  const auto count = static_cast<unsigned>(flows.size());
  std::unique_ptr<Pc> pc = make_tiny(flows.begin()->bytes, count);
  Pc::Rest rest = pc->rest();
  for (unsigned i = 1; i < count; ++i) {
    const Physical code = kTinyCode + i * (kSecond - kTinyCode);
    pc->ram().write(code, flows.begin()[i].bytes);
    rest.cpus[i] = rest.cpus[0];
    rest.cpus[i].gpr[kRip] = code;
    rest.cpus[i].gpr[kRsp] = 0x9000 - 0x1000 * i;
    rest.privileges[i] = rest.privileges[0];
  }
  CHECK(pc->set_rest(rest).ok(), "{} CPUs", count);
  return std::make_unique<KernelMachine>(Booted{.pc = std::move(pc), .kernel = "", .identity = ""},
                                         KernelMachineOptions{.flows = count},
                                         std::make_shared<NumberNames>());
}

std::unique_ptr<KernelMachine> make(const TinyCode& first, const TinyCode& second) {
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

uint32_t counter(KernelMachine& machine) {
  uint8_t bytes[4];
  machine.pc().ram().read(0x100000, bytes);
  return bytes[0] | bytes[1] << 8u;
}

// Moves a CPU that seems to wait behind the others, as a fair search would.
std::vector<Option> others_first(const ChoicePoint& point) {
  std::vector<Option> options(point.options().begin(), point.options().end());
  if (point.kind == ChoiceKind::Yielded && options.size() > 1)
    std::erase_if(options, [&](const Option& option) { return option.agent == point.current; });
  return options;
}

// All interleavings at the policy's choice points, in depth-first order.
struct Explored {
  std::map<uint32_t, int> results;
  int executions = 0, deadlocks = 0;
  std::vector<Schedule> schedules;
};

Explored explore(KernelMachine& machine, const Inputs& inputs) {
  Explored all;
  std::vector<size_t> path;  // the option taken at each choice
  while (true) {
    Quiet sink;
    EXPECT_TRUE(machine.reset(inputs).ok());
    Stop stop = machine.start(sink);
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

const Inputs kEverywhere{.policy = {.where = ChoicePolicy::Where::Everywhere}, .max_steps = 100'000};

TEST(KernelMachine, FindsEveryInterleavingOfTwoCounters) {
  const auto machine = make(TinyCode().increment().done(0), TinyCode().increment().done(1));
  const Explored all = explore(*machine, kEverywhere);
  // Two accesses each: six orders, and all but two of them lose an update. The end of a CPU after its last
  // access is another place to switch, but adds no other order.
  EXPECT_GT(all.results.at(2), 0);
  EXPECT_GT(all.results.at(1), 0);
  EXPECT_EQ(all.results.size(), 2u);
  EXPECT_EQ(all.deadlocks, 0);
}

// Replays a schedule under another policy and returns the results.
struct Replayed {
  uint32_t counter = 0;
  uint64_t state_hash = 0, digest = 0;
  bool operator==(const Replayed&) const = default;
};

Replayed replay(KernelMachine& machine, const Schedule& schedule, ChoicePolicy::Where where,
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

// A recorded course leads through the same states, in steps of any size.
TEST(KernelMachine, AWrittenDownCourseLeadsThroughTheSameStates) {
  const auto fresh = [] { return make(TinyCode().increment().done(0), TinyCode().increment().done(1)); };
  for (const Schedule& schedule : explore(*fresh(), kEverywhere).schedules) {
    const auto machine = fresh();
    Course course;
    machine->record_into(&course);
    const auto [result, hash, digest] = replay(*machine, schedule, ChoicePolicy::Where::Nowhere);
    machine->record_into(nullptr);
    EXPECT_EQ(course.end_hash, hash);
    ScheduledRun run(*machine, course);
    EXPECT_TRUE(run.leads_to_the_same_end());
    std::vector<uint64_t> hashes = {run.pc().state_hash()};
    while (run.forward(1) == PcStop::Budget) hashes.push_back(run.pc().state_hash());
    EXPECT_EQ(hashes.size(), course.end - course.begin + 1);
    EXPECT_EQ(counter(*machine), result);
    // Reach the end in another way: from a checkpoint in the middle, and in one go.
    ScheduledRun again(*machine, course);
    const uint64_t half = (course.end - course.begin) / 2;
    EXPECT_EQ(again.forward(half), PcStop::Budget);
    const Pc::Checkpoint middle = again.take();
    EXPECT_EQ(again.pc().state_hash(), hashes[half]);
    again.forward(1'000'000);
    EXPECT_EQ(again.pc().state_hash(), hashes.back());
    again.restore(middle);
    EXPECT_EQ(again.pc().state_hash(), hashes[half]);
    again.forward(1);
    EXPECT_EQ(again.pc().state_hash(), hashes[half + 1]);
    again.drop(middle);
    // A course with another end is detected.
    Course other = course;
    ASSERT_EQ(other.legs.back().kind, Course::Leg::Kind::Run);
    --other.legs.back().value;
    EXPECT_FALSE(ScheduledRun(*machine, other).leads_to_the_same_end());
  }
}

void expect_same_under_every_policy(KernelMachine& machine, const Schedule& schedule) {
  const Replayed expected = replay(machine, schedule, ChoicePolicy::Where::Everywhere);
  EXPECT_EQ(replay(machine, schedule, ChoicePolicy::Where::Everywhere, true), expected);
  EXPECT_EQ(replay(machine, schedule, ChoicePolicy::Where::Nowhere), expected);
  EXPECT_EQ(replay(machine, schedule, ChoicePolicy::Where::Sync), expected);
}

// CPU 0 has made its first store. It passes other places until it would write what CPU 1 is about to read.
TEST(KernelMachine, ALeaseEndsBeforeAConflict) {
  const TinyCode first = TinyCode()
                             .store(0x1000fc, 1)
                             .store(0x100100, 1)
                             .store(0x100104, 1)
                             .increment()
                             .store(0x100108, 1)
                             .done(0);
  const auto machine = make(first, TinyCode().increment().done(1));
  const auto stop_at = [](const Stop& stop) { return std::get<ChoicePoint>(stop); };
  const AgentId cpu = KernelMachine::cpu_agent(0);
  Quiet sink;
  ASSERT_TRUE(machine->reset(kEverywhere).ok());
  machine->start(sink);
  ChoicePoint point = stop_at(machine->resume({.next = cpu}));
  EXPECT_EQ(point.options()[0].op.object, ObjectId{0x100100});
  EXPECT_TRUE(point.supports_until_conflict);
  point = stop_at(machine->resume({.next = cpu, .lease = 10, .until_conflict = true}));
  EXPECT_EQ(point.options()[0].op.object, ObjectId{0x100000});
  EXPECT_EQ(point.options()[0].op.kind, OpKind::Store);
  EXPECT_EQ(point.skipped, 2u);  // the second store, and the load, which conflicts with nothing
  EXPECT_EQ(point.last_skipped.object, ObjectId{0x100000});
  EXPECT_EQ(point.last_skipped.kind, OpKind::Load);
  // A conflict that was already decided about does not end the next lease.
  point = stop_at(machine->resume({.next = cpu, .lease = 10, .until_conflict = true}));
  EXPECT_EQ(point.kind, ChoiceKind::Ended);
  EXPECT_EQ(point.skipped, 1u);
  EXPECT_EQ(point.last_skipped.object, ObjectId{0x100108});
  EXPECT_EQ(point.last_skipped.kind, OpKind::Store);
}

TEST(KernelMachine, ASchedulesSwitchesReplayWithoutThePolicy) {
  const auto machine = make(TinyCode().increment().done(0), TinyCode().increment().done(1));
  std::set<uint64_t> digests;
  const std::vector<Schedule> schedules = explore(*machine, kEverywhere).schedules;
  for (const Schedule& schedule : schedules) {
    expect_same_under_every_policy(*machine, schedule);
    digests.insert(replay(*machine, schedule, ChoicePolicy::Where::Everywhere).digest);
  }
  EXPECT_EQ(digests.size(), schedules.size());  // all executions differ
}

TEST(KernelMachine, LearnsWhereFlowsCommunicate) {
  TinyCode second;
  second.add({0x90, 0xa1}).word(0x100800);  // its own memory
  second.increment().done(1);
  const auto machine = make(TinyCode().increment().done(0), second);
  Quiet sink;
  ASSERT_TRUE(machine->reset({.policy = {.where = ChoicePolicy::Where::Nowhere}, .max_steps = 100'000}).ok());
  Stop stop = machine->start(sink);
  while (std::holds_alternative<ChoicePoint>(stop))
    stop = machine->resume({.next = std::get<ChoicePoint>(stop).options()[0].agent});
  const std::vector<Place> expected = {Place{kTinyCode}, Place{kTinyCode + 6}, Place{kSecond + 6},
                                       Place{kSecond + 12}};
  EXPECT_EQ(machine->ending().feedback->places, expected);
  // With only these choice points, fewer executions reach the same results.
  const Explored narrow =
      explore(*machine,
              {.policy = {.where = ChoicePolicy::Where::Nowhere, .places = expected}, .max_steps = 100'000});
  const Explored wide = explore(*machine, kEverywhere);
  EXPECT_LT(narrow.executions, wide.executions);
  EXPECT_TRUE(narrow.results.contains(1) && narrow.results.contains(2));
}

// Two CPUs that write memory which neither reads communicate: the last write makes a difference.
TEST(KernelMachine, LearnsWhereBothOnlyWrite) {
  const auto machine =
      make(TinyCode().store(0x100800, 1).store(0x100900, 1).done(0), TinyCode().store(0x100800, 2).done(1));
  Quiet sink;
  ASSERT_TRUE(machine->reset({.policy = {.where = ChoicePolicy::Where::Nowhere}, .max_steps = 100'000}).ok());
  Stop stop = machine->start(sink);
  while (std::holds_alternative<ChoicePoint>(stop))
    stop = machine->resume({.next = std::get<ChoicePoint>(stop).options()[0].agent});
  EXPECT_EQ(machine->ending().feedback->places, (std::vector<Place>{Place{kTinyCode}, Place{kSecond}}));
}

// The accesses and events of an execution in which the first CPU that can run runs.
struct Emitted : EventSink {
  void on_accesses(std::span<const Access> accesses, const BatchHeader&) override {
    for (const Access& access : accesses)
      if (is_memory(access.op())) addresses.push_back(access.address().raw);
  }
  void on_event(const Event& event) override { events.push_back(event.op); }
  void on_end(const Outcome&) override {}
  std::vector<uint64_t> addresses;
  std::vector<OpKind> events;
};

Emitted record_all(KernelMachine& machine, ChoicePolicy::Where where) {
  Emitted emitted;
  EXPECT_TRUE(machine.reset({.policy = {.where = where}, .max_steps = 100'000}).ok());
  Stop stop = machine.start(emitted);
  while (std::holds_alternative<ChoicePoint>(stop))
    stop = machine.resume({.next = std::get<ChoicePoint>(stop).options()[0].agent});
  return emitted;
}

// Each CPU has an APIC at the same address. Accesses to it are not emitted. If a batch consists only of such
// accesses, nothing is emitted for it, not even an event.
TEST(KernelMachine, ABatchOfWhichNothingIsLeftIsNoEvent) {
  TinyCode first;
  first.increment();
  for (int i = 0; i < 3; ++i) first.add({0xa1}).word(0xfee00020);  // mov eax, [the APIC's id]
  first.increment().done(0);
  const auto machine = make(first, TinyCode().increment().done(1));
  const Emitted stopped = record_all(*machine, ChoicePolicy::Where::Everywhere);
  const Emitted unstopped = record_all(*machine, ChoicePolicy::Where::Nowhere);
  EXPECT_EQ(stopped.addresses, std::vector<uint64_t>(6, 0x100000));
  EXPECT_EQ(stopped.addresses, unstopped.addresses);
  EXPECT_EQ(stopped.events, unstopped.events);
  EXPECT_EQ(std::ranges::count(stopped.events, OpKind::None), 0);
}

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

// A CPU that cannot deliver its faults has crashed, whatever the kernel has reported before.
TEST(KernelMachine, ATripleFaultIsACrash) {
  const auto machine = make(TinyCode().add({0x0f, 0x0b}), TinyCode().increment().done(1));  // ud2
  Quiet sink;
  ASSERT_TRUE(machine->reset(kEverywhere).ok());
  Stop stop = machine->start(sink);
  while (std::holds_alternative<ChoicePoint>(stop))
    stop = machine->resume({.next = std::get<ChoicePoint>(stop).options()[0].agent});
  const auto* fault = std::get_if<Faulted>(&std::get<Outcome>(stop));
  ASSERT_NE(fault, nullptr);
  EXPECT_EQ(fault->kind, Faulted::Kind::Crash);
  EXPECT_EQ(fault->agent, KernelMachine::cpu_agent(0));
  EXPECT_EQ(fault->pc, Place{kTinyCode});
  EXPECT_EQ(fault->what, "triple fault: #UD, then #GP, then #GP, then #GP");
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

Outcome run_fairly(KernelMachine& machine, const Inputs& inputs) {
  Quiet sink;
  EXPECT_TRUE(machine.reset(inputs).ok());
  Stop stop = machine.start(sink);
  while (const auto* point = std::get_if<ChoicePoint>(&stop))
    stop = machine.resume({.next = others_first(*point).front().agent});
  return std::get<Outcome>(stop);
}

TEST(KernelMachine, WhoHasNotEndedAtTheLimitIsTold) {
  const auto machine = make(TinyCode().done(0), TinyCode().add({0xeb, 0xfe}));  // jumps to itself
  const Outcome outcome = run_fairly(*machine, kEverywhere);
  const auto* limit = std::get_if<LimitReached>(&outcome);
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(limit->enabled, std::vector{KernelMachine::cpu_agent(1)});
}

TEST(KernelMachine, ExecutionsEndWhenNobodyWantsThem) {
  const auto machine = make(TinyCode().add({0xeb, 0xfe}), TinyCode().done(1));
  Inputs inputs = kEverywhere;
  int asked = 0;
  inputs.max_steps = ~uint64_t{0};
  inputs.stop = [&] { return ++asked > 2; };
  EXPECT_TRUE(std::holds_alternative<Abandoned>(run_fairly(*machine, inputs)));
}

}  // namespace
}  // namespace slalom::vm
