// What each primitive does, checked by its events and by the outcomes of all interleavings.
#include "unit/toy/toy_support.h"

namespace slalom::test {
namespace {

using Kinds = std::set<std::string>;

ToyBuilder counter(const std::string& code, int64_t copies = 2) {
  ToyBuilder b;
  b.shared("x").thread("t", code, {.copies = copies}).final_check("x == " + std::to_string(copies), "lost");
  return b;
}

TEST(ToyPrimitives, LostUpdateAndItsFixes) {
  EXPECT_EQ(every_interleaving(counter("x = x + 1")),
            (Outcomes{{"exited", 2}, {"assertion: final check: lost", 4}}));
  EXPECT_EQ(kinds_of(every_interleaving(counter("r = fetch_add(x, 1)"))), Kinds{"exited"});
  EXPECT_EQ(kinds_of(every_interleaving(counter("r = x; while !cas(x, r, r + 1) { r = x }"),
                                        {.policy = {}, .max_steps = 50})),
            Kinds{"exited"});
  ToyBuilder locked = counter("lock m; x = x + 1; unlock m", 3);
  locked.sync("m", ToySyncKind::Mutex);
  EXPECT_EQ(kinds_of(every_interleaving(locked)), Kinds{"exited"});
  ToyBuilder tried = counter("if trylock(m) { x = x + 1; unlock m } else { r = fetch_add(x, 1) }");
  tried.sync("m", ToySyncKind::Mutex);
  EXPECT_EQ(kinds_of(every_interleaving(tried)), (Kinds{"assertion: final check: lost", "exited"}));
}

TEST(ToyPrimitives, InterleavingsAreCountedExactly) {
  for (const auto& [operations, expected] : std::map<int, uint64_t>{{1, 2}, {2, 6}, {3, 20}, {5, 252}}) {
    ToyBuilder b;
    b.shared("x").thread("t", "for i in 0.." + std::to_string(operations) + " { x = i }", {.copies = 2});
    EXPECT_EQ(every_interleaving(b), (Outcomes{{"exited", expected}}));  // (2k choose k)
  }
}

TEST(ToyPrimitives, MutexDeadlock) {
  ToyBuilder b;
  b.sync("l", ToySyncKind::Mutex, {.size = 2});
  b.thread("t", "lock l[id]\nlock l[1-id]\nunlock l[1-id]; unlock l[id]", {.copies = 2});
  EXPECT_EQ(kinds_of(every_interleaving(b)), (Kinds{"deadlocked", "exited"}));
  ToyMachine machine(built(b));
  const Execution both = run(machine, scripted({{initial(0), 0}, {initial(1), 0}}));
  const auto& waiting = std::get<Deadlocked>(both.outcome).waiting;
  ASSERT_EQ(waiting.size(), 2u);
  EXPECT_EQ(waiting[0].agent, initial(0));
  EXPECT_EQ(waiting[0].op, OpKind::Lock);
  EXPECT_EQ(machine.names().object(waiting[0].object), "l[1]");
  EXPECT_EQ(machine.names().place(waiting[0].pc), "t:2");
  EXPECT_EQ(machine.names().source(waiting[0].pc), "lock l[1-id]");
  EXPECT_EQ(waiting[0].held_by, std::vector{initial(1)});
  EXPECT_EQ(waiting[1].held_by, std::vector{initial(0)});
}

TEST(ToyPrimitives, MutexEvents) {
  ToyBuilder b;
  b.sync("m", ToySyncKind::Mutex).thread("t", "lock m\nr = trylock(m)\nunlock m\nr = trylock(m)\nlock m");
  const Execution result = run(b);
  const std::vector<std::string> expected = {"0 t lock m state=0", "1 t trylock m state=1",
                                             "2 t unlock m state=1", "3 t trylock m state=0 value=1"};
  EXPECT_EQ(result.lines, expected);
  EXPECT_EQ(std::get<Deadlocked>(result.outcome).waiting.at(0).held_by, std::vector{initial(0)});  // itself
}

TEST(ToyPrimitives, Crashes) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"unlock m", "crash: unlock of m, which t does not hold"},
      {"rdunlock rw", "crash: read unlock of rw, which t does not hold"},
      {"rdlock rw; wrunlock rw", "crash: write unlock of rw, which t does not hold"},
      {"wrlock rw; rdunlock rw", "crash: read unlock of rw, which t does not hold"},
      {"wait c m", "crash: wait of m, which t does not hold"},
      {"r = a[3]", "crash: index 3 is out of range: there are 3 elements"},
      {"a[0-1] = 1", "crash: index -1 is out of range: there are 3 elements"},
      {"lock l[2]", "crash: index 2 is out of range: there are 2 elements"},
      {"p = 5; p[0] = 1", "crash: 5 is not a heap handle"},
      {"p = alloc(2); p[2] = 1", "crash: index 2 is out of range: there are 2 elements"},
      {"p = alloc(0)", "crash: alloc(0): a heap object has between 1 and 255 cells"},
      {"p = alloc(256)", "crash: alloc(256): a heap object has between 1 and 255 cells"},
      {"free(7)", "crash: free(7): not a heap handle"},
      {"r = choose(0)", "crash: choose(0): there must be between 1 and 4294967295 values"},
      {"r = 1 / a[0]", "crash: division by zero"},
      {"r = 1 % 0", "crash: division by zero"},
      {"join(9)", "crash: join of 9, which is no thread's handle"},
      {"if 0 { spawn child }; join child", "crash: join of a thread that has not been spawned"},
      {"assert 1 == 1; assert a[0] > 0", "assertion: a[0] > 0"},
      {"assert 0 \"with a message\"", "assertion: with a message"},
  };
  for (const auto& [code, outcome] : cases) {
    ToyBuilder b;
    b.shared("a", {.size = 3}).sync("m", ToySyncKind::Mutex).sync("rw", ToySyncKind::RwLock);
    b.sync("c", ToySyncKind::Condvar).sync("l", ToySyncKind::Mutex, {.size = 2});
    b.thread("t", code).thread("child", "", {.start = false});
    const Execution result = run(b);
    EXPECT_EQ(text_of(result.outcome), outcome) << code;
    const auto* fault = std::get_if<Faulted>(&result.outcome);
    ASSERT_NE(fault, nullptr) << code;
    EXPECT_EQ(fault->agent, initial(0));
    EXPECT_TRUE(result.lines.back().find(" t fail \"" + fault->what + "\"") != std::string::npos)
        << result.lines.back();
  }
}

