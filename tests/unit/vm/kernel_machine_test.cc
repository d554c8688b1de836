// Contexts, choice points and replays on two CPUs with a few instructions each, so that every interleaving is
// known.
#include "vm/control/kernel_machine.h"

#include <set>

#include "unit/vm/two_flows.h"
#include "vm/replay/scheduled_run.h"

namespace slalom::vm {
namespace {

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

// CPU 0 has made its first store. It passes other places until it would write what CPU 1 is about to read.
TEST(KernelMachine, AKeptCpuStopsBeforeAConflict) {
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
  EXPECT_TRUE(point.uses.until_conflict);
  point = stop_at(machine->resume({.next = cpu, .forecast = {.keep = 10, .until_conflict = true}}));
  EXPECT_EQ(point.options()[0].op.object, ObjectId{0x100000});
  EXPECT_EQ(point.options()[0].op.kind, OpKind::Store);
  EXPECT_EQ(point.passed, 2u);  // the second store, and the load, which conflicts with nothing
  EXPECT_EQ(point.last_passed.object, ObjectId{0x100000});
  EXPECT_EQ(point.last_passed.kind, OpKind::Load);
  // A conflict that was already decided about does not stop the CPU again.
  point = stop_at(machine->resume({.next = cpu, .forecast = {.keep = 10, .until_conflict = true}}));
  EXPECT_EQ(point.kind, ChoiceKind::Ended);
  EXPECT_EQ(point.passed, 1u);
  EXPECT_EQ(point.last_passed.object, ObjectId{0x100108});
  EXPECT_EQ(point.last_passed.kind, OpKind::Store);
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
  const std::vector<Place> expected = {Place{kTinyCode}, Place{kTinyCode + 6}, Place{kSecondCode + 6},
                                       Place{kSecondCode + 12}};
  EXPECT_EQ(machine->ending().knowledge->places, expected);
  // With only these choice points, fewer executions reach the same results.
  const Explored narrow =
      explore(*machine,
              {.policy = {.where = ChoicePolicy::Where::Nowhere, .places = expected}, .max_steps = 100'000});
  const Explored wide = explore(*machine, kEverywhere);
  EXPECT_LT(narrow.executions, wide.executions);
  EXPECT_TRUE(narrow.results.contains(1) && narrow.results.contains(2));
}

// explore() compares the two in every execution.
TEST(KernelMachine, TeachesWhatTheGenericLearnerFinds) {
  const TinyCode first = TinyCode().store(0x100008, 1).increment().store(0x100010, 1).done(0);
  const TinyCode second = TinyCode().store(0x100020, 1).increment().store(0x10000c, 1).done(1);
  const auto machine = make(first, second);
  for (const bool at_end : {false, true})
    for (const std::vector<Place>& known : {std::vector<Place>{}, std::vector{Place{kTinyCode}}}) {
      Inputs inputs = kEverywhere;
      inputs.reporting.at_end = at_end;
      inputs.policy.places = known;
      EXPECT_GT(explore(*machine, inputs).executions, 20);
      EXPECT_EQ(machine->ending().knowledge->places.size(), 6 - known.size());
    }
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
  EXPECT_EQ(machine->ending().knowledge->places, (std::vector<Place>{Place{kTinyCode}, Place{kSecondCode}}));
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
