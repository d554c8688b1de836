// Properties of every execution, checked on a program that uses every primitive and on random programs: the
// machine agrees with trace/op.h about which agents can run, executions are deterministic, and a checkpoint
// restores everything.
#include "unit/toy/toy_support.h"

namespace slalom::test {
namespace {

ToyBuilder everything() {
  ToyBuilder b;
  b.shared("x").shared("f", {.atomic = true}).shared("a", {.size = 3});
  b.sync("m", ToySyncKind::Mutex).sync("l", ToySyncKind::Mutex, {.size = 2}).sync("rw", ToySyncKind::RwLock);
  b.sync("c", ToySyncKind::Condvar).sync("s", ToySyncKind::Semaphore, {.count = 1});
  b.sync("b", ToySyncKind::Barrier, {.count = 3});
  b.thread("worker", R"(
    lock m
    x = x + 1
    if x < 3 { wait c m } else { broadcast c }
    unlock m
    arrive b
    mask
    r = choose(3)
    unmask
    down s
    a[r] = a[r] + 1
    up s
    if trylock(l[id % 2]) { yield; unlock l[id % 2] }
    rdlock rw; f = f + 1; rdunlock rw
    signal c
  )",
           {.copies = 3});
  b.thread("parent", R"(
    h = spawn(child, 4)
    spawn child
    arm t
    raise tick
    wrlock rw
    p = alloc(2)
    p[0] = 1
    q = p[1] + xchg(x, 9) + fetch_add(x, -9)
    wrunlock rw
    cancel t
    join child
    join(h)
    free(p)
    join worker#1
  )");
  b.thread("child", "lock l[0]; lock l[1]; r = cas(f, 0, 7); unlock l[1]; unlock l[0]", {.start = false});
  b.interrupt("tick", "worker", "lock l[1]; x = x; unlock l[1]", 1);
  b.interrupt("tock", "worker#2", "up s; down s", 2);
  b.timer("t", "f = 1; down s; up s");
  return b;
}

// Computes every object's state from the events alone.
class StateModel : public EventSink {
 public:
  explicit StateModel(const ToyProgram& program) {
    for (const ToySyncObject& object : program.sync)
      if (object.kind == ToySyncKind::Semaphore) states_[toy_sync(object.first)] = object.count;
    for (uint32_t i = 0; i < program.blocks.size(); ++i)
      if (program.blocks[i].kind == ToyBlock::Kind::Interrupt)
        states_[toy_interrupt(i)] = program.blocks[i].pending;
  }
  void on_accesses(std::span<const Access>, const BatchHeader&) override {}
  void on_event(const Event& event) override {
    if (event.object.raw == 0 || event.op == OpKind::Wake || event.op == OpKind::HeapUse ||
        event.op == OpKind::Alloc || event.op == OpKind::Free)
      return;
    EXPECT_EQ(event.state, states_[event.object]) << name(event.op);
    if (event.op != OpKind::TryLock || event.value != 0)
      states_[event.object] = state_after(event.op, event.state);
    EXPECT_TRUE(can_run(event.op, event.state)) << name(event.op);
  }
  void on_end(const Outcome&) override {}
  uint64_t operator[](ObjectId object) { return states_[object]; }

