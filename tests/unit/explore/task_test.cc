// Tasks as bytes: a worker in another process gets everything that the walker needs.
#include "explore/task.h"

#include <set>

#include "base/check.h"
#include "explore/save.h"
#include "explore/strategies/serial.h"
#include "unit/explore/under_test.h"

namespace slalom {
namespace {

std::vector<uint8_t> bytes_of(const Task& task) {
  ByteWriter out;
  encode(out, task);
  return out.take();
}

TEST(Tasks, OfEveryStrategyAreReadBack) {
  std::set<size_t> kinds;
  uint64_t arms = 0, sleepers = 0, values = 0;
  ToyBuilder b;
  b.shared("x").shared("y");
  b.thread("a", "r = choose(3)\nx = r\ny = 1").thread("b", "x = 4\nr = y").thread("c", "r = x\ny = r");
  std::vector<StrategyKind> all = all_kinds();
  all.push_back(kind<Serial>("serial", SerialOptions{}, true));
  for (const StrategyKind& kind : all) {
    SCOPED_TRACE(kind.name);
    const std::unique_ptr<Strategy> strategy = kind.make();
    ExploreOptions options;
    options.schedules = 300;
    Explorer explorer(*strategy, toy_workers(built(b)), options);
    explorer.on_execution = [&](const Task& task, const Execution&) {
      const std::vector<uint8_t> bytes = bytes_of(task);
      ByteReader in(bytes);
      Task read;
      decode(in, read);
      ASSERT_TRUE(in.ok() && in.at_end());
      EXPECT_EQ(read, task);
      kinds.insert(task.hint.index());
      arms += task.arm.has_value();
      if (const auto* hint = std::get_if<DporHint>(&task.hint)) {
        sleepers += hint->sleepers.size();
        values += hint->values.size();
      }
    };
    ASSERT_TRUE(explorer.run().ok());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Hint>);
  EXPECT_GT(arms, 0u);
  EXPECT_GT(sleepers, 0u);
  EXPECT_GT(values, 0u);
}

TEST(Tasks, OfUnknownKindsAreRefused) {
  Task task;
  task.hint = DfsHint{3};
  const std::vector<uint8_t> good = bytes_of(task);
  // index, no prefix, eight bytes of the digest; then the kind of the hint
  constexpr size_t kKind = 10;
  ASSERT_EQ(good[kKind], task.hint.index());
  for (unsigned kind = 0; kind < 256; ++kind) {
    std::vector<uint8_t> bytes = good;
    bytes[kKind] = static_cast<uint8_t>(kind);
    ByteReader in(bytes);
    decode(in, task);
    EXPECT_TRUE(kind < std::variant_size_v<Hint> || !in.ok()) << kind;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    const std::vector<uint8_t> cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    ByteReader in(cut);
    decode(in, task);
    EXPECT_FALSE(in.ok()) << size;
  }
}

TEST(Tasks, AreNotTakenForThoseOfOtherStrategies) {
  Dfs dfs;
  const Task task = dfs.begin().value();
  EXPECT_NO_THROW(dfs.walker(task));
  EXPECT_THROW(Dpor().walker(task), InternalError);
  EXPECT_THROW(Pct().walker(task), InternalError);
}

}  // namespace
}  // namespace slalom
