// Deadlock, lost wakeup, livelock and good samaritan, each with a fixed twin.
#include <gtest/gtest.h>

#include <functional>

#include "unit/detect/script.h"

namespace slalom::test {
namespace {

using Titles = std::vector<std::string>;

// Two agents take m1 and m2 in opposite orders, with either order of ids and of the outcome's list.
Script lock_inversion(uint32_t first_agent, bool swapped) {
  Script s(first_agent);
  if (swapped) s.agent("b");
  s.lock("a", "m1", "a:1").lock("b", "m2", "b:1");
  auto a = s.waiting("a", OpKind::Lock, "m2", "a:2", {"b"});
  auto b = s.waiting("b", OpKind::Lock, "m1", "b:2", {"a"});
  s.end(swapped ? Deadlocked{{b, a}} : Deadlocked{{a, b}});
  return s;
}

TEST(Deadlock, NamesTheCycleWhateverTheNumbers) {
  const Titles expected = {"deadlock: a:2 waits for m2 held by b; b:2 waits for m1 held by a"};
  for (uint32_t first_agent : {0u, 7u, 300u}) {
    EXPECT_EQ(lock_inversion(first_agent, false).titles(), expected);
    EXPECT_EQ(lock_inversion(first_agent, true).titles(), expected);
  }
}

TEST(Deadlock, EvidenceIsWhereLocksWereTakenAndAreWaitedFor) {
  Script s = lock_inversion(0, false);
  const Verdict verdict = s.verdicts().at(0);
  EXPECT_EQ(verdict.kind, BugKind::Deadlock);
  EXPECT_EQ(verdict.severity, Severity::Failure);
  const std::vector<Evidence> expected = {
      {Step{1}, s.agent("b"), s.place("b:1"), "takes m2"},
      {Step{2}, s.agent("a"), s.place("a:2"), "waits for m2 held by b"},
      {Step{0}, s.agent("a"), s.place("a:1"), "takes m1"},
      {Step{2}, s.agent("b"), s.place("b:2"), "waits for m1 held by a"},
  };
  EXPECT_EQ(verdict.evidence, expected);
  EXPECT_EQ(verdict.detail,
            "a waits at a:2 (lock) for m2, held by b since b:1. b waits at b:2 (lock) for m1, held by a "
            "since a:1.");
}

TEST(Deadlock, ALockIsHeldSinceItWasTakenNotSinceATryInVain) {
  Script s;
  s.lock("a", "m1", "a:1").lock("b", "m2", "b:1");
  s.event(OpKind::TryLock, "a", "m1", "a:2", {1, "", 0});
  s.end(Deadlocked{
      {s.waiting("a", OpKind::Lock, "m2", "a:3", {"b"}), s.waiting("b", OpKind::Lock, "m1", "b:2", {"a"})}});
  EXPECT_EQ(s.verdicts().at(0).detail,
            "a waits at a:3 (lock) for m2, held by b since b:1. b waits at b:2 (lock) for m1, held by a "
            "since a:1.");
}

TEST(Deadlock, FixedTwinEnds) {
  Script s;
  s.lock("a", "m1", "a:1").lock("a", "m2", "a:2").unlock("a", "m2", "a:3").unlock("a", "m1", "a:4");
  s.lock("b", "m1", "b:1").lock("b", "m2", "b:2").unlock("b", "m2", "b:3").unlock("b", "m1", "b:4");
  s.end(Exited{});
  EXPECT_EQ(s.titles(), Titles{});
}

// Rings of any number of copies are the same bug.
TEST(Deadlock, RingsOfCopiesMerge) {
  for (int n : {2, 3, 5}) {
    Script s;
    Deadlocked deadlock;
    for (int i = 0; i < n; ++i) {
      deadlock.waiting.push_back(s.waiting(fmt::format("phil#{}", i), OpKind::Lock,
                                           fmt::format("fork[{}]", (i + 1) % n), "phil:2",
                                           {fmt::format("phil#{}", (i + 1) % n)}));
    }
    s.end(deadlock);
    EXPECT_EQ(s.titles(), Titles{"deadlock: phil:2 waits for fork[] held by another phil"}) << n;
  }
}

TEST(Deadlock, WaitingForOneself) {
  Script s;
  s.lock("a", "m", "a:1").end(Deadlocked{{s.waiting("a", OpKind::Lock, "m", "a:2", {"a"})}});
  EXPECT_EQ(s.titles(), Titles{"deadlock: a:2 waits for m held by itself"});
}

TEST(Deadlock, CycleThroughOneOfManyReaders) {
  Script s;
  s.end(Deadlocked{{s.waiting("w", OpKind::WriteLock, "rw", "w:2", {"r#0", "r#1"}),
                    s.waiting("r#1", OpKind::Lock, "m", "r:3", {"w"}),
                    s.waiting("main", OpKind::Join, "agent w", "main:9", {"w"})}});
  EXPECT_EQ(s.titles(), Titles{"deadlock: r:3 waits for m held by w; w:2 waits for rw held by r"});
}

TEST(Deadlock, TwoCyclesAreTwoBugs) {
  Script s;
  s.end(Deadlocked{{s.waiting("a", OpKind::Lock, "m2", "a:2", {"b"}),
                    s.waiting("b", OpKind::Lock, "m1", "b:2", {"a"}),
                    s.waiting("c", OpKind::Join, "agent d", "c:1", {"d"}),
                    s.waiting("d", OpKind::Join, "agent c", "d:1", {"c"})}});
  EXPECT_EQ(s.titles(), (Titles{"deadlock: a:2 waits for m2 held by b; b:2 waits for m1 held by a",
                                "deadlock: c:1 waits for the end of d; d:1 waits for the end of c"}));
}

TEST(Deadlock, AHandlerAndWhatItInterrupts) {
  for (const char* interrupted_at : {"t:2", "t:3"}) {
    Script s;
    s.lock("t", "m", "t:1").event(OpKind::IrqEnter, "tick", "cpu(t)", "tick:1");
    s.end(Deadlocked{{s.waiting("t", OpKind::CpuUse, "cpu(t)", interrupted_at, {"tick"}),
                      s.waiting("tick", OpKind::Lock, "m", "tick:1", {"t"})}});
    EXPECT_EQ(s.titles(),
              Titles{"deadlock: t waits for the end of interrupt tick; tick:1 waits for m held by t"});
  }
}

TEST(Deadlock, WithoutACycleListsWhatIsWaitedFor) {
  Script s;
  s.end(Deadlocked{
      {s.waiting("w#0", OpKind::SemWait, "s[0]", "w:4"), s.waiting("w#1", OpKind::SemWait, "s[1]", "w:4"),
       s.waiting("v", OpKind::BarrierArrive, "b", "v:1"), s.waiting("u", OpKind::Lock, "m", "u:1", {"gone"}),
       s.waiting("main", OpKind::Join, "agent w#0", "main:2", {"w#0"})}});
  EXPECT_EQ(s.titles(),
            Titles{"deadlock: u:1 waits for m held by gone, which has ended; v:1 waits for others at "
                   "b; w:4 waits for a post of s[]"});
}

// The consumer checks, the producer signals, the consumer waits.
Script early_signal(OpKind signal, int64_t woken) {
  Script s;
  s.load("consumer", "ready", "consumer:1");
  s.event(signal, "producer", "c", "producer:2", {0, "", woken});
  s.event(OpKind::Wait, "consumer", "c", "consumer:3").unlock("consumer", "m", "consumer:3");
  s.store("producer", "done", "producer:3");
  s.end(Deadlocked{{s.waiting("consumer", OpKind::Wait, "c", "consumer:3"),
                    s.waiting("main", OpKind::Join, "agent consumer", "main:1", {"consumer"})}});
  return s;
}

TEST(LostWakeup, InsteadOfADeadlock) {
  Script s = early_signal(OpKind::Signal, 0);
  const std::vector<Verdict> verdicts = s.verdicts();
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].kind, BugKind::LostWakeup);
  EXPECT_EQ(verdicts[0].title, "lost wakeup: signal at producer:2 woke nobody, then consumer:3 waits for c");
  const std::vector<Evidence> expected = {
      {Step{1}, s.agent("producer"), s.place("producer:2"), "signal of c wakes nobody"},
      {Step{2}, s.agent("consumer"), s.place("consumer:3"), "waits for c for ever"}};
  EXPECT_EQ(verdicts[0].evidence, expected);
  EXPECT_EQ(early_signal(OpKind::Broadcast, 0).verdicts().at(0).kind, BugKind::LostWakeup);
}