TEST(ToyPrimitives, RwLock) {
  ToyBuilder b;
  b.shared("x").shared("readers").sync("rw", ToySyncKind::RwLock);
  b.thread("writer", "wrlock rw; x = 1; x = 2; wrunlock rw", {.copies = 2});
  b.thread("reader", "rdlock rw; r = x; assert r != 1; rdunlock rw");
  EXPECT_EQ(kinds_of(every_interleaving(b)), Kinds{"exited"});

  ToyBuilder together;  // two readers can be inside together, so the barrier is passed
  together.sync("rw", ToySyncKind::RwLock).sync("b", ToySyncKind::Barrier, {.count = 2});
  together.thread("reader", "rdlock rw; arrive b; rdunlock rw", {.copies = 2});
  EXPECT_EQ(kinds_of(every_interleaving(together)), Kinds{"exited"});

  ToyBuilder upgrade;
  upgrade.sync("rw", ToySyncKind::RwLock).thread("t", "rdlock rw; wrlock rw", {.copies = 2});
  ToyMachine machine(built(upgrade));
  const Execution stuck = run(machine, scripted({{initial(0), 0}, {initial(1), 0}}));
  EXPECT_EQ(std::get<Deadlocked>(stuck.outcome).waiting.at(0).held_by, (std::vector{initial(0), initial(1)}));
  EXPECT_EQ(stuck.lines,
            (std::vector<std::string>{"0 t#0 read lock rw state=0", "1 t#1 read lock rw state=2"}));
}

