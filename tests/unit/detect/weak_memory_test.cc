// Outcomes of store buffers, against a machine that has them. A random program runs in all interleavings, and
// in all orders of a processor with store buffers. The detector must report one of the interleavings exactly
// if the processor has an outcome that no interleaving has.
#include "detect/programs/weak_memory.h"

#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "base/rng.h"
#include "trace/memory_order.h"
#include "unit/detect/script.h"

namespace slalom::test {
namespace {

struct Op {
  enum Kind { Store, StrongStore, Load, Modify, Fence } kind;
  int variable;
};
using Program = std::vector<std::vector<Op>>;

constexpr int kVariables = 2;

// The outcome of an execution: what it read, and the order of the stores to each variable. Every store writes
// a number of its own.
struct Memory {
  std::array<int, kVariables> values{};
  std::array<std::vector<int>, kVariables> written;
  std::vector<std::vector<int>> read;

  void write(int variable, int value) {
    values[variable] = value;
    written[variable].push_back(value);
  }
  auto outcome() const { return std::pair(written, read); }
};
using Result = decltype(std::declval<Memory>().outcome());
using Outcomes = std::set<Result>;

int number_of(size_t thread, size_t at) {
  return static_cast<int>(thread * 100 + at + 1);
}

// Shows all interleavings to the detector.
class Interleavings {
 public:
  explicit Interleavings(const Program& program) : program_(program), at_(program.size()) {
    memory_.read.resize(program.size());
    names_.objects = {{0, "x"}};
    for (size_t thread = 0; thread < program.size(); ++thread) {
      const AgentId id = AgentId::initial(static_cast<uint32_t>(thread));
      names_.agents[id.raw] = fmt::format("t{}", thread);
      for (size_t i = 0; i < program[thread].size(); ++i)
        names_.places[static_cast<uint64_t>(number_of(thread, i))] = fmt::format("t{}:{}", thread, i);
    }
    step();
  }
  Outcomes outcomes;
  bool reported = false;

 private:
  void step() {
    bool over = true;
    for (size_t thread = 0; thread < program_.size(); ++thread) {
      if (at_[thread] == program_[thread].size()) continue;
      over = false;
      const Memory before = memory_;
      const size_t i = at_[thread]++;
      make(thread, program_[thread][i], number_of(thread, i));
      order_.emplace_back(thread, i);
      step();
      order_.pop_back();
      --at_[thread];
      memory_ = before;
    }
    if (!over) return;
    outcomes.insert(memory_.outcome());
    reported = reported || judge();
  }

  void make(size_t thread, const Op& op, int value) {
    if (op.kind == Op::Load || op.kind == Op::Modify)
      memory_.read[thread].push_back(memory_.values[op.variable]);
    if (op.kind != Op::Load && op.kind != Op::Fence) memory_.write(op.variable, value);
  }

  bool judge() {
    WeakMemoryDetector detector(names_);
    uint64_t step = 0;
    for (const auto& [thread, i] : order_) {
      const Op& op = program_[thread][i];
      const AgentId agent = AgentId::initial(static_cast<uint32_t>(thread));
      const Place pc{static_cast<uint64_t>(number_of(thread, i))};
      constexpr OpKind kinds[] = {OpKind::AtomicStore, OpKind::AtomicStore, OpKind::AtomicLoad,
                                  OpKind::ReadModifyWrite, OpKind::ReadModifyWrite};
      const uint64_t own = 0x2000 + 8 * thread;  // a fence is reported as a change of this variable
      Access access{};
      access.pc_bits = pc.raw;
      access.op_bits = static_cast<uint64_t>(kinds[op.kind]);
      access.address_bits = op.kind == Op::Fence ? own : 0x1000 + 4 * static_cast<uint64_t>(op.variable);
      access.size = 4;
      access.wrote = op.kind != Op::Load;
      set_weak(access, op.kind != Op::StrongStore);
      detector.on_accesses({&access, 1}, {agent, 0, Step{step++}});
    }
    detector.on_end(Exited{});
    std::vector<Verdict> verdicts;
    detector.harvest(verdicts);
    return !verdicts.empty();
  }

  struct Names final : ScriptNames {
    std::string object(ObjectId) const override { return "x"; }
  };
  const Program& program_;
  std::vector<size_t> at_;
  std::vector<std::pair<size_t, size_t>> order_;
  Memory memory_;
  Names names_;
};

// The same program on a processor where each thread has a first-in first-out store buffer.
class StoreBuffers {
 public:
  explicit StoreBuffers(const Program& program) : program_(program) {
    State start;
    start.at.resize(program.size());
    start.buffers.resize(program.size());
    start.memory.read.resize(program.size());
    step(start);
  }
  Outcomes outcomes;

 private:
  using Buffer = std::deque<std::pair<int, int>>;
  struct State {
    std::vector<size_t> at;
    std::vector<Buffer> buffers;
    Memory memory;
    std::tuple<std::vector<size_t>, std::vector<Buffer>, Result> all() const {
      return {at, buffers, memory.outcome()};
    }
  };

