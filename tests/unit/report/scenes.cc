#include <fmt/format.h>

#include "unit/report/scene.h"

namespace slalom::test {
namespace {

Scene lost_update() {
  Scene s;
  s.code("worker", {"x = x + 1"});
  s.load("worker#0", 1, "x", 0);
  s.load("worker#1", 1, "x", 0).store("worker#1", 1, "x", 1).exit("worker#1", 1);
  s.store("worker#0", 1, "x", 1).exit("worker#0", 1);
  s.text(OpKind::Fail, "", 0, "final check: an update was lost");
  s.end(Faulted{Faulted::Kind::Assertion, {}, {}, "final check: an update was lost"});
  s.finding.target = make_target("toy", "lost-update", "", {{"n", 2}});
  s.finding.verdict = {
      BugKind::Assertion, Severity::Failure, "assertion failed: final check: an update was lost", "", {}};
  s.finding.minimality = Minimality::Minimum;
  s.finding.original = s.finding.schedule;
  s.finding.original.switches.resize(9);
  s.finding.execution = 3;
  s.finding.occurrences = 1204;
  s.options.executions = 10'000;
  s.needs("worker#0", 0, "worker#1", 1);
  s.needs("worker#1", 0, "worker#0", 1);
  s.options.replay_command = "slalom replay bugs/2f6c01d8a4e79b35/capsule.slalom";
  return s;
}

Scene deadlock() {
  Scene s;
  s.code("left", {"lock a", "lock b", "n = n + 1", "unlock b", "unlock a"});
  s.code("right", {"lock b", "lock a", "n = n + 1", "unlock a", "unlock b"});
  s.event(OpKind::Lock, "left", 1, "a");
  s.event(OpKind::Lock, "right", 1, "b");
  s.end(
      Deadlocked{{{s.agent("left"), OpKind::Lock, s.object("b"), s.place("left", 2), {s.agent("right")}},
                  {s.agent("right"), OpKind::Lock, s.object("a"), s.place("right", 2), {s.agent("left")}}}});
  s.finding.verdict = {
      BugKind::Deadlock,
      Severity::Failure,
      "deadlock: left:2 waits for b held by right; right:2 waits for a held by left",
      "left waits at left:2 (lock) for b, held by right since right:1. right waits at right:2 (lock) for a, "
      "held by left since left:1.",
      {s.evidence(0, "left", 1, "takes a"), s.evidence(2, "right", 2, "waits for a held by left"),
       s.evidence(1, "right", 1, "takes b"), s.evidence(2, "left", 2, "waits for b held by right")}};
  s.finding.minimality = Minimality::Minimal;
  s.needs("left", 0, "right", 1);
  s.finding.constraints.back().after.text = "lock a";
  return s;
}

// Many operations, few of which matter. A third agent does not matter at all.
Scene folding() {
  Scene s;
  s.code("producer", {"scratch[i] = i * i", "item = 42", "ready = 1"});
  s.code("consumer", {"while load(ready) == 0 { }", "sum = sum + mine[i]", "r = item", "assert r == 42"});
  s.code("logger", {"log[i] = i"});
  for (int i = 0; i < 4; ++i) s.store("logger", 1, fmt::format("log[{}]", i), i);
  s.exit("logger", 1);
  for (int i = 0; i < 40; ++i) s.store("producer", 1, fmt::format("scratch[{}]", i), i * i);
  s.access(OpKind::AtomicStore, "producer", 3, "ready", 1);
  s.access(OpKind::AtomicLoad, "consumer", 1, "ready", 1, false);
  for (int i = 0; i < 3; ++i) {
    s.load("consumer", 2, fmt::format("mine[{}]", i), i);
    s.store("consumer", 2, "sum", i * (i + 1) / 2);
  }
  s.load("consumer", 3, "item", 0);
  s.text(OpKind::Fail, "consumer", 4, "r == 42");
  const uint64_t last = s.steps() - 1;
  s.end(Faulted{Faulted::Kind::Assertion, s.agent("consumer"), s.place("consumer", 4), "r == 42"});
  s.finding.verdict = {BugKind::Assertion,
                       Severity::Failure,
                       "assertion failed at consumer:4: r == 42",
                       "consumer failed an assertion in `assert r == 42`: r == 42.",
                       {s.evidence(last, "consumer", 4, "r == 42")}};
  s.finding.minimality = Minimality::Minimal;
  s.options.switch_kinds = {ChoiceKind::Start, ChoiceKind::Ended, ChoiceKind::Running};
  return s;
}

Scene many_agents() {
  Scene s;
  s.code("worker", {"lock m", "total = total + count[id]", "unlock m"});
  for (int i = 0; i < 7; ++i) {
    const std::string who = fmt::format("worker#{}", i);
    s.load(who, 2, "total", i == 0 ? 0 : i - 1);
    if (i == 3) s.load("worker#4", 2, "total", 2);
    s.load(who, 2, fmt::format("count[{}]", i), 1).store(who, 2, "total", i == 0 ? 1 : i);
    s.exit(who, 2);
  }
  s.finding.verdict = {
      BugKind::DataRace,
      Severity::Race,
      "data race on total: worker:2 (load) / worker:2 (store)",
      "Nothing orders these two accesses: worker:2 held nothing; worker:2 held nothing. worker#4 "
      "had not synchronised with anything. worker#3 had not synchronised with anything.",
      {s.evidence(10, "worker#4", 2, "load of total"), s.evidence(12, "worker#3", 2, "store of total")}};
  s.finding.strategy = "random";
  s.finding.minimality = Minimality::Minimal;
  s.finding.excluded = 1;
  s.end(Exited{});
  return s;
}

Scene unicode() {
  Scene s;
  s.code("café",
         {"größe = größe + 1  # la même ligne, très longue, qui ne tient dans aucune colonne du monde",
          "naïve\x1b[31m\tvalue \xff= 1"});
  s.code("überwacher",
         {"if größe > 0 { 日本 = 日本 + größe }  # Überwachung, ebenfalls länger als jede Spalte"});
  s.load("café#0", 1, "größe", -1);
  s.load("überwacher", 1, "größe", -1).load("überwacher", 1, "日本", 1'234'567'890'123);
  s.store("überwacher", 1, "日本", 1'234'567'890'122).exit("überwacher", 1);
  s.store("café#0", 1, "größe", 0);
  s.access(OpKind::CompareExchange, "café#0", 2, "日本", 5, false);
  s.text(OpKind::Note, "café#0", 2, "fertig\nnow").exit("café#0", 2);
  s.end(Exited{});
  s.finding.verdict = {
      BugKind::DataRace,
      Severity::Race,
      "data race on größe: café:1 (store) / überwacher:1 (load)",
      "Nothing orders these two accesses.",
      {s.evidence(1, "überwacher", 1, "load of größe"), s.evidence(4, "café#0", 1, "store of größe")}};
  s.needs("überwacher", 0, "café#0", 1);
  s.finding.minimality = Minimality::Minimal;
  return s;
}

Scene lost_wakeup() {
  Scene s;
  s.code("waiter", {"if ready == 0 {", "lock m", "wait c m", "unlock m"});
  s.code("setter", {"lock m", "ready = 1", "signal c", "unlock m"});
  s.load("waiter", 1, "ready", 0);
  s.event(OpKind::Lock, "setter", 1, "m").store("setter", 2, "ready", 1);
  s.event(OpKind::Signal, "setter", 3, "c");
  s.event(OpKind::Unlock, "setter", 4, "m", {1, "", 0}).exit("setter", 4);
  s.event(OpKind::Lock, "waiter", 2, "m");
  s.event(OpKind::Wait, "waiter", 3, "c").along(OpKind::Unlock, "waiter", 3, "m", {1, "", 0});
  s.end(Deadlocked{{{s.agent("waiter"), OpKind::Wait, s.object("c"), s.place("waiter", 3), {}}}});
  s.finding.verdict = {
      BugKind::LostWakeup,
      Severity::Failure,
      "lost wakeup: signal at setter:3 woke nobody, then waiter:3 waits for c",
      "The signal of c by setter at setter:3 came before waiter waited at waiter:3, and no other "
      "follows.",
      {s.evidence(3, "setter", 3, "signal of c wakes nobody"),
       s.evidence(6, "waiter", 3, "waits for c for ever")}};
  s.finding.minimality = Minimality::Minimum;
  s.needs("setter", 2, "waiter", 2);
  return s;
}

// An interrupt on a driver's cpu frees the memory that the driver uses.
Scene interrupt() {
  Scene s;
  s.code("driver", {"p = alloc(2)", "arm t", "p[1] = 5", "yield"});
  s.code("tick", {"free(p)"});
  s.name_agent(AgentId::initial(0), "driver");
  s.name_agent(AgentId::initial(0).interrupt(0), "tick");
  s.ahead(OpKind::CpuUse, "driver", 1, "cpu of driver", 0);
  s.event(OpKind::Alloc, "driver", 1, "heap(driver,0)", {0, "", 2});
  s.ahead(OpKind::CpuUse, "driver", 2, "cpu of driver", 0);
  s.event(OpKind::TimerArm, "driver", 2, "t").along(OpKind::Wake, "driver", 2, "t", {0, "tick", 0});
  s.event(OpKind::IrqEnter, "tick", 0, "cpu of driver");
  s.event(OpKind::Free, "tick", 1, "heap(driver,0)", {1, "", 0});
  s.along(OpKind::IrqExit, "tick", 1, "cpu of driver", {2, "", 0});
  s.ahead(OpKind::HeapUse, "driver", 3, "heap(driver,0)", 0).store("driver", 3, "heap(driver,0)[1]", 5);
  s.event(OpKind::Yield, "driver", 4, "").exit("driver", 4);
  s.end(Exited{});
  s.finding.verdict = {
      BugKind::UseAfterFree,
      Severity::Failure,
      "use after free of heap: used at driver:3, freed at tick:1",
      "heap(driver,0) was allocated by driver at driver:1. tick freed it at tick:1. driver used it "
      "at driver:3 after that.",
      {s.evidence(0, "driver", 1, "allocates heap(driver,0)"),
       s.evidence(3, "tick", 1, "frees heap(driver,0)"), s.evidence(4, "driver", 3, "uses heap(driver,0)")}};
  s.finding.minimality = Minimality::Minimum;
  return s;
}

// Two agents give way to each other for ever.
Scene livelock() {
  Scene s;
  s.code("philosopher", {"lock fork[id]", "while trylock(fork[1 - id]) == 0 {", "yield }"});
  for (int i = 0; i < 2; ++i)
    s.event(OpKind::Lock, fmt::format("philosopher#{}", i), 1, fmt::format("fork[{}]", i));
  for (int round = 0; round < 200; ++round)
    for (int i = 0; i < 2; ++i) {
      const std::string who = fmt::format("philosopher#{}", i);
      for (int again = 0; again < 3; ++again)
        s.event(OpKind::TryLock, who, 2, fmt::format("fork[{}]", 1 - i), {1, "", 0});
      s.event(OpKind::Yield, who, 3, "");
    }
  s.end(LimitReached{s.steps(), {s.agent("philosopher#0"), s.agent("philosopher#1")}});
  s.finding.verdict = {BugKind::Livelock,
                       Severity::Failure,
                       "livelock at philosopher:3",
                       "Every agent that can run does run, and none of them gets anywhere.",
                       {s.evidence(1197, "philosopher#0", 3, "done 133 times lately")}};
  s.finding.replays_same = 7;
  return s;
}

Scene barrier() {
  Scene s;
  s.code("worker", {"lock m", "k = choose(3)", "unlock m", "arrive b", "a[k] = 1 / d"});
  s.event(OpKind::Lock, "worker#0", 1, "m").event(OpKind::Choose, "worker#0", 2, "", {0, "", 2});
  s.event(OpKind::Spawn, "worker#1", 9, "agent helper", {0, "helper", 0});
  s.event(OpKind::Unlock, "worker#0", 3, "m", {1, "", 0}).event(OpKind::BarrierArrive, "worker#0", 4, "b");
  s.event(OpKind::Lock, "worker#1", 1, "m").event(OpKind::Unlock, "worker#1", 3, "m", {1, "", 0});
  s.event(OpKind::BarrierArrive, "worker#1", 4, "b");
  s.along(OpKind::Wake, "worker#1", 4, "b", {0, "worker#0", 0});
  s.access(OpKind::ReadModifyWrite, "worker#0", 5, "d", 0);
  s.access(OpKind::CompareExchange, "worker#0", 7, "d", 0, true);
  s.end(Faulted{Faulted::Kind::Crash, s.agent("worker#0"), s.place("worker#0", 5), "division by zero"});
  s.finding.schedule.data = {{s.agent("worker#0"), 1, 0, 2}};
  s.finding.verdict = {BugKind::Crash, Severity::Failure, "crash at worker:5: division by zero", "", {}};
  s.finding.replays_tried = s.finding.replays_same = 0;
  return s;
}

Scene leak() {
  Scene s;
  s.code("main", {"p = alloc(1)"});
  s.event(OpKind::Alloc, "main", 1, "heap(main,0)", {0, "", 1}).exit("main", 1);
  s.end(Exited{});
  s.finding.verdict = {BugKind::Leak,
                       Severity::Suspicion,
                       "leak of heap allocated at main:1",
                       "1 of them is still allocated at the end.",
                       {s.evidence(0, "main", 1, "allocates heap(main,0)")}};
  s.finding.minimality = Minimality::Minimum;
  return s;
}

}  // namespace

const std::map<std::string, Scene (*)()>& scenes() {
  static const std::map<std::string, Scene (*)()> kScenes = {
      {"lost_update", lost_update}, {"deadlock", deadlock},
      {"folding", folding},         {"many_agents", many_agents},
      {"unicode", unicode},         {"lost_wakeup", lost_wakeup},
      {"interrupt", interrupt},     {"livelock", livelock},
      {"barrier", barrier},         {"leak", leak},
      {"torn_read", torn_read},     {"kernel_oops", kernel_oops},
  };
  return kScenes;
}

}  // namespace slalom::test
