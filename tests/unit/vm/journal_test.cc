// Compares what the journal emits at the end with what is emitted at once, in random executions of three CPUs
// and their interrupts.
#include "vm/control/journal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "detect/kernels/kernel_race.h"
#include "explore/recorder.h"
#include "unit/vm/random_execution.h"

namespace slalom::vm {
namespace {

using test::agent_of;
using test::Batch;
using test::Batches;
using test::interleave;
using test::random_programs;
using test::Stream;

void tell(const Batches& execution, EventSink& sink, Communication& communication) {
  for (const Batch& batch : execution) {
    if (batch.accesses.empty()) {
      const std::string copy = batch.text;  // valid during the call only
      Event event = batch.event;
      event.text = copy;
      sink.on_event(event);
      continue;
    }
    communication.add(context_of(batch.cpu, batch.interrupt), batch.accesses);
    sink.on_accesses(batch.accesses, batch.header);
  }
  sink.on_end(Exited{});
}

// Writes one line for each access and event, and records which accesses are alone.
class LineSink : public EventSink {
 public:
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override {
    for (const Access& access : accesses) {
      lines.push_back(fmt::format("{} {} {} {:x} {:x} {} {} {}", header.first_step.raw + access.retired,
                                  header.agent.path(), access.pc().raw, access.address().raw,
                                  access.physical + 0, access.size + 0, access.value, access.wrote + 0));
      alone.push_back(access.is_private != 0);
      all.push_back(access);
    }
  }
  void on_event(const Event& event) override {
    lines.push_back(
        fmt::format("{} {} {} {}", event.step.raw, event.agent.path(), event.object.raw, event.text));
  }
  void on_end(const Outcome&) override { lines.push_back("end"); }
  std::vector<std::string> lines;
  std::vector<bool> alone;
  std::vector<Access> all;
};

// By definition: only one context accesses the memory, or no context writes it.
std::vector<bool> naive_alone(const Batches& execution) {
  std::map<uint64_t, std::set<AgentId>> users;
  std::set<uint64_t> written;
  const auto granules = [](const Access& access, auto&& f) {
    for (uint64_t byte = 0; byte < access.size; ++byte) f((access.physical + byte) / 8);
  };
  for (const Batch& batch : execution)
    for (const Access& access : batch.accesses)
      granules(access, [&](uint64_t granule) {
        users[granule].insert(batch.agent());
        if (access.wrote) written.insert(granule);
      });
  std::vector<bool> alone;
  for (const Batch& batch : execution)
    for (const Access& access : batch.accesses) {
      bool shared = access.size == 0;
      granules(access,
               [&](uint64_t granule) { shared |= users[granule].size() > 1 && written.contains(granule); });
      alone.push_back(!shared);
    }
  return alone;
}

TEST(Journal, TellsTheSameAndWhatIsAlone) {
  size_t alone = 0, all = 0;
  Stream maker;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Rng rng(seed);
    const Batches execution = interleave(rng, random_programs(rng, maker));
    Communication communication, at_once;
    LineSink direct, late;
    tell(execution, direct, at_once);
    at_once.add_instructions(direct.all);
    Journal journal(communication);
    for (int again = 0; again < 2; ++again) {  // the second execution must not depend on the first
      communication.clear();
      late = {};
      tell(execution, journal.begin(late), communication);
      ASSERT_EQ(late.lines, direct.lines) << "seed " << seed;
      ASSERT_EQ(late.alone, naive_alone(execution)) << "seed " << seed;
      ASSERT_EQ(communication.points(), at_once.points()) << "seed " << seed;
    }
    alone += static_cast<size_t>(std::ranges::count(late.alone, true));
    all += late.alone.size();
  }
  EXPECT_GT(alone, all / 10);
  EXPECT_LT(alone, all * 9 / 10);
}

// In some code, memory that a CPU shares with its own interrupts makes points, too: the same ones at once and
// at the end.
TEST(Journal, WhatInterruptsOfTheSameCpuTouchMakesPointsInSomeCode) {
  size_t more = 0;
  Stream maker;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Rng rng(seed);
    const Batches execution = interleave(rng, random_programs(rng, maker));
    LineSink direct;
    Communication plain, at_once, communication;
    tell(execution, direct, plain);
    plain.add_instructions(direct.all);
    // Half of the places.
    const CodeRange code{1000, 1000 + maker.places.names.size() / 2};
    at_once.set_interruptible(code);
    communication.set_interruptible(code);
    direct = {};
    tell(execution, direct, at_once);
    at_once.add_instructions(direct.all);
    LineSink late;
    Journal journal(communication);
    tell(execution, journal.begin(late), communication);
    const std::vector<Place> points = at_once.points(), few = plain.points();
    ASSERT_EQ(communication.points(), points) << "seed " << seed;
    ASSERT_TRUE(std::ranges::includes(points, few));
    for (const Place point : points)
      ASSERT_TRUE(code.has(point) || std::ranges::binary_search(few, point)) << "seed " << seed;
    more += points.size() - few.size();
  }
  EXPECT_GT(more, 500u);
}

