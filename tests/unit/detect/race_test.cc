// Hand-written data races: for each kind of synchronisation, the race without it and the order with it.
#include <gtest/gtest.h>

#include <functional>

#include "unit/detect/script.h"

namespace slalom::test {
namespace {

using Titles = std::vector<std::string>;
using Steps = std::function<void(Script&)>;

const Titles kRaceOnX = {"data race on x: a:2 (store) / b:2 (store)"};

// a stores to x, then b does, with other operations around.
Titles around(const Steps& before_a, const Steps& after_a, const Steps& before_b) {
  Script s;
  if (before_a) before_a(s);
  s.store("a", "x", "a:2");
  if (after_a) after_a(s);
  if (before_b) before_b(s);
  s.store("b", "x", "b:2").end(Exited{});
  return s.titles("race");
}

Steps event(OpKind op, const char* who, const char* object, const Script::Extra& extra = {}) {
  return [=](Script& s) { s.event(op, who, object, std::string(who) + ":1", extra); };
}
Steps both(const Steps& first, const Steps& second) {
  return [=](Script& s) {
    first(s);
    second(s);
  };
}

TEST(Race, TitleEvidenceAndLocks) {
  Script s;
  s.lock("writer", "m", "writer:1").store("writer", "x", "writer:2").unlock("writer", "m", "writer:3");
  s.load("reader", "x", "reader:2").end(Exited{});
  const auto verdicts = s.verdicts();
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].kind, BugKind::DataRace);
  EXPECT_EQ(verdicts[0].severity, Severity::Race);
  EXPECT_EQ(verdicts[0].title, "data race on x: reader:2 (load) / writer:2 (store)");
  EXPECT_EQ(verdicts[0].detail,
            "Nothing orders these two accesses: writer:2 held m; reader:2 held nothing. The last "
            "synchronisation of "
            "writer before it was lock of m at writer:1. reader had not synchronised with anything.");
  const std::vector<Evidence> expected = {{Step{1}, s.agent("writer"), s.place("writer:2"), "store of x"},
                                          {Step{3}, s.agent("reader"), s.place("reader:2"), "load of x"}};
  EXPECT_EQ(verdicts[0].evidence, expected);
  EXPECT_EQ(s.titles("failure,deadlock,lost-wakeup,livelock,heap,leak"), Titles{});
}

TEST(Race, WhateverTheOrderAndTheNumbers) {
  for (uint32_t first_agent : {0u, 9u}) {
    for (bool swapped : {false, true}) {
      Script s(first_agent);
      const char* order[] = {"w#0", "r#3"};
      if (swapped) std::swap(order[0], order[1]);
      for (const char* who : order) {
        if (who[0] == 'w') s.store(who, "a[3]", "w:1");
        if (who[0] == 'r') s.load(who, "a[3]", "r:1");
      }
      // The same bug in other copies and elements has the same title, reported once.
      s.store("w#1", "a[7]", "w:1").load("r#2", "a[7]", "r:1").end(Exited{});
      EXPECT_EQ(s.titles(), Titles{"data race on a[]: r:1 (load) / w:1 (store)"});
    }
  }
}

TEST(Race, LockedByTheSameLock) {
  EXPECT_EQ(around({}, {}, {}), kRaceOnX);
  const auto lock = [](const char* who, const char* m) { return event(OpKind::Lock, who, m); };
  const auto unlock = [](const char* who, const char* m) { return event(OpKind::Unlock, who, m); };
  EXPECT_EQ(around(lock("a", "m"), unlock("a", "m"), lock("b", "m")), Titles{});
  EXPECT_EQ(around(lock("a", "m"), unlock("a", "m"), lock("b", "other")), kRaceOnX);
  EXPECT_EQ(around(lock("a", "m"), unlock("a", "m"), event(OpKind::TryLock, "b", "m", {0, "", 1})), Titles{});
  EXPECT_EQ(around(lock("a", "m"), unlock("a", "m"), event(OpKind::TryLock, "b", "m", {1, "", 0})), kRaceOnX);
}

TEST(Race, ReadersDoNotOrderEachOther) {
  const auto rd = event(OpKind::ReadLock, "a", "rw"), rd_end = event(OpKind::ReadUnlock, "a", "rw");
  EXPECT_EQ(around(rd, rd_end, event(OpKind::ReadLock, "b", "rw")), kRaceOnX);
  EXPECT_EQ(around(rd, rd_end, event(OpKind::WriteLock, "b", "rw")), Titles{});
  const auto wr = event(OpKind::WriteLock, "a", "rw"), wr_end = event(OpKind::WriteUnlock, "a", "rw");
  EXPECT_EQ(around(wr, wr_end, event(OpKind::ReadLock, "b", "rw")), Titles{});
}

