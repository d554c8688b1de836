// On random streams: the detector of kernel races against a second definition of a race, and its state as a
// value.
#include <gtest/gtest.h>

#include <bitset>
#include <set>

#include "base/rng.h"
#include "unit/detect/kernel_stream.h"

namespace slalom::test {
namespace {

using Mode = KernelRaceOptions::Mode;

// What one instruction, or an interrupt, does to one cell.
struct Node {
  int cpu = 0;
  uint64_t step = 0, pc = 0, cell = 0;
  uint8_t plain = 0;  // bytes
  bool writes = false, acquires = false, releases = false;
  int sender = -1;
  std::bitset<1024> before;  // all nodes that happen before it
};

using Pairs = std::set<std::pair<uint64_t, uint64_t>>;
struct Answer {
  Pairs races, simultaneous;
};

Answer naive(const Stream& stream) {
  std::vector<Node> nodes;
  std::map<uint64_t, uint8_t> sync;  // by cell
  int running = -1, other = -1;
  for (size_t step = 0; step < stream.items.size(); ++step) {
    const Stream::Item& item = stream.items[step];
    AgentId root = item.agent;
    while (root.parent()) root = root.parent();
    const int cpu = root == Stream::id(0) ? 0 : root == Stream::id(1) ? 1 : 2;
    if (item.accesses.empty()) {
      Node node{.cpu = cpu, .step = step};
      if (item.event.value >= 0xf0) node.sender = running != cpu ? running : other;
      nodes.push_back(node);
      continue;
    }
    if (running != cpu) other = std::exchange(running, cpu);
    for (const Access& access : item.accesses) {
      const bool locked = is_atomic(access.op());
      for (uint64_t cell = access.physical / 8; cell * 8 < access.physical + access.size; ++cell) {
        uint8_t bytes = 0;
        for (uint64_t byte = 0; byte < 8; ++byte)
          if (cell * 8 + byte >= access.physical && cell * 8 + byte < access.physical + access.size)
            bytes |= static_cast<uint8_t>(1u << byte);
        if (locked) sync[cell] |= bytes;
        Node node{.cpu = cpu, .step = step, .pc = access.pc().raw, .cell = cell, .writes = access.wrote != 0};
        if ((sync[cell] & bytes) != 0) {
          node.acquires = locked || !node.writes;
          node.releases = node.writes;
          nodes.push_back(node);
          node.acquires = node.releases = false;
        }
        node.plain = bytes & ~sync[cell];
        if (node.plain != 0) nodes.push_back(node);
      }
    }
  }
  Answer answer;
  for (size_t j = 0; j < nodes.size(); ++j) {
    Node& node = nodes[j];
    const auto after = [&](size_t i) {
      node.before |= nodes[i].before;
      node.before.set(i);
    };
    for (size_t i = 0; i < j; ++i)
      if (nodes[i].cpu == node.cpu || nodes[i].cpu == node.sender ||
          (node.acquires && nodes[i].releases && nodes[i].cell == node.cell))
        after(i);
    for (size_t i = 0; i < j; ++i) {
      if (node.before.test(i) || nodes[i].cell != node.cell || !(nodes[i].writes || node.writes)) continue;
      if ((nodes[i].plain & node.plain & ~sync[node.cell]) == 0) continue;
      answer.races.emplace(nodes[i].pc, node.pc);
      bool own_between = false;
      for (size_t k = i; k < j; ++k)
        own_between |= nodes[k].cpu == node.cpu && nodes[k].pc != 0 && nodes[k].step < node.step;
      if (!own_between) answer.simultaneous.emplace(nodes[i].pc, node.pc);
    }
  }
  return answer;
}

Stream random_stream(uint64_t seed) {
  Rng rng(seed);
  Stream s;
  const uint64_t length = 20 + rng.below(60), cells = 1 + rng.below(4), locks = 10 + rng.below(60);
  for (uint64_t i = 0; i < length; ++i) {
    const int cpu = static_cast<int>(rng.below(3));
    const std::string place = fmt::format("f{}", i);
    const uint32_t size = 1u << rng.below(rng.below(8) == 0 ? 5 : 4);
    const uint64_t address = kX + rng.below(8 * cells) / size * size;
    const uint64_t lock = kLock + 4 * rng.below(2);
    const bool in_data = rng.below(10) == 0;  // a variable that is locked and plain
    const uint64_t kind = rng.below(100);
    if (kind < locks / 2) {
      s.locked(cpu, in_data ? kX + 4 : lock);
    } else if (kind < locks) {
      s.store(cpu, place, lock, rng.below(2) == 0 ? 1 : 4);
    } else if (kind < locks + 3) {
      const uint32_t vector = rng.below(2) == 0 ? 0xfb : 0xec;
      s.interrupt(Stream::id(cpu).interrupt(vector - 0xd0), cpu, static_cast<int>(vector));
    } else if (kind < locks + 6) {
      s.load(cpu, place, lock, 4);
    } else if (kind < locks + 10) {  // a plain read-modify-write
      s.add(Stream::id(cpu), {s.make(OpKind::Load, place, address, false, size, 0),
                              s.make(OpKind::Store, place, address, true, size, 0)});
    } else if (rng.below(3) == 0) {
      s.store(cpu, place, address, size);
    } else {
      s.load(cpu, place, address, size);
    }
  }
  return s;
}

Pairs detected(const Stream& stream, Mode mode) {
  KernelRaceDetector detector(stream.places, {.mode = mode, .ignore = {}});
  detector.reset();
  stream.feed(detector, 0, stream.items.size());
  Pairs pairs;
  for (const auto& race : detector.races()) pairs.emplace(race.first.pc.raw, race.second.pc.raw);
  return pairs;
}

std::set<uint64_t> seconds(const Pairs& pairs) {
  std::set<uint64_t> result;
  for (const auto& pair : pairs) result.insert(pair.second);
  return result;
}

TEST(KernelRaceModel, EveryRacingAccessIsFoundAndNoOther) {
  uint64_t racing = 0, close = 0, all = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const Stream stream = random_stream(seed);
    const Answer expected = naive(stream);
    for (const Mode mode : {Mode::HappensBefore, Mode::Simultaneous}) {
      const Pairs& right = mode == Mode::HappensBefore ? expected.races : expected.simultaneous;
      const Pairs actual = detected(stream, mode);
      for (const auto& pair : actual)
        ASSERT_TRUE(right.contains(pair)) << "seed " << seed << ": " << pair.first << " and " << pair.second;
      ASSERT_EQ(seconds(actual), seconds(right)) << "seed " << seed;
    }
    racing += seconds(expected.races).size();
    close += seconds(expected.simultaneous).size();
    all += stream.items.size();
  }
  // The comparison means something only if all answers are common.
  EXPECT_GT(racing, all / 20);
  EXPECT_LT(racing, all * 19 / 20);
  EXPECT_GT(close, all / 50);
  EXPECT_LT(close, racing * 9 / 10);
}

TEST(KernelRaceModel, RestoringAtAnyPointChangesNothing) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Stream stream = random_stream(seed);
    const auto expected = stream.verdicts({.ignore = {}});
    KernelRaceDetector detector(stream.places, {.ignore = {}}), other(stream.places, {.ignore = {}});
    detector.reset();
    for (size_t i = 0; i <= stream.items.size(); ++i) {
      const auto saved = detector.save();
      stream.feed(other, 0, stream.items.size());  // another course, before the restore
      other.restore(*saved);
      stream.feed(other, i, stream.items.size());
      other.on_end(Exited{});
      std::vector<Verdict> verdicts;
      other.harvest(verdicts);
      ASSERT_EQ(verdicts, expected) << "seed " << seed << ", step " << i;
      if (i < stream.items.size()) stream.feed(detector, i, i + 1);
    }
  }
}

}  // namespace
}  // namespace slalom::test