TEST(ToyPrimitives, ConditionVariableEvents) {
  ToyBuilder b;
  b.sync("m", ToySyncKind::Mutex).sync("c", ToySyncKind::Condvar);
  b.thread("sleeper", "lock m\nwait c m\nunlock m").thread("waker", "signal c\nsignal c");
  const Execution result =
      run(b, scripted({{initial(0), 0}, {initial(0), 0}, {initial(1), 0}, {initial(1), 0}}));
  EXPECT_EQ(text_of(result.outcome), "exited");
  const std::vector<std::string> expected = {
      "0 sleeper lock m state=0",
      "1 sleeper wait c state=0",
      "1 sleeper unlock m state=1",
      "2 waker signal c state=0 value=1",
      "2 waker wake c state=0 other=sleeper",
      "3 waker signal c state=0",
      "3 waker exit waker state=0 other=waker",
      "4 sleeper lock m state=0",
      "5 sleeper unlock m state=1",
      "5 sleeper exit sleeper state=0 other=sleeper",
  };
  EXPECT_EQ(result.lines, expected);
  const Execution lost = run(b, scripted({{initial(1), 0}, {initial(1), 0}}));  // the signal comes too early
  const auto& waiting = std::get<Deadlocked>(lost.outcome).waiting;
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0].op, OpKind::Wait);
  EXPECT_TRUE(waiting[0].held_by.empty());
}

TEST(ToyPrimitives, SignalChoosesAWaiterAndBroadcastWakesAll) {
  const auto program = [](const std::string& wake) {
    ToyBuilder b;
    b.shared("woken").sync("m", ToySyncKind::Mutex).sync("c", ToySyncKind::Condvar);
    b.thread("sleeper", "lock m; wait c m; woken = woken * 10 + id + 1; unlock m", {.copies = 3})
        .thread("waker", wake);
    return built(b);
  };
  const std::vector<std::pair<AgentId, uint32_t>> all_asleep = {
      {initial(0), 0}, {initial(0), 0}, {initial(1), 0}, {initial(1), 0}, {initial(2), 0}, {initial(2), 0}};
  for (uint32_t chosen = 0; chosen < 3; ++chosen) {
    auto script = all_asleep;
    script.push_back({initial(3), 0});
    script.push_back({initial(3), chosen});
    ToyMachine machine(program("signal c"));
    const Execution result = run(machine, scripted(script));
    EXPECT_EQ(std::get<Deadlocked>(result.outcome).waiting.size(), 2u);
    EXPECT_EQ(machine.state().cells[0], chosen + 1);
  }
  ToyMachine machine(program("broadcast c"));
  auto script = all_asleep;
  script.push_back({initial(3), 0});
  EXPECT_EQ(text_of(run(machine, scripted(script)).outcome), "exited");
  EXPECT_EQ(machine.state().cells[0], 123);
}

TEST(ToyPrimitives, SemaphoreBoundsWhoIsInside) {
  const auto program = [](int64_t count) {
    ToyBuilder b;
    b.shared("inside", {.atomic = true}).sync("s", ToySyncKind::Semaphore, {.count = count});
    b.thread("t", "down s; r = fetch_add(inside, 1); assert r < 1; r = fetch_add(inside, -1); up s",
             {.copies = 2});
    return b;
  };
  EXPECT_EQ(kinds_of(every_interleaving(program(0))), Kinds{"deadlocked"});
  EXPECT_EQ(kinds_of(every_interleaving(program(1))), Kinds{"exited"});
  EXPECT_EQ(kinds_of(every_interleaving(program(2))), (Kinds{"assertion: r < 1", "exited"}));
}