TEST(LostWakeup, SwitchedOffLeavesADeadlock) {
  const Script s = early_signal(OpKind::Signal, 0);
  EXPECT_EQ(s.titles("deadlock"), Titles{"deadlock: consumer:3 waits for a signal of c"});
  EXPECT_EQ(s.verdicts("lost-wakeup").at(0).kind, BugKind::LostWakeup);
  EXPECT_EQ(s.titles("failure,livelock,heap,race,leak"), Titles{});
}

TEST(LostWakeup, NotWithoutASignalThatWokeNobody) {
  const Script heard = early_signal(OpKind::Signal, 1);
  EXPECT_EQ(heard.titles(), Titles{"deadlock: consumer:3 waits for a signal of c"});
  EXPECT_EQ(heard.titles("lost-wakeup"), Titles{});
  Script own;
  own.event(OpKind::Signal, "a", "c", "a:1", {0, "", 0}).event(OpKind::Wait, "a", "c", "a:2");
  own.event(OpKind::Signal, "b", "other", "b:1", {0, "", 0});
  own.end(Deadlocked{{own.waiting("a", OpKind::Wait, "c", "a:2")}});
  EXPECT_EQ(own.titles(), Titles{"deadlock: a:2 waits for a signal of c"});
}

TEST(LostWakeup, ACycleExplainsTheHangBetter) {
  Script s = early_signal(OpKind::Signal, 0);
  s.end(Deadlocked{{s.waiting("consumer", OpKind::Wait, "c", "consumer:3"),
                    s.waiting("a", OpKind::Lock, "m", "a:2", {"a"})}});
  EXPECT_EQ(s.titles(), Titles{"deadlock: a:2 waits for m held by itself"});
}

