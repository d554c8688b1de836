// A search that is saved at any moment, and continues in new objects, ends as if it had not been interrupted.
#include "unit/explore/under_test.h"

namespace slalom {
namespace {

// One run of a search: continues from `state` if there is one, and stops after `rounds` rounds or `schedules`
// executions in all.
struct Sitting {
  uint64_t rounds = UINT64_MAX;
  uint64_t schedules = 0;
};
struct Sat {
  ExploreResult result;
  std::vector<uint8_t> state;
};

Sat sit(const Program& program, const StrategyKind& kind, Sitting sitting,
        const std::vector<uint8_t>& state = {}) {
  const std::unique_ptr<Strategy> strategy = kind.make();
  ExploreOptions options;
  options.schedules = sitting.schedules;
  Explorer explorer(*strategy, toy_workers(program), options);
  if (!state.empty()) {
    ByteReader in(state);
    EXPECT_TRUE(explorer.load(in));
    EXPECT_TRUE(in.at_end());
  }
  Sat sat;
  uint64_t rounds = 0;
  explorer.on_round = [&](const ExploreResult&) { return rounds++ < sitting.rounds; };
  explorer.on_pause = [&] {
    ByteWriter out;
    explorer.save(out);
    sat.state = out.take();
  };
  sat.result = explorer.run().value();
  EXPECT_FALSE(sat.state.empty());
  return sat;
}

constexpr uint64_t kSampled = 300;

uint64_t limit(const StrategyKind& kind) {
  return kind.ends ? 0 : kSampled;
}

// Programs of every flavour, large enough for several rounds.
std::vector<Program> programs() {
  std::vector<Program> programs = {example("readers", {{"n", 8}}), example("lastzero", {{"n", 5}})};
  ToyBuilder b;
  b.shared("x").shared("f", {.atomic = true}).sync("m", ToySyncKind::Mutex).sync("c", ToySyncKind::Condvar);
  b.thread("waiter", "lock m\nif x == 0 {\nwait c m\n}\nunlock m\nr = cas(f, 0, 1)");
  b.thread("setter", "x = 1\nsignal c\nr = choose(2)\nf = r");
  b.thread("third", "r = cas(f, 1, 2)\nassert x == 0 || r == 0");
  programs.push_back(built(b));
  for (const uint64_t seed : {5, 21, 33}) programs.push_back(built(ProgramGenerator(seed).make(9).builder));
  return programs;
}

TEST(Resume, AfterAnyNumberOfRounds) {
  uint64_t stops = 0;
  for (const Program& program : programs()) {
    for (const StrategyKind& kind : all_kinds()) {
      SCOPED_TRACE(kind.name + ", " + program->name);
      if (HasFailure()) return;
      const Sitting whole{.schedules = kind.ends ? 600 : kSampled};
      const ExploreResult expected = sit(program, kind, whole).result;
      const uint64_t rounds = expected.tasks / 64 + 2;
      for (uint64_t r = 0; r < rounds; ++r) {
        const Sat part = sit(program, kind, {.rounds = r, .schedules = whole.schedules});
        if (part.result.end == ExploreResult::End::Interrupted) ++stops;
        expect_same(sit(program, kind, whole, part.state).result, expected);
      }
    }
  }
  EXPECT_GT(stops, 200u);
}

TEST(Resume, AfterEveryRound) {
  for (const Program& program : programs()) {
    for (const StrategyKind& kind : all_kinds()) {
      SCOPED_TRACE(kind.name + ", " + program->name);
      if (HasFailure()) return;
      const uint64_t schedules = kind.ends ? 600 : kSampled;
      const ExploreResult expected = sit(program, kind, {.schedules = schedules}).result;
      Sat at = sit(program, kind, {.rounds = 0, .schedules = schedules});
      for (int i = 0; i < 1000 && at.result.end == ExploreResult::End::Interrupted; ++i)
        at = sit(program, kind, {.rounds = 1, .schedules = schedules}, at.state);
      expect_same(at.result, expected);
    }
  }
}

// A limit may cut a round anywhere. A later run with a higher limit makes the same executions as a single
// run.
TEST(Resume, WhereALimitCutARound) {
  for (const Program& program : programs()) {
    for (const StrategyKind& kind : all_kinds()) {
      SCOPED_TRACE(kind.name + ", " + program->name);
      if (HasFailure()) return;
      const Sitting whole{.schedules = 250};
      const ExploreResult expected = sit(program, kind, whole).result;
      for (const uint64_t first : {1, 2, 63, 65, 100, 191}) {
        SCOPED_TRACE(first);
        const Sat part = sit(program, kind, {.schedules = first});
        EXPECT_EQ(part.result.tasks, std::min(first, expected.tasks));
        const ExploreResult result = sit(program, kind, whole, part.state).result;
        // The second half of a round knows what the first half has put into the cache, and may have less to
        // do. A portfolio asks another arm if one waits for the rest of a round.
        if (kind.name != "dfs with cache" && kind.name != "portfolio") {
          expect_same(result, expected);
        } else if (expected.coverage.exhausted) {
          EXPECT_EQ(result.classes, expected.classes);
        }
      }
    }
  }
}

// The size of a round depends on saved counts.
TEST(Resume, WhereALimitCutALargeRound) {
  for (const auto& [kind, program] : long_searches()) {
    if (kind.name == "dfs with cache") continue;  // see above
    SCOPED_TRACE(kind.name);
    const ExploreResult expected = sit(program, kind, {}).result;
    for (const uint64_t first : {500, 1023, 1501}) {
      SCOPED_TRACE(first);
      ASSERT_GT(expected.tasks, first);
      const Sat part = sit(program, kind, {.schedules = first});
      expect_same(sit(program, kind, {}, part.state).result, expected);
    }
  }
}

bool loads(const StrategyKind& kind, const Program& program, std::span<const uint8_t> state) {
  const std::unique_ptr<Strategy> strategy = kind.make();
  Explorer explorer(*strategy, toy_workers(program), {});
  ByteReader in(state);
  return explorer.load(in) && in.at_end();
}

// Files have a checksum. This test covers damage that passes it.
TEST(Resume, DamagedStateNeitherCrashesNorPasses) {
  const Program program = programs()[2];
  for (const StrategyKind& kind : all_kinds()) {
    SCOPED_TRACE(kind.name);
    const std::vector<uint8_t> state = sit(program, kind, {.rounds = 2, .schedules = limit(kind)}).state;
    ASSERT_TRUE(loads(kind, program, state));
    const size_t stride = 1 + state.size() / 400;
    for (size_t length = 0; length < state.size(); length += stride)
      EXPECT_FALSE(loads(kind, program, std::span(state).first(length))) << length << " bytes";
    std::vector<uint8_t> longer = state;
    longer.push_back(0);
    EXPECT_FALSE(loads(kind, program, longer));
    size_t rejected = 0;
    for (size_t at = 0; at < state.size(); at += stride) {
      std::vector<uint8_t> huge = state;  // a number that is too large for any count
      const uint8_t bytes[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
      huge[at] |= 0x80;
      huge.insert(huge.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::begin(bytes), std::end(bytes));
      rejected += !loads(kind, program, huge);
      for (const uint8_t mask : {0x01, 0x10, 0x80, 0xff}) {
        std::vector<uint8_t> other = state;
        other[at] ^= mask;
        rejected += !loads(kind, program, other);
      }
    }
    EXPECT_GT(rejected, 0u);
  }
}

// Each node claims as many children as bytes are left, over and over. Memory must grow only with the bytes.
TEST(Resume, NestedCountsDoNotMultiply) {
  ByteWriter out;
  out.u8(1);
  for (int i = 0; i < 4000; ++i) {
    encode(out, AgentId::initial(0));
    out.u64(0);  // values
    out.u64(0);  // touches
    out.fixed64(0);
    out.u64(0);  // cost
    out.u8(3);   // executed
    out.u8(0);
    out.u8(0);
    out.u64(16 * static_cast<uint64_t>(4000 - i) - 100 * (i < 3900));  // children
  }
  WakeupTree tree;
  ByteReader in(out.bytes());
  EXPECT_FALSE(tree.load(in));
}

}  // namespace
}  // namespace slalom