TEST(ToyPrimitives, BarrierSeparatesPhases) {
  ToyBuilder b;
  b.shared("x").sync("b", ToySyncKind::Barrier, {.count = 2});
  b.thread("t", "r = fetch_add(x, 1); arrive b; assert x >= 2; arrive b; note \"end\"", {.copies = 2});
  EXPECT_EQ(kinds_of(every_interleaving(b)), Kinds{"exited"});

  ToyBuilder ends;
  ends.sync("b", ToySyncKind::Barrier, {.count = 2}).thread("t", "arrive b\nnote \"on\"", {.copies = 2});
  const std::vector<std::string> expected = {"0 t#0 barrier b state=0",          "1 t#1 barrier b state=0",
                                             "1 t#1 wake b state=0 other=t#0",   "1 t#0 note \"on\"",
                                             "1 t#0 exit t#0 state=0 other=t#0", "1 t#1 note \"on\"",
                                             "1 t#1 exit t#1 state=0 other=t#1"};
  EXPECT_EQ(run(ends).lines, expected);

  ToyBuilder missing;
  missing.sync("b", ToySyncKind::Barrier, {.count = 3}).thread("t", "arrive b", {.copies = 2});
  EXPECT_EQ(std::get<Deadlocked>(run(missing).outcome).waiting.at(1).op, OpKind::BarrierArrive);
}

TEST(ToyPrimitives, SpawnAndJoin) {
  ToyBuilder b;
  b.shared("x");
  b.thread("main",
           "spawn child\nh = spawn(child, 5)\njoin(h)\njoin child\nassert x == 6\nspawn quick\njoin "
           "quick\njoin other#1");
  b.thread("child", "r = fetch_add(x, id + !id)", {.start = false});  // the first has id 0
  b.thread("quick", "note \"no operation\"", {.start = false}).thread("other", "x = x", {.copies = 2});
  EXPECT_EQ(kinds_of(every_interleaving(b)).count("deadlocked"), 0u);
  ToyMachine machine(built(b));
  const Execution result = run(machine, go_on);
  EXPECT_EQ(text_of(result.outcome), "exited");
  EXPECT_EQ(machine.names().agent(initial(0).child(1)), "child@1.2");
  EXPECT_EQ(machine.names().role(initial(0).child(1)), "child");
  const auto has = [&](const std::string& text) {
    for (const std::string& line : result.lines)
      if (line.find(text) != std::string::npos) return true;
    return false;
  };
  EXPECT_TRUE(has("main spawn child@1.2 state=0 other=child@1.2"));
  EXPECT_TRUE(has("main join child@1.2 state=1 other=child@1.2"));
  EXPECT_TRUE(has("quick@1.3 exit quick@1.3"));
  EXPECT_TRUE(has("main join other#1 state=1"));

  ToyBuilder waits;
  waits.thread("a", "join b").thread("b", "join a");
  const Execution stuck = run(waits);
  const auto& waiting = std::get<Deadlocked>(stuck.outcome).waiting;
  EXPECT_EQ(waiting.at(0).held_by, std::vector{initial(1)});
  EXPECT_EQ(waiting.at(0).op, OpKind::Join);
}

TEST(ToyPrimitives, Heap) {
  ToyBuilder b;
  b.thread("t",
           "p = alloc(2)\np[1] = 7\nq = alloc(1)\nassert p != q\nassert p[1] == 7\nfree(p)\nr = p[1]\nassert "
           "r == 0\np[0] = 1\nfree(p)");
  const Execution result = run(b);
  EXPECT_EQ(text_of(result.outcome), "exited");
  const std::vector<std::string> expected = {
      "0 t alloc heap(t,1) state=0 value=2", "1 t heap use heap(t,1) state=1", "1 t store heap(t,1)[1] 7 w",
      "2 t alloc heap(t,2) state=0 value=1", "3 t heap use heap(t,1) state=1", "3 t load heap(t,1)[1] 7",
      "4 t free heap(t,1) state=1",          "5 t heap use heap(t,1) state=0", "5 t load heap(t,1)[1] 0",
      "6 t heap use heap(t,1) state=0",      "6 t store heap(t,1)[0] 1 w",     "7 t free heap(t,1) state=0",
      "7 t exit t state=0 other=t",
  };
  EXPECT_EQ(result.lines, expected);
}