TEST(Journal, OfALongExecutionNothingIsAlone) {
  Stream maker;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng(seed);
    const Batches execution = interleave(rng, random_programs(rng, maker));
    Communication communication, at_once;
    LineSink direct, late;
    tell(execution, direct, at_once);
    at_once.add_instructions(direct.all);
    const auto made =
        std::ranges::count_if(direct.all, [](const Access& access) { return access.size != 0; });
    Journal journal(communication, static_cast<size_t>(made - 1));
    tell(execution, journal.begin(late), communication);
    EXPECT_EQ(late.lines, direct.lines) << "seed " << seed;
    EXPECT_EQ(std::ranges::count(late.alone, true), 0) << "seed " << seed;
    EXPECT_EQ(communication.points(), at_once.points()) << "seed " << seed;
  }
}

TEST(Journal, RacesAreTheSame) {
  Stream maker;
  size_t found = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Rng rng(seed);
    const Batches execution = interleave(rng, random_programs(rng, maker));
    for (const auto mode : {KernelRaceOptions::Mode::HappensBefore, KernelRaceOptions::Mode::Simultaneous}) {
      KernelRaceDetector direct(maker.places, {.mode = mode, .ignore = {}}),
          late(maker.places, {.mode = mode, .ignore = {}});
      Communication communication, at_once;
      direct.reset();
      late.reset();
      tell(execution, direct, at_once);
      Journal journal(communication);
      tell(execution, journal.begin(late), communication);
      std::vector<Verdict> expected, actual;
      direct.harvest(expected);
      late.harvest(actual);
      ASSERT_EQ(actual, expected) << "seed " << seed;
      found += expected.size();
    }
  }
  EXPECT_GT(found, 500u);
}

TEST(Journal, ClassesAreTheSame) {
  size_t classes = 0, executions = 0;
  Stream maker;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Rng rng(seed);
    const auto programs = random_programs(rng, maker);
    std::map<uint64_t, uint64_t> late_of, direct_of;  // direct hashes by journal hash, and the reverse
    for (int i = 0; i < 100; ++i) {
      const Batches execution = interleave(rng, programs);
      Recorder direct, late;
      slalom::Execution ignored;
      direct.begin(ignored, false);
      late.begin(ignored, false);
      Communication communication, at_once;
      tell(execution, direct, at_once);
      Journal journal(communication);
      tell(execution, journal.begin(late), communication);
      const uint64_t one = direct.history().sum, two = late.history().sum;
      ASSERT_EQ(late_of.emplace(one, two).first->second, two) << "seed " << seed;
      ASSERT_EQ(direct_of.emplace(two, one).first->second, one) << "seed " << seed;
    }
    classes += late_of.size();
    executions += 100;
  }
  // Otherwise the test proves nothing.
  EXPECT_GT(classes, executions / 20);
  EXPECT_LT(classes, executions);
}

TEST(Communication, ACheckpointIsAllOfIt) {
  Stream maker;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    const Batches execution = interleave(rng, random_programs(rng, maker));
    const auto tell_from = [&](size_t first, size_t last, Communication& to) {
      for (size_t i = first; i < last; ++i) {
        to.add(context_of(execution[i].cpu, execution[i].interrupt), execution[i].accesses);
        to.add_instructions(execution[i].accesses);
      }
    };
    Communication whole, parts;
    tell_from(0, execution.size(), whole);
    const size_t middle = execution.size() / 2;
    tell_from(0, middle, parts);
    const Communication::State saved = parts.save();
    tell_from(0, execution.size(), parts);  // continue differently before restoring
    parts.restore(saved);
    tell_from(middle, execution.size(), parts);
    EXPECT_EQ(parts.points(), whole.points()) << "seed " << seed;
    EXPECT_EQ(parts.shared(), whole.shared()) << "seed " << seed;
  }
}

TEST(Journal, OfAnExecutionOfJustAsManyAccessesSomeAreAlone) {
  Stream maker;
  size_t calls = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng(seed);
    const Batches execution = interleave(rng, random_programs(rng, maker));
    Communication communication, at_once;
    LineSink direct, late;
    tell(execution, direct, at_once);
    const auto made = static_cast<size_t>(
        std::ranges::count_if(direct.all, [](const Access& access) { return access.size != 0; }));
    calls += direct.all.size() - made;
    Journal journal(communication, made);
    tell(execution, journal.begin(late), communication);
    EXPECT_EQ(late.alone, naive_alone(execution)) << "seed " << seed;
  }
  EXPECT_GT(calls, 100u);  // calls do not count towards the limit
}

TEST(Journal, LongBatchesAreToldWhole) {
  Stream maker;
  Rng rng(1);
  Batches execution;
  uint64_t step = 0;
  for (const unsigned cpu : {0u, 1u, 0u}) {
    Batch batch{.cpu = cpu, .header = {.agent = agent_of(cpu, false), .first_step = Step{step}}};
    for (int i = 0; i < 1000; ++i) {
      const uint64_t own = 0x10000 * (cpu + 1), address = 8 * rng.below(200) + (rng.below(3) == 0 ? 0 : own);
      batch.accesses.push_back(maker.make(OpKind::Store, "p", 0x1000 + address, true, 8, rng.below(9)));
      batch.accesses.back().retired = step++ - batch.header.first_step.raw;
    }
    execution.push_back(std::move(batch));
  }
  Communication communication, at_once;
  LineSink direct, late;
  tell(execution, direct, at_once);
  Journal journal(communication);
  tell(execution, journal.begin(late), communication);
  EXPECT_EQ(late.lines, direct.lines);
  EXPECT_EQ(late.alone, naive_alone(execution));
}

}  // namespace
}  // namespace slalom::vm
