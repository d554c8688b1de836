// What the report infers from a log, compared with the machine, which knows: why each agent stopped running,
// and how many operations it had retired.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "report/core/interleaving.h"
#include "report/text.h"
#include "toy/toy_builder.h"
#include "toy/toy_machine.h"

namespace slalom {
namespace {

ToyProgram built(const ToyBuilder& builder) {
  auto program = builder.build();
  CHECK(program.ok(), "{}", program.error().message);
  return *std::move(program);
}

std::vector<ToyProgram> programs() {
  std::vector<ToyProgram> list;
  list.push_back(
      built(ToyBuilder("locks")
                .shared("x")
                .sync("m", ToySyncKind::Mutex)
                .sync("rw", ToySyncKind::RwLock)
                .thread("writer", "lock m; x = x + 1; unlock m; wrlock rw; x = 2; wrunlock rw", {.copies = 2})
                .thread("reader", "rdlock rw; r = x; rdunlock rw; yield; r = x", {.copies = 2})));
  list.push_back(built(
      ToyBuilder("signals")
          .shared("ready")
          .sync("m", ToySyncKind::Mutex)
          .sync("c", ToySyncKind::Condvar)
          .sync("s", ToySyncKind::Semaphore)
          .sync("b", ToySyncKind::Barrier, {.count = 3})
          .thread("waiter", "if ready == 0 { lock m; wait c m; unlock m }; up s; arrive b", {.copies = 2})
          .thread("setter", "ready = 1; broadcast c; down s; down s; arrive b; note \"done\"")));
  list.push_back(built(ToyBuilder("family")
                           .shared("x")
                           .thread("main", "h = spawn(child); x = 1; join(h); r = x")
                           .thread("child", "x = x + choose(2); assert x != 3", {.start = false})));
  list.push_back(
      built(ToyBuilder("interrupts")
                .shared("x")
                .thread("work", "p = alloc(1); mask; p[0] = 1; unmask; x = 1; arm t; r = x; free(p)")
                .thread("other", "x = x + 1; x = x + 1; assert x == 2")
                .interrupt("tick", "work", "x = x + 1; r = x", 2)
                .timer("t", "x = x + 1; x = 0")));
  return list;
}

struct Recorded {
  TraceLog log;
  Schedule schedule;
  std::vector<ChoiceKind> kinds;
};

Recorded run(ToyMachine& machine, uint64_t seed) {
  Recorded result;
  Rng rng(seed);
  CHECK(machine.reset(Inputs{}).ok());
  Stop stop = machine.start(result.log);
  AgentId running;
  while (const auto* point = std::get_if<ChoicePoint>(&stop)) {
    if (point->kind == ChoiceKind::Data) {
      stop = machine.resume({point->current, static_cast<uint32_t>(rng.below(point->arity)), 0});
      continue;
    }
    const auto options = point->options();
    const AgentId next = options[rng.below(options.size())].agent;
    if (next != running) {
      result.schedule.switches.push_back({running, running ? point->current_ops : 0, next});
      result.kinds.push_back(point->kind);
    }
    running = next;
    stop = machine.resume({next, 0, 0});
  }
  result.log.on_end(std::get<Outcome>(stop));
  return result;
}

bool agree(ChoiceKind kind, Leaving leaving) {
  switch (leaving) {
    case Leaving::Preempted:
    case Leaving::Interrupted:
      return kind == ChoiceKind::Running;
    case Leaving::Yielded:
      return kind == ChoiceKind::Yielded;
    case Leaving::Blocked:
      return kind == ChoiceKind::Blocked;
    case Leaving::Ended:
      return kind == ChoiceKind::Ended;
    case Leaving::Unknown:
      return true;
  }
  return false;
}

TEST(Machine, AgreesWithWhatTheLogTells) {
  for (ToyProgram& program : programs()) {
    SCOPED_TRACE(program.name);
    ToyMachine machine(std::move(program));
    uint64_t known = 0;
    uint64_t all_switches = 0;
    for (uint64_t seed = 0; seed < 300; ++seed) {
      SCOPED_TRACE(seed);
      const Recorded one = run(machine, seed);
      const Interleaving all = read_interleaving(one.log, machine.names());
      ASSERT_EQ(all.switches.size() + 1, one.schedule.switches.size());
      for (size_t i = 0; i < all.switches.size(); ++i) {
        const AgentSwitch& seen = all.switches[i];
        EXPECT_EQ((Switch{seen.from, seen.from_ops, seen.to}), one.schedule.switches[i + 1]);
        EXPECT_TRUE(agree(one.kinds[i + 1], seen.leaving))
            << i << ": " << machine.names().agent(seen.from) << " after " << seen.from_ops << ", kind "
            << static_cast<int>(one.kinds[i + 1]) << ", leaving " << static_cast<int>(seen.leaving);
        known += seen.leaving != Leaving::Unknown;
        ++all_switches;
      }
      Finding finding;
      finding.schedule = one.schedule;
      TextOptions options;
      options.switch_kinds = one.kinds;
      EXPECT_EQ(text_report(finding, one.log, machine.names(), options).find("Between"), std::string::npos);
    }
    EXPECT_GT(10 * known, 9 * all_switches);
  }
}

}  // namespace
}  // namespace slalom
