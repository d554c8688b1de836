#include "report/core/interleaving.h"

#include <gtest/gtest.h>

#include "report/kernels/kernel_trace.h"
#include "unit/report/scene.h"

namespace slalom::test {
namespace {

constexpr auto kHeld = [](uint64_t state) { return Scene::Extra{state, "", 0}; };

Leaving first_leaving(const Scene& scene, size_t index = 0) {
  return read_interleaving(scene.log, scene.names).switches.at(index).leaving;
}

TEST(Interleaving, CountsOperationsLikeTheSchedule) {
  for (const auto& [name, make] : scenes()) {
    SCOPED_TRACE(name);
    const Scene scene = make();
    if (is_kernel_trace(scene.log)) continue;  // see kernel_test.cc
    const Interleaving all = read_interleaving(scene.log, scene.names);
    const auto& switches = scene.finding.schedule.switches;
    ASSERT_EQ(all.switches.size() + 1, switches.size());
    for (size_t i = 0; i < all.switches.size(); ++i) {
      const AgentSwitch& seen = all.switches[i];
      EXPECT_EQ((Switch{seen.from, seen.from_ops, seen.to}), switches[i + 1]);
    }
  }
}

TEST(Interleaving, AnOperationOfSeveralAccessesCountsOnce) {
  Scene s;
  Access accesses[3] = {};
  for (int i = 0; i < 3; ++i) {
    accesses[i].op_bits = static_cast<uint8_t>(OpKind::Load);
    accesses[i].pc_bits = s.place("a", 1).raw;
    accesses[i].address_bits = s.object("x").raw;
    accesses[i].size = 8;
    accesses[i].retired = i == 2 ? 1 : 0;
  }
  s.log.on_accesses(accesses, {s.agent("a"), 0, Step{5}});
  const Interleaving all = read_interleaving(s.log, s.names);
  ASSERT_EQ(all.operations.size(), 3u);
  EXPECT_EQ(all.operations[1].ops, 0u);
  EXPECT_EQ(all.operations[2].ops, 1u);
  EXPECT_EQ(all.operations[2].step, Step{6});
  EXPECT_EQ(all.find(s.agent("a"), 1), &all.operations[2]);
  EXPECT_EQ(all.find(s.agent("a"), 2), nullptr);
}

TEST(Interleaving, AnExchangeThatFailsOnlyReads) {
  Scene s;
  s.access(OpKind::CompareExchange, "a", 1, "x", 5, true)
      .access(OpKind::CompareExchange, "b", 1, "x", 6, false);
  s.end(Exited{});
  const Interleaving all = read_interleaving(s.log, s.names);
  ASSERT_EQ(all.operations.size(), 2u);
  EXPECT_TRUE(all.operations[0].uses.at(0).writes);
  EXPECT_FALSE(all.operations[1].uses.at(0).writes);
}

TEST(Leaving, AFreeLockIsAPreemptionAndAHeldOneIsNot) {
  Scene free;
  free.load("a", 1, "x", 0).load("b", 1, "x", 0).event(OpKind::Lock, "a", 2, "m");
  free.end(Exited{});
  EXPECT_EQ(first_leaving(free), Leaving::Preempted);

  Scene held;
  held.event(OpKind::Lock, "b", 1, "m").load("a", 1, "x", 0);
  held.event(OpKind::Unlock, "b", 2, "m", kHeld(1)).event(OpKind::Lock, "a", 2, "m");
  held.end(Exited{});
  EXPECT_EQ(first_leaving(held, 0), Leaving::Preempted);  // b, which could have unlocked
  EXPECT_EQ(first_leaving(held, 1), Leaving::Blocked);
  EXPECT_EQ(read_interleaving(held.log, held.names).switches[1].blocked_on, "lock m");

  // The lock was taken after the switch, so a could have had it.
  Scene taken_later;
  taken_later.load("a", 1, "x", 0).event(OpKind::Lock, "b", 1, "m");
  taken_later.event(OpKind::Unlock, "b", 2, "m", kHeld(1)).event(OpKind::Lock, "a", 2, "m");
  taken_later.end(Exited{});
  EXPECT_EQ(first_leaving(taken_later), Leaving::Preempted);
}

TEST(Leaving, OtherThingsToWaitFor) {
  Scene reader;  // readers do not block each other, writers do
  reader.event(OpKind::ReadLock, "b", 1, "rw", kHeld(0)).load("a", 1, "x", 0);
  reader.event(OpKind::ReadUnlock, "b", 2, "rw", kHeld(2)).event(OpKind::ReadLock, "a", 2, "rw", kHeld(0));
  reader.end(Exited{});
  EXPECT_EQ(first_leaving(reader, 1), Leaving::Preempted);
  Scene writer;
  writer.event(OpKind::ReadLock, "b", 1, "rw", kHeld(0)).load("a", 1, "x", 0);
  writer.event(OpKind::ReadUnlock, "b", 2, "rw", kHeld(2)).event(OpKind::WriteLock, "a", 2, "rw", kHeld(0));
  writer.end(Exited{});
  EXPECT_EQ(first_leaving(writer, 1), Leaving::Blocked);

  Scene empty;
  empty.load("a", 1, "x", 0).event(OpKind::SemPost, "b", 1, "s", kHeld(0));
  empty.event(OpKind::SemWait, "a", 2, "s", kHeld(1)).end(Exited{});
  EXPECT_EQ(first_leaving(empty), Leaving::Blocked);
  Scene counted;
  counted.load("a", 1, "x", 0).event(OpKind::SemPost, "b", 1, "s", kHeld(1));
  counted.event(OpKind::SemWait, "a", 2, "s", kHeld(2)).end(Exited{});
  EXPECT_EQ(first_leaving(counted), Leaving::Preempted);

  Scene join;
  join.load("a", 1, "x", 0).load("b", 1, "x", 0).exit("b", 1);
  join.event(OpKind::Join, "a", 2, "agent b", {1, "b", 0}).exit("a", 2);
  join.end(Exited{});
  EXPECT_EQ(first_leaving(join, 0), Leaving::Blocked);
  EXPECT_EQ(first_leaving(join, 1), Leaving::Ended);

  Scene wait;
  wait.event(OpKind::Lock, "a", 1, "m").event(OpKind::Wait, "a", 2, "c");
  wait.along(OpKind::Unlock, "a", 2, "m", kHeld(1));
  wait.event(OpKind::Signal, "b", 1, "c", {0, "", 1}).along(OpKind::Wake, "b", 1, "c", {0, "a", 0});
  wait.event(OpKind::Lock, "a", 2, "m").end(Exited{});
  EXPECT_EQ(first_leaving(wait, 0), Leaving::Blocked);
  const Interleaving all = read_interleaving(wait.log, wait.names);
  EXPECT_EQ(all.operations[1].note, "unlocks m");
  EXPECT_EQ(all.operations[2].note, "wakes a");
  EXPECT_EQ(all.operations.size(), 4u);
}

TEST(Leaving, BarriersBlockAllButTheLast) {
  Scene s;
  s.event(OpKind::BarrierArrive, "a", 1, "b").event(OpKind::BarrierArrive, "z", 1, "b");
  s.along(OpKind::Wake, "z", 1, "b", {0, "a", 0});
  s.load("a", 2, "x", 0).load("z", 2, "x", 0).end(Exited{});
  EXPECT_EQ(first_leaving(s, 0), Leaving::Blocked);
  EXPECT_EQ(first_leaving(s, 1), Leaving::Preempted);

  Scene stuck;
  stuck.event(OpKind::BarrierArrive, "a", 1, "b").load("z", 1, "x", 0).exit("z", 1);
  stuck.end(Deadlocked{{{stuck.agent("a"), OpKind::BarrierArrive, stuck.object("b"), {}, {}}}});
  EXPECT_EQ(first_leaving(stuck), Leaving::Blocked);
}

TEST(Leaving, YieldsEndsAndInterrupts) {
  Scene s;
  s.name_agent(AgentId::initial(0), "a");
  s.name_agent(AgentId::initial(1), "b");
  s.name_agent(AgentId::initial(0).interrupt(0), "tick");
  s.event(OpKind::Yield, "a", 1, "").load("b", 1, "x", 0).exit("b", 1);
  s.load("a", 2, "x", 0).event(OpKind::IrqEnter, "tick", 1, "cpu").along(OpKind::IrqExit, "tick", 1, "cpu");
  s.load("a", 3, "x", 0).end(Exited{});
  EXPECT_EQ(first_leaving(s, 0), Leaving::Yielded);
  EXPECT_EQ(first_leaving(s, 1), Leaving::Ended);
  EXPECT_EQ(first_leaving(s, 2), Leaving::Interrupted);
  EXPECT_EQ(first_leaving(s, 3), Leaving::Ended);
}

TEST(Leaving, OfAnAgentThatNeverRanAgain) {
  Scene waits;  // a waits for a lock that b has held since before
  waits.event(OpKind::Lock, "b", 1, "m").load("a", 1, "x", 0).load("b", 2, "x", 0).exit("b", 2);
  waits.end(Deadlocked{{{waits.agent("a"), OpKind::Lock, waits.object("m"), {}, {waits.agent("b")}}}});
  EXPECT_EQ(first_leaving(waits, 1), Leaving::Blocked);
  EXPECT_EQ(read_interleaving(waits.log, waits.names).switches[1].blocked_on, "lock m");

  Scene later;  // a could have had the lock, but b took it
  later.load("a", 1, "x", 0).event(OpKind::Lock, "b", 1, "m").exit("b", 1);
  later.end(Deadlocked{{{later.agent("a"), OpKind::Lock, later.object("m"), {}, {later.agent("b")}}}});
  EXPECT_EQ(first_leaving(later), Leaving::Preempted);

  Scene unknown;
  unknown.load("a", 1, "x", 0).load("b", 1, "x", 0);
  unknown.end(Faulted{Faulted::Kind::Crash, unknown.agent("b"), {}, "broken"});
  EXPECT_EQ(first_leaving(unknown), Leaving::Unknown);
}

TEST(Words, ObjectsAreNamedWhereTheSourceDoesNotTell) {
  Scene s;
  s.code("a", {"x = x + 1", "xx = 1", "y = x", "p[0] = 1", ""});
  s.load("a", 1, "x", 3).store("a", 2, "x", -4);  // the name within another name does not count
  s.load("a", 3, "x", 1).store("a", 3, "y", 1);
  s.store("a", 4, "heap[0]", 1).load("a", 5, "z", 2);
  const auto operations = read_interleaving(s.log, s.names).operations;
  EXPECT_EQ(operations[0].note, "read 3");
  EXPECT_EQ(operations[1].note, "x: wrote -4");
  EXPECT_EQ(operations[2].note, "x: read 1");
  EXPECT_EQ(operations[3].note, "y: wrote 1");
  EXPECT_EQ(operations[4].note, "heap[0]: wrote 1");
  EXPECT_EQ(operations[5].text, "a:5: load z");
  EXPECT_EQ(operations[5].note, "read 2");
}

TEST(Words, Values) {
  EXPECT_EQ(value_text(0, 8), "0");
  EXPECT_EQ(value_text(static_cast<uint64_t>(-1), 8), "-1");
  EXPECT_EQ(value_text(0xff, 1), "-1");
  EXPECT_EQ(value_text(0xffff, 4), "65535");
  EXPECT_EQ(value_text(0xdeadbeef, 4), "-559038737");
  EXPECT_EQ(value_text(0x7fffffff, 4), "0x7fffffff");
  EXPECT_EQ(value_text(0xffff888000000000, 8), "0xffff888000000000");
}

}  // namespace
}  // namespace slalom::test
