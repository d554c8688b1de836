// The coverage claims of a bounded search, compared with all schedules, enumerated here as words.
#include <algorithm>

#include "explore/strategies/dfs.h"
#include "unit/explore/search.h"

namespace slalom {
namespace {

// Two threads of `steps` independent operations. A schedule is a word such as "aabbab": the thread of each
// operation. It preempts wherever it leaves a thread with remaining operations.
constexpr uint64_t kSteps = 3;

std::shared_ptr<const ToyProgram> two_threads() {
  ToyBuilder b;
  b.shared("x", {.size = 2}).thread("t", "x[id] = 1\nx[id] = 2\nx[id] = 3", {.copies = 2});
  return built(b);
}

uint64_t preemptions_of(const std::string& word) {
  uint64_t preemptions = 0;
  for (size_t i = 0; i + 1 < word.size(); ++i)
    if (word[i + 1] != word[i] && word.find(word[i], i + 1) != std::string::npos) ++preemptions;
  return preemptions;
}

// Returns the number of schedules with at most N preemptions, for each N.
std::vector<uint64_t> schedules_by_bound() {
  std::string word = std::string(kSteps, 'a') + std::string(kSteps, 'b');
  std::vector<uint64_t> counts;
  do {
    const uint64_t preemptions = preemptions_of(word);
    if (counts.size() <= preemptions) counts.resize(preemptions + 1);
    ++counts[preemptions];
  } while (std::next_permutation(word.begin(), word.end()));
  for (size_t i = 1; i < counts.size(); ++i) counts[i] += counts[i - 1];
  return counts;
}

std::string covered(uint64_t bound) {
  return fmt::format("every schedule with at most {} preemption{} was executed", bound,
                     bound == 1 ? "" : "s");
}

TEST(DfsClaims, ALimitedSearchExecutesWhatItsLimitAllowsAndSaysSo) {
  const std::vector<uint64_t> counts = schedules_by_bound();
  ASSERT_EQ(counts.back(), 20u);  // 6! / (3! 3!)
  for (uint64_t limit = 0; limit < counts.size() + 1; ++limit) {
    Dfs dfs(DfsOptions{.limit = limit});
    const ExploreResult result = search(two_threads(), dfs).result;
    const bool all = limit + 1 >= counts.size();
    EXPECT_EQ(result.executions, all ? counts.back() : counts[limit]) << limit;
    EXPECT_TRUE(result.coverage.exhausted);
    EXPECT_EQ(result.coverage.bound, all ? "" : "preemptions") << limit;
    EXPECT_EQ(result.coverage.statement, all ? "every schedule was executed" : covered(limit));
    if (!all) {
      EXPECT_EQ(result.coverage.completed, limit);
    }
  }
}

TEST(DfsClaims, ASearchThatIsCutOffClaimsTheBoundsThatItCompleted) {
  const std::vector<uint64_t> counts = schedules_by_bound();
  for (uint64_t schedules = 1; schedules < counts.back(); ++schedules) {
    Dfs dfs;
    SearchOptions options;
    options.explore.schedules = schedules;
    const ExploreResult result = search(two_threads(), dfs, options).result;
    EXPECT_EQ(result.tasks, schedules);
    EXPECT_FALSE(result.coverage.exhausted) << schedules;
    const auto completed = static_cast<uint64_t>(
        std::ranges::count_if(counts, [&](uint64_t count) { return count <= schedules; }));
    EXPECT_EQ(result.coverage.completed.has_value(), completed > 0) << schedules;
    if (completed > 0) {
      EXPECT_EQ(result.coverage.completed, completed - 1) << schedules;
      EXPECT_EQ(result.coverage.statement, covered(completed - 1));
    }
  }
}

// The target chooses a value without a preemption, so each bound has all values.
TEST(DfsClaims, ValuesCostNothing) {
  ToyBuilder b;
  b.shared("x", {.size = 2}).thread("t", "r = choose(3)\nx[id] = r", {.copies = 2});
  Dfs dfs(DfsOptions{.limit = 0});
  const Reached reached = search(built(b), dfs);
  EXPECT_EQ(reached.result.executions, 2u * 3 * 3);
  EXPECT_EQ(reached.states.size(), 9u);
  EXPECT_EQ(reached.result.coverage.statement, covered(0));
}

}  // namespace
}  // namespace slalom