Outcome limit(Script& s, const std::vector<std::string>& enabled) {
  LimitReached outcome{s.steps(), {}};
  for (const std::string& name : enabled) outcome.enabled.push_back(s.agent(name));
  return outcome;
}

TEST(Livelock, PoliteSpinners) {
  for (int rounds : {12, 100, 341, 1024, 3000}) {  // so that the limit falls anywhere between two windows
    Script s;
    s.store("main", "x", "main:1").store("main", "y", "main:2");
    for (int i = 0; i < rounds; ++i) {
      for (const char* who : {"a", "b"}) {
        const std::string name = who;
        s.access(OpKind::AtomicLoad, name, "flag", name + ":2").event(OpKind::Yield, name, "-", name + ":3");
      }
    }
    s.end(limit(s, {"a", "b"}));
    EXPECT_EQ(s.titles(), Titles{"livelock at a:3, b:3"}) << rounds;
    EXPECT_EQ(s.verdicts().at(0).kind, BugKind::Livelock);
    s.end(Exited{});
    EXPECT_EQ(s.titles(), Titles{});
  }
}

// Each agent backs off when it sees the other: pure repetition, and no agent yields.
Script back_off(int rounds, bool counts) {
  Script s;
  for (int i = 0; i < rounds; ++i) {
    for (const char* who : {"a", "b"}) {
      const std::string name = who;
      s.access(OpKind::AtomicStore, name, "want " + name, name + ":1", 8, 1);
      s.access(OpKind::AtomicLoad, name, name == "a" ? "want b" : "want a", name + ":2", 8, 1);
      s.access(OpKind::AtomicStore, name, "want " + name, name + ":3", 8, counts ? i : 0);
    }
  }
  s.end(limit(s, {"a", "b"}));
  return s;
}

TEST(Livelock, RepetitionWithoutYields) {
  EXPECT_EQ(back_off(700, false).titles(), Titles{"livelock at a:1, a:2, a:3, b:1, ..."});
}

TEST(Livelock, ALongProgramIsNone) {
  for (int rounds : {50, 700, 2500}) EXPECT_EQ(back_off(rounds, true).titles(), Titles{}) << rounds;
}

TEST(Livelock, AnUnfairScheduleIsNone) {
  Script s;
  s.load("starved", "x", "starved:1");
  for (int i = 0; i < 500; ++i)
    for (const char* who : {"a", "b"}) s.event(OpKind::Yield, who, "-", fmt::format("{}:1", who));
  s.end(limit(s, {"a", "b", "starved"}));
  EXPECT_EQ(s.titles(), Titles{});
}