  void step(const State& state) {
    if (!seen_.insert(state.all()).second) return;
    bool over = true;
    for (size_t thread = 0; thread < program_.size(); ++thread) {
      const auto& buffer = state.buffers[thread];
      if (!buffer.empty()) {
        over = false;
        State next = state;
        next.memory.write(buffer.front().first, buffer.front().second);
        next.buffers[thread].pop_front();
        step(next);
      }
      const size_t i = state.at[thread];
      if (i == program_[thread].size()) continue;
      over = false;
      const Op& op = program_[thread][i];
      if (op.kind >= Op::Modify && !buffer.empty()) continue;
      State next = state;
      ++next.at[thread];
      if (op.kind == Op::Load || op.kind == Op::Modify) {
        int value = state.memory.values[op.variable];
        for (const auto& [variable, stored] : buffer)
          if (variable == op.variable) value = stored;
        next.memory.read[thread].push_back(value);
      }
      if (op.kind == Op::Store) next.buffers[thread].emplace_back(op.variable, number_of(thread, i));
      if (op.kind == Op::Modify) next.memory.write(op.variable, number_of(thread, i));
      if (op.kind == Op::StrongStore) {
        for (const auto& [variable, stored] : buffer) next.memory.write(variable, stored);
        next.buffers[thread].clear();
        next.memory.write(op.variable, number_of(thread, i));
      }
      step(next);
    }
    if (over) outcomes.insert(state.memory.outcome());
  }

  const Program& program_;
  std::set<std::tuple<std::vector<size_t>, std::vector<Buffer>, Result>> seen_;
};

TEST(WeakMemory, AgreesWithAMachineThatHasStoreBuffers) {
  int others = 0, same = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed, 7);
    Program program(2 + rng.below(2));
    for (auto& thread : program) {
      const uint64_t length = 2 + rng.below(program.size() == 2 ? 3 : 2);
      for (uint64_t i = 0; i < length; ++i) {
        constexpr Op::Kind kinds[] = {Op::Store, Op::Store, Op::Store,  Op::Store,       Op::Load, Op::Load,
                                      Op::Load,  Op::Load,  Op::Modify, Op::StrongStore, Op::Fence};
        thread.push_back({kinds[rng.below(std::size(kinds))], static_cast<int>(rng.below(kVariables))});
      }
    }
    const Interleavings interleavings(program);
    const StoreBuffers buffered(program);
    const bool more = !std::includes(interleavings.outcomes.begin(), interleavings.outcomes.end(),
                                     buffered.outcomes.begin(), buffered.outcomes.end());
    ASSERT_EQ(interleavings.reported, more) << "seed " << seed;
    ++(more ? others : same);
  }
  EXPECT_GT(others, 20);
  EXPECT_GT(same, 100);
}

// Dekker's entry: each thread raises its own flag, then reads the other one's.
Script dekker(OpKind raise, bool fences, const std::string& first = "a", const std::string& second = "b") {
  Script s;
  for (const std::string& who : {first, second}) {
    const std::string own = who == "a" ? "x" : "y", other = who == "a" ? "y" : "x";
    s.access(raise, who, own, who + ":1");
    if (fences) s.access(OpKind::ReadModifyWrite, who, "stack of " + who, who + ":2");
    s.access(OpKind::AtomicLoad, who, other, who + ":3");
  }
  s.end(Exited{});
  return s;
}

using Titles = std::vector<std::string>;

TEST(WeakMemory, NamesTheStoreAndTheLoadThatOvertakesIt) {
  const Script s = dekker(OpKind::Store, false);
  const auto verdicts = s.verdicts("weak-memory");
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].kind, BugKind::WeakMemory);
  EXPECT_EQ(verdicts[0].severity, Severity::Race);
  EXPECT_EQ(verdicts[0].title, "weak memory: a:1 (store) may take effect after a:3 (atomic load)");
  ASSERT_EQ(verdicts[0].evidence.size(), 3u);
  EXPECT_EQ(verdicts[0].evidence[0].step, Step{0});
  EXPECT_EQ(verdicts[0].evidence[1].step, Step{1});
  EXPECT_EQ(verdicts[0].evidence[2].step, Step{3});
  EXPECT_EQ(dekker(OpKind::Store, false, "b", "a").titles("weak-memory"),
            Titles{"weak memory: b:1 (store) may take effect after b:3 (atomic load)"});
}

TEST(WeakMemory, OrderedByFencesStrongStoresAndLocks) {
  EXPECT_EQ(dekker(OpKind::Store, true).titles("weak-memory"), Titles{});
  EXPECT_EQ(dekker(OpKind::AtomicStore, false).titles("weak-memory"), Titles{});
  EXPECT_EQ(dekker(OpKind::ReadModifyWrite, false).titles("weak-memory"), Titles{});
  EXPECT_EQ(dekker(OpKind::Store, false).titles("race").size(), 2u);
  Script locked;
  for (const std::string who : {"a", "b"}) {
    locked.lock(who, "m", who + ":1").store(who, who == "a" ? "x" : "y", who + ":2");
    locked.load(who, who == "a" ? "y" : "x", who + ":3").unlock(who, "m", who + ":4");
  }
  locked.end(Exited{});
  EXPECT_EQ(locked.titles("weak-memory"), Titles{});
}

TEST(WeakMemory, NeighboursInACellAreNoConflict) {
  Script s;
  s.access(OpKind::Store, "a", "x", "a:1", 4).access(OpKind::Load, "a", "y", "a:2", 4);
  s.access(OpKind::Store, "b", "y+4", "b:1", 4).access(OpKind::Load, "b", "x+4", "b:2", 4).end(Exited{});
  EXPECT_EQ(s.titles("weak-memory"), Titles{});
  Script wide;  // a wide load sees both
  wide.access(OpKind::Store, "a", "x", "a:1", 4).access(OpKind::Load, "a", "y", "a:2", 8);
  wide.access(OpKind::Store, "b", "y+4", "b:1", 4).access(OpKind::Load, "b", "x", "b:2", 2).end(Exited{});
  EXPECT_EQ(wide.titles("weak-memory"), Titles{"weak memory: a:1 (store) may take effect after a:2 (load)"});
}

}  // namespace
}  // namespace slalom::test
