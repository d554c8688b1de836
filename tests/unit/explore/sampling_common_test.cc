// Properties of every sampling strategy: the same results for any number of workers, after saving and
// loading, and for any division into rounds.
#include "explore/save.h"
#include "explore/strategies/pct.h"
#include "explore/strategies/portfolio.h"
#include "explore/strategies/pos.h"
#include "explore/strategies/random.h"
#include "explore/strategies/surw.h"
#include "round_robin.h"
#include "sampling_support.h"

namespace slalom::sampling {
namespace {

using Interesting = SurwOptions::Interesting;

struct Kind {
  const char* name;
  std::function<std::unique_ptr<Strategy>(uint64_t seed)> make;
  friend std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }
};

std::unique_ptr<Strategy> wide_portfolio(uint64_t seed) {
  auto arms = sampling_arms(seed);
  arms.push_back(std::make_unique<RoundRobin>(40));
  arms.push_back(std::make_unique<Surw>(SurwOptions{seed, Interesting::Alternate}));
  return std::make_unique<Portfolio>(std::move(arms));
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kinds = {
      {"random", [](uint64_t seed) { return std::make_unique<Random>(RandomOptions{seed}); }},
      {"random_stretch",
       [](uint64_t seed) {
         return std::make_unique<Random>(RandomOptions{seed, 4});
       }},
      {"pct",
       [](uint64_t seed) {
         return std::make_unique<Pct>(PctOptions{seed, 3});
       }},
      {"pct_given",
       [](uint64_t seed) {
         return std::make_unique<Pct>(PctOptions{seed, 2, 12});
       }},
      {"pos", [](uint64_t seed) { return std::make_unique<Pos>(PosOptions{seed}); }},
      {"surw", [](uint64_t seed) { return std::make_unique<Surw>(SurwOptions{seed}); }},
      {"surw_object",
       [](uint64_t seed) {
         return std::make_unique<Surw>(SurwOptions{seed, Interesting::OneObject});
       }},
      {"surw_alternate",
       [](uint64_t seed) {
         return std::make_unique<Surw>(SurwOptions{seed, Interesting::Alternate});
       }},
      {"portfolio", wide_portfolio},  // the last one
  };
  return kinds;
}

// Lengths vary, so there is something to learn. Values are chosen. Some executions fail, some deadlock.
Program program() {
  return build(
      ToyBuilder()
          .shared("x")
          .shared("y")
          .sync("m", ToySyncKind::Mutex)
          .sync("n", ToySyncKind::Mutex)
          .thread("a", "x = choose(3); for i in 0..x { y = y + 1 }; lock m; lock n; unlock n; unlock m")
          .thread("b", "h = spawn(c); lock n; lock m; x = x + 2; unlock m; unlock n; join(h); assert y < 3")
          .thread("c", "if y == 1 { x = 4; yield }; y = y + 1", {.start = false}));
}

struct Line {
  uint64_t index = 0;
  Hint hint;
  Schedule schedule;
  bool operator==(const Line&) const = default;
};
using Log = std::vector<Line>;

OnExecution into(Log& log) {
  return [&log](const Task& task, const Execution& execution) {
    log.push_back({task.index, task.hint, execution.schedule});
  };
}

class SamplingCommon : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(All, SamplingCommon, testing::ValuesIn(kinds()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(SamplingCommon, TheSameOnOneAndTwoWorkers) {
  Log logs[2];
  ExploreResult results[2];
  for (unsigned workers : {1, 2}) {
    const auto strategy = GetParam().make(5);
    results[workers - 1] = explore(*strategy, program(), 500, into(logs[workers - 1]), workers);
  }
  EXPECT_TRUE(logs[0] == logs[1]);
  EXPECT_EQ(results[0].tasks, 500u);
  EXPECT_EQ(results[0].classes, results[1].classes);
  EXPECT_EQ(results[0].positions, results[1].positions);
  EXPECT_EQ(results[0].coverage.statement, results[1].coverage.statement);
  ASSERT_EQ(results[0].found.size(), results[1].found.size());
  EXPECT_EQ(results[0].found.size(), 2u);  // the assertion and the deadlock
  for (size_t i = 0; i < results[0].found.size(); ++i) {
    EXPECT_EQ(results[0].found[i].verdict, results[1].found[i].verdict);
    EXPECT_EQ(results[0].found[i].execution, results[1].found[i].execution);
    EXPECT_EQ(results[0].found[i].occurrences, results[1].found[i].occurrences);
    EXPECT_EQ(results[0].found[i].schedule, results[1].found[i].schedule);
  }
}

TEST_P(SamplingCommon, SeedsMatter) {
  Log first, second;
  explore(*GetParam().make(1), program(), 100, into(first));
  explore(*GetParam().make(2), program(), 100, into(second));
  EXPECT_FALSE(first == second);
}

// Returns a strategy that continues from the state in `saved`.
std::unique_ptr<Strategy> loaded(const Kind& kind, const ByteWriter& saved) {
  auto strategy = kind.make(5);
  ByteReader reader(saved.bytes());
  EXPECT_TRUE(strategy->load(reader));
  EXPECT_TRUE(reader.at_end());
  return strategy;
}

TEST_P(SamplingCommon, SavedAndLoadedItGoesOnAsIfNothingHadHappened) {
  Log whole;
  const auto uninterrupted = GetParam().make(5);
  explore(*uninterrupted, program(), 400, into(whole));
  for (uint64_t rounds = 0; rounds < 8; ++rounds) {
    Log parts;
    const auto before = GetParam().make(5);
    Explorer explorer(*before, factory(program()), ExploreOptions{});
    explorer.on_execution = into(parts);
    uint64_t left = rounds;
    explorer.on_round = [&](const ExploreResult&) { return left-- > 0; };
    ASSERT_TRUE(explorer.run().ok());
    ByteWriter saved;
    before->save(saved);
    const auto after = loaded(GetParam(), saved);
    EXPECT_EQ(after->coverage().statement, before->coverage().statement);
    explore(*after, program(), 400 - parts.size(), into(parts));
    EXPECT_TRUE(parts == whole) << "interrupted after " << rounds << " rounds";
    ByteWriter end, expected_end;
    after->save(end);
    uninterrupted->save(expected_end);
    EXPECT_TRUE(end.bytes() == expected_end.bytes());
  }
}

// Also holds if a limit stops the search in the middle of a round. Not for the portfolio: its next arm
// depends on which arms wait, and so on the rounds.
class SamplingRounds : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(All, SamplingRounds, testing::ValuesIn(kinds().begin(), kinds().end() - 1),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(SamplingRounds, WhereTheyEndMakesNoDifference) {
  Log whole;
  explore(*GetParam().make(5), program(), 300, into(whole));
  for (uint64_t at : {1, 30, 64, 100, 257}) {
    Log parts;
    const auto before = GetParam().make(5);
    explore(*before, program(), at, into(parts));
    ByteWriter saved;
    before->save(saved);
    explore(*loaded(GetParam(), saved), program(), 300 - at, into(parts));
    EXPECT_TRUE(parts == whole) << "interrupted after " << at;
  }
}

TEST_P(SamplingCommon, DoesNotLoadHalfAState) {
  const auto strategy = GetParam().make(5);
  explore(*strategy, program(), 100);
  ByteWriter saved;
  strategy->save(saved);
  for (size_t size = 0; size < saved.bytes().size(); ++size) {
    ByteReader reader(std::span(saved.bytes()).first(size));
    EXPECT_FALSE(GetParam().make(5)->load(reader)) << size << " of " << saved.bytes().size() << " bytes";
  }
}

// Each execution depends only on its task, so it can be made anywhere, any number of times.
TEST_P(SamplingCommon, ATaskIsAllAnExecutionNeeds) {
  const auto strategy = GetParam().make(5);
  const auto elsewhere = GetParam().make(5);  // has learned nothing
  ToyMachine machine(program());
  RunnerOptions options;
  options.recording = strategy->recording();
  options.fair = strategy->fair();
  options.inputs.max_steps = 2000;
  Runner runner(machine, nullptr, options);
  uint64_t compared = 0;
  explore(*strategy, program(), 200, [&](const Task& task, const Execution& execution) {
    ByteWriter bytes;
    encode(bytes, task);
    ByteReader reader(bytes.bytes());
    Task sent;
    decode(reader, sent);
    EXPECT_EQ(runner.run(sent, *elsewhere->walker(sent)).schedule, execution.schedule);
    ++compared;
  });
  EXPECT_EQ(compared, 200u);
}

}  // namespace
}  // namespace slalom::sampling