// A use after free is a verdict of its own. What it reads must not depend on what was written meanwhile.
TEST(ToyPrimitives, WhatIsWrittenToFreedMemoryIsNotKept) {
  ToyBuilder b;
  b.thread("t", "p = alloc(1); free(p); p[0] = 1; r = p[0]; assert r == 0");
  EXPECT_EQ(text_of(run(b).outcome), "exited");
}

TEST(ToyPrimitives, HeapNumbersDoNotDependOnTheSchedule) {
  ToyBuilder b;
  b.shared("a", {.size = 2})
      .thread("t", "p = alloc(1); a[id] = p; p[0] = id; p = alloc(1); p[0] = 5", {.copies = 2});
  ToyMachine machine(built(b));
  std::set<std::vector<int64_t>> handles;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(text_of(run(machine, randomly(seed)).outcome), "exited");
    handles.insert(machine.state().cells);
  }
  EXPECT_EQ(handles.size(), 1u);
}

TEST(ToyPrimitives, ObjectNumbersDoNotCollide) {
  std::set<uint64_t> numbers;
  size_t made = 0;
  const auto add = [&](ObjectId id) {
    EXPECT_GT(id.raw, 0u);
    EXPECT_LT(id.raw, uint64_t{1} << 47);
    numbers.insert(id.raw);
    ++made;
  };
  std::vector<AgentId> agents;
  for (uint32_t i = 0; i < 250; ++i) agents.push_back(initial(i));
  for (uint32_t i = 0; i < 10; ++i) agents.push_back(initial(i).child(i).child(3).child(4).child(5).child(6));
  for (uint32_t i = 0; i < 10; ++i) agents.push_back(initial(i).interrupt(i));
  for (AgentId agent : agents) {
    add(toy_agent(agent));
    add(toy_cpu(agent));
    for (uint32_t ordinal : {0u, 1u, 2047u, 2048u, 5000u}) {
      const ObjectId heap = toy_heap(agent, ordinal);
      add(heap);
      for (uint32_t cell : {0u, 1u, kToyMaxHeapCells - 1}) add(toy_heap_cell(heap, cell));
    }
  }
  for (uint32_t i = 0; i < 1000; ++i) {
    add(toy_cell(i));
    add(toy_sync(i));
    add(toy_interrupt(i));
    add(toy_timer(i));
  }
  EXPECT_EQ(numbers.size(), made);
}

TEST(ToyPrimitives, ChooseIsADataChoice) {
  ToyBuilder b;
  b.shared("x").thread("t", "x = 1; r = choose(3); x = r; r = choose(1)").final_check("x != 1", "one");
  EXPECT_EQ(every_interleaving(b), (Outcomes{{"exited", 2}, {"assertion: final check: one", 1}}));
  const Execution result = run(b, scripted({{initial(0), 0}, {initial(0), 0}, {initial(0), 2}}));
  EXPECT_EQ(result.lines.at(1), "1 t choose value=2");
  EXPECT_EQ(result.lines.at(2), "2 t store x 2 w");
  EXPECT_EQ(result.lines.at(3), "3 t choose");  // one possible value: no choice point
}

TEST(ToyPrimitives, FinalCheck) {
  ToyBuilder b;
  b.shared("a", {.size = 2}).thread("t", "a[1] = 4");
  EXPECT_EQ(text_of(run(ToyBuilder(b).final_check("a[0] + a[1] == 4")).outcome), "exited");
  const Execution bad = run(ToyBuilder(b).final_check("a[1] == 5 && 1"));
  EXPECT_EQ(text_of(bad.outcome), "assertion: final check: a[1] == 5 && 1");
  EXPECT_FALSE(std::get<Faulted>(bad.outcome).agent);
  EXPECT_EQ(text_of(run(ToyBuilder(b).final_check("a[a[1]] == 5")).outcome),
            "crash: final check: index 4 is out of range: there are 2 elements");
}

}  // namespace
}  // namespace slalom::test