Script spinner(bool yields, bool others_enabled) {
  Script s;
  s.load("other", "x", "other:1");
  for (int i = 0; i < 1000; ++i) {
    s.access(OpKind::AtomicLoad, "spinner", "flag", "spinner:2");
    if (yields) s.event(OpKind::Yield, "spinner", "-", "spinner:3");
  }
  s.end(others_enabled ? limit(s, {"other", "spinner"}) : limit(s, {"spinner"}));
  return s;
}

// One thread repeats a loop alone while another one could run.
Script alone(int rounds, const std::function<void(Script&, int)>& body, bool yields = false) {
  Script s;
  s.load("other", "x", "other:1");
  for (int i = 0; i < rounds; ++i) {
    body(s, i);
    if (yields) s.event(OpKind::Yield, "t", "-", "t:9");
  }
  s.end(limit(s, {"other", "t"}));
  return s;
}

// So that the limit falls anywhere between two windows.
constexpr int kLengths[] = {50, 341, 700, 1024, 2500, 6000};

TEST(Progress, NewAddressesAreNoSpin) {
  for (int rounds : kLengths) {
    const Script sums = alone(rounds, [](Script& s, int i) {
      s.access(OpKind::Load, "t", fmt::format("d[{}]", i), "t:1", 8, 5);
      s.access(OpKind::Store, "t", fmt::format("d[{}]", i + 1), "t:2", 8, 5);
    });
    EXPECT_EQ(sums.titles("livelock"), Titles{}) << rounds;
  }
}

TEST(Progress, NewValuesAreNoSpin) {
  for (int rounds : kLengths) {
    const Script sums = alone(rounds, [](Script& s, int i) {
      s.access(OpKind::Load, "t", "sum", "t:1", 8, i * i);
      s.access(OpKind::Store, "t", "sum", "t:2", 8, (i + 1) * (i + 1));
      s.access(OpKind::AtomicLoad, "t", "flag", "t:3", 8, 0);
    });
    EXPECT_EQ(sums.titles("livelock"), Titles{}) << rounds;
  }
}

