// Choice points, policies, forecasts, data choices, limits: the contract between the machine and a search.
#include "unit/toy/toy_support.h"

namespace slalom::test {
namespace {

using Where = ChoicePolicy::Where;

Inputs with(Where where, std::vector<Place> places = {}) {
  Inputs inputs;
  inputs.policy.where = where;
  inputs.policy.places = std::move(places);
  return inputs;
}

// Resumes and expects a choice point.
ChoicePoint next(ToyMachine& machine, Decision decision) {
  const Stop stop = machine.resume(decision);
  const auto* point = std::get_if<ChoicePoint>(&stop);
  EXPECT_NE(point, nullptr) << text_of(std::get<Outcome>(stop));
  return point ? *point : ChoicePoint{};
}

// A machine at its first choice point.
struct Started {
  explicit Started(const ToyBuilder& builder, Inputs inputs = {})
      : machine(built(builder)), recorder(machine.names()) {
    EXPECT_TRUE(machine.reset(inputs).ok());
    const Stop stop = machine.start(recorder);
    const auto* at = std::get_if<ChoicePoint>(&stop);
    EXPECT_NE(at, nullptr);
    if (at) point = *at;
  }
  ToyMachine machine;
  Recorder recorder;
  ChoicePoint point;
};

std::vector<std::string> described(ToyMachine& machine, const ChoicePoint& point) {
  std::vector<std::string> result;
  for (const Option& option : point.options())
    result.push_back(fmt::format("{} {} {} {}", machine.names().agent(option.agent), name(option.op.kind),
                                 option.op.object.raw ? machine.names().object(option.op.object) : "-",
                                 machine.names().place(option.op.pc)));
  return result;
}

// Returns the kinds of all choice points of an execution that switches only if it must.
std::string kinds_met(const ToyBuilder& builder, Inputs inputs = {}, uint32_t keep = 0) {
  std::string kinds;
  run(
      builder,
      [&](const ChoicePoint& point) {
        kinds += "SRYBED"[static_cast<int>(point.kind)];
        Decision decision = go_on(point);
        decision.forecast.keep = keep;
        return decision;
      },
      inputs);
  return kinds;
}

TEST(ToyMachine, OptionsShowThePendingOperationOfEveryEnabledAgent) {
  ToyBuilder b;
  b.shared("a", {.size = 4}).sync("m", ToySyncKind::Mutex);
  b.thread("t", "i = id + 1\nlock m\na[i] = a[i+1]\nunlock m", {.copies = 2}).thread("y", "yield");
  Started s(b);
  EXPECT_EQ(s.point.kind, ChoiceKind::Start);
  EXPECT_FALSE(s.point.current);
  EXPECT_EQ(described(s.machine, s.point),
            (std::vector<std::string>{"t#0 lock m t:2", "t#1 lock m t:2", "y yield - y:1"}));
  const ChoicePoint after = next(s.machine, {initial(1)});
  EXPECT_EQ(after.kind, ChoiceKind::Running);
  EXPECT_EQ(after.current, initial(1));
  EXPECT_EQ(after.current_ops, 1u);
  EXPECT_EQ(after.position.raw, 1u);
  EXPECT_EQ(described(s.machine, after), (std::vector<std::string>{"t#1 load a[3] t:3", "y yield - y:1"}));
  EXPECT_EQ(described(s.machine, next(s.machine, {initial(1)})),
            (std::vector<std::string>{"t#1 store a[2] t:3", "y yield - y:1"}));
}

TEST(ToyMachine, KindsOfChoicePoints) {
  ToyBuilder b;
  b.shared("x").sync("m", ToySyncKind::Mutex);
  b.thread("t", "x = 1; yield; x = 2; lock m; x = choose(2); lock m").thread("u", "x = 3");
  EXPECT_EQ(kinds_met(b), "SRYRRDRB");
  EXPECT_EQ(kinds_met(b, with(Where::Sync)), "SRYRRDB");
  EXPECT_EQ(kinds_met(b, with(Where::Nowhere)), "SYDB");
}

TEST(ToyMachine, PoliciesAndPlaces) {
  ToyBuilder b;
  b.shared("x").shared("f", {.atomic = true}).sync("m", ToySyncKind::Mutex);
  b.thread("t", "x = 1\nf = 1\nx = 2\nlock m\np = alloc(1)\np[0] = 1\nunlock m\nx = 3");
  // One choice point per operation; the first one is the start.
  EXPECT_EQ(kinds_met(b), "SRRRRRRR");
  EXPECT_EQ(kinds_met(b, with(Where::Sync)), "SRRRR");  // f, lock, alloc, unlock
  EXPECT_EQ(kinds_met(b, with(Where::Nowhere)), "S");

  // Places: the stores of lines 3 and 8, whatever their instructions are.
  std::vector<Place> places;
  Started s(b);
  for (ChoicePoint point = s.point; point.position.raw < 7; point = next(s.machine, {initial(0)}))
    if (point.position.raw == 2 || point.position.raw == 6) places.push_back(point.options()[0].op.pc);
  EXPECT_EQ(s.machine.names().place(places[0]), "t:3");
  EXPECT_EQ(kinds_met(b, with(Where::Nowhere, places)), "SRR");
}

// The numbers of interleavings: n parts of one thread and m of the other have (n + m)! / (n! m!) orders.
TEST(ToyMachine, WatchedAccesses) {
  ToyBuilder b;
  b.shared("x").shared("y").shared("f", {.atomic = true});
  b.thread("a", "y = 1; r = x; x = r; r = cas(f, 0, 1)").thread("b", "y = 2; r = x; x = r; r = cas(f, 0, 2)");
  const uint64_t x = toy_cell(0).raw, f = toy_cell(2).raw;
  const auto orders = [&](std::vector<ChoicePolicy::WatchedAccess> accesses, Where where = Where::Nowhere) {
    Inputs inputs = with(where);
    inputs.policy.accesses = std::move(accesses);
    return every_interleaving(b, inputs)["exited"];
  };
  EXPECT_EQ(orders({}), 2u);
  EXPECT_EQ(orders({{.first = x, .last = x}}), 20u);
  EXPECT_EQ(orders({{.first = x, .last = x, .reads = false}}), 6u);
  EXPECT_EQ(orders({{.first = x, .last = x, .writes = false}}), 6u);
  EXPECT_EQ(orders({{.first = x, .last = x, .reads = false, .writes = false}}), 2u);
  // An exchange both reads and writes.
  EXPECT_EQ(orders({{.first = f, .last = f, .reads = false}}), 6u);
  EXPECT_EQ(orders({{.first = f, .last = f, .writes = false}}), 6u);
  EXPECT_EQ(orders({{.first = x, .last = x}, {.first = f, .last = f}}), 70u);
  // Under Sync, the exchange is a choice point already; everywhere, all are.
  EXPECT_EQ(orders({}, Where::Sync), 6u);
  EXPECT_EQ(orders({{.first = f, .last = f}}, Where::Sync), 6u);
  EXPECT_EQ(orders({{.first = x, .last = x}}, Where::Sync), 70u);
  EXPECT_EQ(orders({{.first = x, .last = x}}, Where::Everywhere), 70u);

  // Only what one instruction does: the store of x in thread a.
  Started s(b);
  ChoicePoint point = s.point;
  for (int i = 0; i < 2; ++i) point = next(s.machine, {initial(0)});
  const Place store = point.options()[0].op.pc;
  ASSERT_EQ(point.options()[0].op.kind, OpKind::Store);
  EXPECT_EQ(orders({{.place = store}}), 3u);
  EXPECT_EQ(orders({{.place = store, .first = x, .last = x, .reads = false}}), 3u);
  EXPECT_EQ(orders({{.place = store, .first = f, .last = f}}), 2u);
}

TEST(ToyMachine, StopsAtTheAgentsOwnCount) {
  ToyBuilder b;
  b.shared("x").thread("t", "for i in 0..10 { x = i }", {.copies = 2});
  Inputs inputs;
  inputs.policy.where = Where::Nowhere;
  inputs.policy.stops = {{initial(0), 3}, {initial(0), 7}, {initial(1), 0}, {initial(1), 2}};
  std::vector<std::pair<uint64_t, uint64_t>> met;
  run(
      b,
      [&](const ChoicePoint& point) {
        met.emplace_back(point.current == initial(0) ? 0 : 1, point.current_ops);
        return Decision{.next = go_on(point).next, .forecast = {.keep = 1000}};  // passes no stop
      },
      inputs);
  EXPECT_EQ(met, (std::vector<std::pair<uint64_t, uint64_t>>{{1, 0}, {0, 3}, {0, 7}, {0, 10}, {1, 2}}));
}

TEST(ToyMachine, KeptAgentPassesRunningChoicePointsOnly) {
  ToyBuilder b;
  b.shared("x").thread("t", "for i in 0..10 { x = i }").thread("u", "x = 1");
  Started s(b);
  const auto keep = [&](uint32_t count) {
    return next(s.machine, {.next = initial(0), .forecast = {.keep = count}});
  };
  const auto met = [&](uint32_t count) {
    const ChoicePoint point = keep(count);
    return std::pair(point.current_ops, point.passed);
  };
  EXPECT_EQ(met(0), std::pair(uint64_t{1}, 0u));
  EXPECT_EQ(met(1), std::pair(uint64_t{3}, 1u));
  EXPECT_EQ(met(3), std::pair(uint64_t{7}, 3u));
  const ChoicePoint end = keep(100);
  EXPECT_EQ(end.current_ops, 10u);
  EXPECT_EQ(end.passed, 2u);
  EXPECT_EQ(end.kind, ChoiceKind::Ended);
}

TEST(ToyMachine, ForecastsEndEarly) {
  ToyBuilder b;
  b.shared("x").sync("m", ToySyncKind::Mutex);
  b.thread("t",
           "x = 1; x = 1; yield; x = 1; x = choose(2); x = 1; lock m; x = 1; unlock m; x = 1; lock m; x = 1");
  b.thread("u", "lock m");
  Started s(b);
  const auto kept = [&](uint32_t value) {
    const ChoicePoint point =
        next(s.machine, {.next = initial(0), .value = value, .forecast = {.keep = 100}});
    return std::pair(point.current_ops, point.kind);
  };
  EXPECT_EQ(kept(0), std::pair(uint64_t{3}, ChoiceKind::Yielded));
  EXPECT_EQ(kept(0), std::pair(uint64_t{4}, ChoiceKind::Data));
  EXPECT_EQ(kept(1), std::pair(uint64_t{8}, ChoiceKind::Running));   // u cannot run any more
  EXPECT_EQ(kept(0), std::pair(uint64_t{10}, ChoiceKind::Running));  // u can run again
  EXPECT_EQ(kept(0), std::pair(uint64_t{12}, ChoiceKind::Running));
}

TEST(ToyMachine, AForecastIsOnlyAShortcut) {
  ToyBuilder b;
  b.shared("x")
      .sync("m", ToySyncKind::Mutex)
      .thread("t", "for i in 0..4 { lock m; x = x + 1; unlock m; yield }", {.copies = 3});
  const Execution plain = run(b, go_on);
  const Execution kept = run(b, [](const ChoicePoint& point) {
    return Decision{.next = go_on(point).next, .forecast = {.keep = 5}};
  });
  EXPECT_EQ(plain.lines, kept.lines);
  EXPECT_EQ(plain.hash, kept.hash);
}

TEST(ToyMachine, DataChoicePoint) {
  ToyBuilder b;
  b.shared("x").thread("t", "x = 1; x = choose(4)");
  Started s(b);
  next(s.machine, {initial(0)});
  const ChoicePoint data = next(s.machine, {initial(0)});
  EXPECT_EQ(data.kind, ChoiceKind::Data);
  EXPECT_EQ(data.arity, 4u);
  EXPECT_EQ(data.current, initial(0));
  EXPECT_EQ(data.current_ops, 1u);
  EXPECT_EQ(data.position.raw, 1u);
  EXPECT_EQ(next(s.machine, {initial(0), 3}).current_ops, 2u);
  EXPECT_EQ(s.recorder.lines, (std::vector<std::string>{"0 t store x 1 w", "1 t choose value=3"}));
}

TEST(ToyMachine, DecisionsThatCannotBeAreToolErrors) {
  ToyBuilder b;
  b.shared("x").sync("m", ToySyncKind::Mutex).thread("t", "lock m; x = choose(2)", {.copies = 2});
  {
    Started s(b);
    next(s.machine, {initial(0)});
    EXPECT_EQ(text_of(std::get<Outcome>(s.machine.resume({initial(1)}))),
              "tool error: the decision is to run t#1, which cannot run at step 1");
    EXPECT_EQ(s.recorder.ends, 1);
    EXPECT_TRUE(text_of(std::get<Outcome>(s.machine.resume({initial(0)})))
                    .starts_with("tool error: resume() without"));
  }
  {
    Started s(b);
    EXPECT_TRUE(text_of(std::get<Outcome>(s.machine.resume({initial(7)})))
                    .starts_with("tool error: the decision is to run"));
  }
  for (const Decision wrong : {Decision{initial(0), 2}, Decision{initial(1), 0}}) {
    Started s(b);
    next(s.machine, {initial(0)});
    next(s.machine, {initial(0)});
    EXPECT_TRUE(text_of(std::get<Outcome>(s.machine.resume(wrong))).starts_with("tool error: "));
  }
}

TEST(ToyMachine, InvisibleCodeBelongsToTheOperationBefore) {
  ToyBuilder b;
  b.shared("x").thread("t", "note \"prologue\"\nx = 1\nnote \"after\"\nx = 2").thread("u", "note \"only\"");
  Started s(b);
  EXPECT_EQ(s.recorder.lines, (std::vector<std::string>{"0 t note \"prologue\"", "0 u note \"only\"",
                                                        "0 u exit u state=0 other=u"}));
  s.recorder.lines.clear();
  EXPECT_EQ(s.point.options().size(), 1u);
  next(s.machine, {initial(0)});
  EXPECT_EQ(s.recorder.lines, (std::vector<std::string>{"0 t store x 1 w", "0 t note \"after\""}));
}

TEST(ToyMachine, NothingVisibleAtAll) {
  EXPECT_EQ(text_of(run(ToyBuilder().thread("t", "note \"a\"")).outcome), "exited");
  EXPECT_EQ(text_of(run(ToyBuilder().thread("t", "assert 0")).outcome), "assertion: 0");
  EXPECT_EQ(text_of(run(ToyBuilder()).outcome), "exited");
}

TEST(ToyMachine, StepLimit) {
  ToyBuilder b;
  b.shared("x").thread("t", "while 1 { x = 1 }").thread("u", "x = 2").thread("v", "x = 3");
  const Execution result = run(b, go_on, {.policy = {}, .max_steps = 50});
  const auto& limit = std::get<LimitReached>(result.outcome);
  EXPECT_EQ(limit.steps, 50u);
  EXPECT_EQ(limit.enabled, (std::vector{initial(0), initial(1), initial(2)}));
  EXPECT_EQ(result.lines.size(), 50u);
  ToyBuilder exact;
  exact.shared("x").thread("t", "for i in 0..50 { x = 1 }");
  EXPECT_EQ(text_of(run(exact, go_on, {.policy = {}, .max_steps = 50}).outcome), "exited");
  EXPECT_EQ(text_of(run(exact, go_on, {.policy = {}, .max_steps = 49}).outcome), "limit");
}

TEST(ToyMachine, RunawayInvisibleLoopsReachTheLimit) {
  for (const std::string code :
       {"while 1 { }", "x = 1; while 1 { r = 1 }", "spawn u; yield", "arrive b; while 1 { }"}) {
    ToyBuilder b;
    b.shared("x").sync("b", ToySyncKind::Barrier, {.count = 1});
    b.thread("t", code).thread("u", "again: goto again", {.start = false});
    EXPECT_EQ(text_of(run(b, go_on, {.policy = {}, .max_steps = 20}).outcome), "limit") << code;
  }
}

TEST(ToyMachine, PersistentCellsSurviveReset) {
  ToyBuilder b;
  b.shared("warm", {.persistent = true}).shared("cold").thread("t", "warm = warm + 1; cold = cold + 1");
  ToyMachine machine(built(b));
  for (int64_t i = 1; i <= 3; ++i) {
    run(machine, go_on);
    EXPECT_EQ(machine.state().cells, (std::vector<int64_t>{i, 1}));
  }
}

TEST(ToyMachine, DigestTellsChoicePointsApart) {
  ToyBuilder b;
  b.shared("x").sync("m", ToySyncKind::Mutex).thread("t", "lock m; x = 1; unlock m", {.copies = 3});
  Started s(b);
  std::set<uint64_t> digests = {s.point.digest};
  const uint64_t first = next(s.machine, {initial(0)}).digest;
  digests.insert(first);
  digests.insert(next(s.machine, {initial(0)}).digest);
  digests.insert(next(s.machine, {initial(0)}).digest);
  digests.insert(next(s.machine, {initial(1)}).digest);
  EXPECT_EQ(digests.size(), 5u);
  Started again(b);
  EXPECT_EQ(again.point.digest, s.point.digest);
  EXPECT_EQ(next(again.machine, {initial(0)}).digest, first);
}

TEST(ToyMachine, StateHashIsOfWhatTheTargetSees) {
  ToyBuilder b;
  b.shared("x").shared("y").thread("main", "spawn child; x = 1; x = 0; yield", {.copies = 2});
  b.thread("child", "y = 1; y = 0", {.start = false});
  const auto hash_after = [&](std::vector<AgentId> agents) {
    Started s(b);
    for (AgentId agent : agents) next(s.machine, {agent});
    return s.machine.state_hash();
  };
  const AgentId a = initial(0), c = initial(1);
  EXPECT_EQ(hash_after({a, c}), hash_after({c, a}));  // independent of which one spawned first
  EXPECT_EQ(hash_after({a, c, a.child(0)}), hash_after({c, a, a.child(0)}));
  EXPECT_NE(hash_after({a, c, a.child(0)}), hash_after({a, c, c.child(0)}));
  EXPECT_NE(hash_after({a}), hash_after({c}));
  EXPECT_NE(hash_after({a, a}), hash_after({a, a, a}));
}

TEST(ToyMachine, SnapshotsCanBeOff) {
  ToyBuilder b;
  b.shared("x").thread("t", "x = 1");
  ToyMachine machine(built(b), ToyMachine::SnapshotMode::Off);
  EXPECT_EQ(machine.snapshots(), nullptr);
}

TEST(ToyMachine, SnapshotSlotsAreReused) {
  ToyBuilder b;
  b.shared("x").thread("t", "x = 1; x = 2");
  Started s(b);
  Snapshots& snapshots = *s.machine.snapshots();
  const Snapshots::Id first = snapshots.take();
  const Snapshots::Id second = snapshots.take();
  EXPECT_NE(first, second);
  snapshots.drop(first);
  EXPECT_THROW(snapshots.restore(first), InternalError);
  EXPECT_EQ(snapshots.take(), first);
  finish(s.machine, s.machine.resume({initial(0)}), go_on);
  EXPECT_THROW(snapshots.take(), InternalError);  // the execution is over
  EXPECT_TRUE(s.machine.reset({}).ok());
  EXPECT_EQ(std::get<ChoicePoint>(snapshots.restore(second)).kind, ChoiceKind::Start);
}

}  // namespace
}  // namespace slalom::test