TEST(Race, OtherOrders) {
  EXPECT_EQ(around({}, event(OpKind::SemPost, "a", "s"), event(OpKind::SemWait, "b", "s")), Titles{});
  EXPECT_EQ(around({}, event(OpKind::SemWait, "a", "s"), event(OpKind::SemPost, "b", "s")), kRaceOnX);
  EXPECT_EQ(around({}, event(OpKind::Release, "a", "s"), event(OpKind::Acquire, "b", "s")), Titles{});
  EXPECT_EQ(around({}, event(OpKind::Acquire, "a", "s"), event(OpKind::Release, "b", "s")), kRaceOnX);
  EXPECT_EQ(around({}, event(OpKind::Claim, "a", "s"), event(OpKind::Claim, "b", "s")), kRaceOnX);
  EXPECT_EQ(around({}, event(OpKind::Spawn, "a", "agent b", {0, "b", 0}), {}), Titles{});
  EXPECT_EQ(around(event(OpKind::Spawn, "a", "agent b", {0, "b", 0}), {}, {}), kRaceOnX);
  EXPECT_EQ(around({}, event(OpKind::Exit, "a", "agent a"), event(OpKind::Join, "b", "agent a", {1, "a", 0})),
            Titles{});
  const auto signal = event(OpKind::Signal, "a", "c", {0, "", 1});
  EXPECT_EQ(around({}, both(signal, event(OpKind::Wake, "a", "c", {0, "b", 0})), {}), Titles{});
  EXPECT_EQ(around({}, signal, {}), kRaceOnX);
  const auto arm = both(event(OpKind::TimerArm, "a", "t"), event(OpKind::Wake, "a", "t", {0, "b", 0}));
  EXPECT_EQ(around({}, arm, event(OpKind::TimerFire, "b", "t")), Titles{});
  EXPECT_EQ(around({}, arm, {}), kRaceOnX) << "a run that had begun before it was armed again";
  const auto arrive = both(event(OpKind::BarrierArrive, "a", "b"), event(OpKind::BarrierArrive, "b", "b"));
  EXPECT_EQ(around({}, arrive, event(OpKind::Wake, "b", "b", {0, "a", 0})), Titles{});
}

TEST(Race, HandlersAreOrderedByMaskingOnly) {
  const auto enter = event(OpKind::IrqEnter, "b", "cpu a");
  EXPECT_EQ(around(event(OpKind::CpuUse, "a", "cpu a"), {}, enter), kRaceOnX);
  EXPECT_EQ(around(event(OpKind::IrqMask, "a", "cpu a"), event(OpKind::IrqUnmask, "a", "cpu a"), enter),
            Titles{});
  const auto raise = both(event(OpKind::IrqRaise, "a", "irq"), event(OpKind::Wake, "a", "irq", {0, "b", 0}));
  EXPECT_EQ(around({}, raise, enter), Titles{});
  EXPECT_EQ(around({}, raise, {}), kRaceOnX) << "a run of the handler that had begun before";
}

TEST(Race, AtomicsSynchroniseAndDoNotRaceWithEachOther) {
  const auto atomic = [](OpKind op, const char* who, const char* object) -> Steps {
    return [=](Script& s) { s.access(op, who, object, std::string(who) + ":1"); };
  };
  EXPECT_EQ(around({}, atomic(OpKind::AtomicStore, "a", "flag"), atomic(OpKind::AtomicLoad, "b", "flag")),
            Titles{});
  EXPECT_EQ(around({}, atomic(OpKind::AtomicLoad, "a", "flag"), atomic(OpKind::AtomicStore, "b", "flag")),
            kRaceOnX);
  EXPECT_EQ(around({}, atomic(OpKind::AtomicStore, "a", "flag"), atomic(OpKind::AtomicLoad, "b", "other")),
            kRaceOnX);
  const auto failed_cas = [](Script& s) {
    s.access(OpKind::CompareExchange, "a", "flag", "a:1", 8, 0, true);
  };
  EXPECT_EQ(around({}, failed_cas, atomic(OpKind::ReadModifyWrite, "b", "flag")), kRaceOnX);
}

TEST(Race, PlainAgainstAtomic) {
  Script s;
  s.access(OpKind::ReadModifyWrite, "a", "x", "a:1").load("b", "x", "b:1").end(Exited{});
  EXPECT_EQ(s.titles(), Titles{"data race on x: a:1 (read-modify-write) / b:1 (load)"});
  Script reads;
  reads.access(OpKind::CompareExchange, "a", "x", "a:1", 8, 0, true).load("b", "x", "b:1").end(Exited{});
  EXPECT_EQ(reads.titles(), Titles{}) << "a failed compare-exchange only reads";
}

TEST(Race, OnlyOverlappingBytesCount) {
  const auto bytes = [](const char* first, uint32_t first_size, const char* second, uint32_t second_size) {
    Script s;
    s.access(OpKind::Store, "a", first, "a:2", first_size)
        .access(OpKind::Store, "b", second, "b:2", second_size);
    s.end(Exited{});
    return s.titles();
  };
  EXPECT_EQ(bytes("x", 4, "x+4", 4), Titles{});
  EXPECT_EQ(bytes("x", 5, "x+4", 4), Titles{"data race on x+4: a:2 (store) / b:2 (store)"});
  EXPECT_EQ(bytes("x+7", 1, "x+8", 8), Titles{});
  EXPECT_EQ(bytes("x+7", 2, "x+8", 8), Titles{"data race on x+8: a:2 (store) / b:2 (store)"});
  EXPECT_EQ(bytes("x", 16, "x+15", 1), Titles{"data race on x+15: a:2 (store) / b:2 (store)"});
}

TEST(Race, MemoryHandedOutAgainStartsAfresh) {
  for (uint64_t size : {8u, 4096u}) {  // handled cell by cell, and by scanning the table
    Script s;
    s.store("a", "p", "a:1").store("a", "z", "a:2");
    s.event(OpKind::Alloc, "b", "p", "b:1", {0, "", static_cast<int64_t>(size)});
    s.store("b", "p", "b:2").end(Exited{});
    EXPECT_EQ(s.titles("race"), Titles{}) << size;
  }
}

}  // namespace
}  // namespace slalom::test