 private:
  std::map<ObjectId, uint64_t> states_;
};

void check_enabled(const ToyMachine& machine, StateModel& model) {
  const auto& agents = machine.state().agents;
  for (uint32_t i = 0; i < agents.size(); ++i) {
    const ToyAgent& agent = agents[i];
    if (agent.status == ToyAgent::Status::Idle && agent.interrupts != kNoToyIndex &&
        !can_run(OpKind::IrqTake, model[toy_interrupt(agent.block)])) {
      EXPECT_FALSE(agent.enabled);
    } else if (agent.status == ToyAgent::Status::Idle || agent.status == ToyAgent::Status::Ready) {
      const PendingOp op = machine.pending(i);
      const bool expected =
          can_run(op.kind, model[op.object]) && can_run(OpKind::CpuUse, model[toy_cpu(agent.id)]);
      EXPECT_EQ(agent.enabled, expected) << machine.names().agent(agent.id) << " " << name(op.kind);
    } else {
      EXPECT_FALSE(agent.enabled);
    }
  }
}

TEST(ToyContract, WhoCanRunAgreesWithTheObjectStates) {
  const ToyProgram program = built(everything());
  ToyMachine machine(program);
  std::set<std::string> outcomes;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    StateModel model(program);
    ASSERT_TRUE(machine.reset({}).ok());
    Stop stop = machine.start(model);
    const Chooser choose = randomly(seed);
    while (const auto* point = std::get_if<ChoicePoint>(&stop)) {
      check_enabled(machine, model);
      size_t enabled = 0;
      for (const ToyAgent& agent : machine.state().agents) enabled += agent.enabled;
      ASSERT_EQ(point->options().size(), enabled);
      for (size_t i = 1; i < enabled; ++i)
        ASSERT_LT(point->options()[i - 1].agent, point->options()[i].agent);
      stop = machine.resume(choose(*point));
    }
    outcomes.insert(text_of(std::get<Outcome>(stop)));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_TRUE(outcomes.contains("exited"));
}

// Small programs with races, locks, loops, deadlocks and choices.
ToyBuilder random_program(uint64_t seed) {
  Rng rng(seed, 77);
  const std::vector<std::string> kStatements = {
      "x = x + 1",
      "r = a[r & 1]",
      "a[r & 1] = x",
      "lock m; y = r; unlock m",
      "if trylock(m) { x = y; unlock m }",
      "r = cas(y, 0, id + 1)",
      "r = choose(3)",
      "yield",
      "up s",
      "down s",
      "for i in 0..2 { y = i + r }",
      "if x > 1 { r = fetch_add(y, 2) } else { r = 1 }",
      "lock m; wait c m; unlock m",
      "signal c",
      "broadcast c",
      "rdlock rw; r = x; rdunlock rw",
      "wrlock rw; x = r; wrunlock rw",
      "spawn child",
      "p = alloc(2); p[r & 1] = x; free(p)",
      "arm t",
      "mask; x = 1; unmask",
      "assert r != 2",
  };
  ToyBuilder b("random");
  b.shared("x")
      .shared("y")
      .shared("a", {.size = 2})
      .sync("m", ToySyncKind::Mutex)
      .sync("c", ToySyncKind::Condvar);
  b.sync("s", ToySyncKind::Semaphore, {.count = 1}).sync("rw", ToySyncKind::RwLock);
  for (const char* name : {"one", "two", "three"}) {
    std::string code = "r = 0\n";
    for (uint64_t i = 2 + rng.below(5); i > 0; --i) code += kStatements[rng.below(kStatements.size())] + "\n";
    b.thread(name, code);
  }
  b.thread("child", "x = x * 2; signal c", {.start = false})
      .interrupt("tick", "two", "x = x + 5")
      .timer("t", "up s; y = 0");
  return b;
}

TEST(ToyContract, ExecutionsAreDeterministic) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const ToyBuilder b = random_program(seed);
    ToyMachine machine(built(b));
    const Execution first = run(machine, randomly(seed));
    const Execution second = run(machine, randomly(seed));  // reuses the machine
    const Execution third = run(b, randomly(seed));
    EXPECT_EQ(first.lines, second.lines);
    EXPECT_EQ(first.lines, third.lines);
    EXPECT_EQ(first.hash, second.hash);
    EXPECT_EQ(first.hash, third.hash);
    EXPECT_EQ(text_of(first.outcome), text_of(second.outcome));
    EXPECT_EQ(text_of(first.outcome), text_of(third.outcome));
  }
}

// At every choice point of an execution: run to the end, restore, and go on.
TEST(ToyContract, CheckpointsGiveEverythingBack) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    ToyMachine machine(built(seed % 4 == 0 ? everything() : random_program(seed)));
    Snapshots& snapshots = *machine.snapshots();
    Recorder recorder(machine.names());
    ASSERT_TRUE(machine.reset({}).ok());
    Stop stop = machine.start(recorder);
    const Chooser choose = randomly(seed);
    while (const auto* at = std::get_if<ChoicePoint>(&stop)) {
      const ChoicePoint point = *at;
      const ToyState state = machine.state();
      const uint64_t hash = machine.state_hash();
      const std::vector<std::string> before = recorder.lines;
      const Snapshots::Id here = snapshots.take();
      std::vector<std::string> ends;
      for (int i = 0; i < 2; ++i) {
        const ChoicePoint again = std::get<ChoicePoint>(snapshots.restore(here));
        ASSERT_EQ(again.digest, point.digest);
        ASSERT_EQ(again.position, point.position);
        ASSERT_EQ(again.kind, point.kind);
        ASSERT_EQ(again.current_ops, point.current_ops);
        ASSERT_EQ(again.arity, point.arity);
        ASSERT_TRUE(machine.state() == state);
        ASSERT_EQ(machine.state_hash(), hash);
        recorder.lines.clear();
        const Chooser rest = randomly(seed + 1000);
        const Outcome outcome = finish(machine, machine.resume(rest(again)), rest);
        ends.push_back(
            fmt::format("{} {} {}", fmt::join(recorder.lines, "\n"), text_of(outcome), machine.state_hash()));
      }
      ASSERT_EQ(ends[0], ends[1]);
      recorder.lines = before;
      stop = snapshots.restore(here);
      snapshots.drop(here);
      stop = machine.resume(choose(std::get<ChoicePoint>(stop)));
    }
    // The detours must leave no trace.
    ToyMachine straight(built(seed % 4 == 0 ? everything() : random_program(seed)));
    const Execution expected = run(straight, randomly(seed));
    EXPECT_EQ(recorder.lines, expected.lines);
    EXPECT_EQ(machine.state_hash(), expected.hash);
  }
}

}  // namespace
}  // namespace slalom::test