// The loop reads its bound each time, and the bound does not change.
TEST(Progress, ALoopThatOnlyCountsIsNoSpin) {
  for (int rounds : kLengths) {
    const Script counts = alone(rounds, [](Script& s, int i) {
      s.access(OpKind::Load, "t", "bound", "t:1", 8, 500'000);
      s.access(OpKind::Load, "t", "hits", "t:2", 8, i);
      s.access(OpKind::Store, "t", "hits", "t:2", 8, i + 1);
    });
    EXPECT_EQ(counts.titles("livelock"), Titles{}) << rounds;
  }
}

TEST(Progress, ALoopThatReadsNothingWaitsForNothing) {
  const Script stores = alone(3000, [](Script& s, int) { s.access(OpKind::Store, "t", "x", "t:1", 8, 1); });
  EXPECT_EQ(stores.titles("livelock"), Titles{});
  const Script locks = alone(3000, [](Script& s, int) { s.lock("t", "m", "t:1").unlock("t", "m", "t:2"); });
  EXPECT_EQ(locks.titles("livelock"), Titles{});
}

TEST(Progress, ATableThatIsReadAgainAndAgainIsNoSpin) {
  const Script reads = alone(3000, [](Script& s, int i) {
    s.access(OpKind::Load, "t", fmt::format("d[{}]", i % 100), "t:1", 8, 5);
  });
  EXPECT_EQ(reads.titles("livelock"), Titles{});
}

TEST(Progress, SpinsThatCountAreFound) {
  for (int rounds : kLengths) {
    const auto spins = [rounds](OpKind load, int64_t stride) {
      return alone(rounds, [=](Script& s, int i) {
        s.access(load, "t", "flag", "t:1", 8, 0);
        if (stride != 0) {
          s.access(OpKind::Load, "t", "rounds", "t:2", 8, i * stride);
          s.access(OpKind::Store, "t", "rounds", "t:2", 8, (i + 1) * stride);
        }
      });
    };
    const Titles found = {"spins without yielding at t:1"};
    EXPECT_EQ(spins(OpKind::Load, 0).titles("livelock"), found) << rounds;
    EXPECT_EQ(spins(OpKind::AtomicLoad, 1).titles("livelock"), found) << rounds;
    EXPECT_EQ(spins(OpKind::CompareExchange, 64).titles("livelock"), found) << rounds;
    // An accepted miss: this could also be a loop that ends at a bound.
    EXPECT_EQ(spins(OpKind::Load, 1).titles("livelock"), Titles{}) << rounds;
  }
}

// All agents that can run do run, and yield.
Script politely(int rounds, const std::function<void(Script&, const std::string&, int)>& body) {
  Script s;
  for (int i = 0; i < rounds; ++i)
    for (const char* who : {"a", "b"}) {
      body(s, who, i);
      s.event(OpKind::Yield, who, "-", fmt::format("{}:9", who));
    }
  s.end(limit(s, {"a", "b"}));
  return s;
}

TEST(Progress, WorkersThatYieldAreNoLivelock) {
  for (int rounds : kLengths) {
    const Script fills = politely(rounds, [](Script& s, const std::string& who, int i) {
      s.access(OpKind::Load, who, "bound", who + ":1", 8, 500'000);
      s.access(OpKind::Store, who, fmt::format("{}[{}]", who, i), who + ":2", 8, 0);
    });
    EXPECT_EQ(fills.titles("livelock"), Titles{}) << rounds;
    const Script adds = politely(rounds, [](Script& s, const std::string& who, int i) {
      s.access(OpKind::ReadModifyWrite, who, "hits", who + ":1", 8, 2 * i + (who == "b" ? 1 : 0));
    });
    EXPECT_EQ(adds.titles("livelock"), Titles{}) << rounds;
    const Script waits = politely(rounds, [](Script& s, const std::string& who, int i) {
      s.access(OpKind::Load, who, "flag", who + ":1", 8, 0);
      s.access(OpKind::Store, who, "tries " + who, who + ":2", 8, i * i);  // a new value at the same address
    });
    if (rounds < 1024) {
      EXPECT_EQ(waits.titles("livelock"), Titles{"livelock at a:9, b:9"}) << rounds;
    }
    const Script counted = politely(rounds, [](Script& s, const std::string& who, int i) {
      s.access(OpKind::Load, who, "flag", who + ":1", 8, 0);
      s.access(OpKind::Store, who, "tries " + who, who + ":2", 8, i);
    });
    EXPECT_EQ(counted.titles("livelock"), Titles{"livelock at a:9, b:9"}) << rounds;
  }
}

// A loop around a wait with a time limit that always expires first. Only the schedule is to blame.
TEST(GoodSamaritan, IsNotWhoWaits) {
  Script s;
  s.load("other", "x", "other:1");
  for (int i = 0; i < 1000; ++i) {
    s.access(OpKind::Load, "waiter", "done", "waiter:2");
    s.event(OpKind::TimerFire, "waiter", "ready", "waiter:3");
  }
  s.end(limit(s, {"other", "waiter"}));
  EXPECT_EQ(s.titles(), Titles{});
}

TEST(GoodSamaritan, SpinsAloneWithoutYielding) {
  const auto verdicts = spinner(false, true).verdicts();
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].kind, BugKind::GoodSamaritan);
  EXPECT_EQ(verdicts[0].title, "spins without yielding at spinner:2");
}

TEST(GoodSamaritan, YieldingMakesItTheSchedulesFault) {
  EXPECT_EQ(spinner(true, true).titles(), Titles{});
}

TEST(GoodSamaritan, AloneItIsALivelock) {
  EXPECT_EQ(spinner(false, false).titles(), Titles{"livelock at spinner:2"});
  EXPECT_EQ(spinner(true, false).titles(), Titles{"livelock at spinner:3"});
  EXPECT_EQ(spinner(false, true).titles("failure,deadlock,lost-wakeup,heap,race,leak"), Titles{});
}

// Steps without events: a loop that does nothing visible.
TEST(Livelock, InvisibleLoops) {
  Script s;
  s.load("a", "x", "a:1").load("b", "x", "b:1");
  s.end(LimitReached{20'000, {s.agent("b")}});
  EXPECT_EQ(s.titles(), Titles{"livelock: b does nothing visible after b:1"});
  s.end(LimitReached{20'000, {s.agent("a"), s.agent("b")}});
  EXPECT_EQ(s.titles(), Titles{"spins without yielding: b does nothing visible after b:1"});
}

}  // namespace
}  // namespace slalom::test
