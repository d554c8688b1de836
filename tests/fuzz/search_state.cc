// The state of a search, without the job before it: the first byte says of which strategy.
#include "campaign/job.h"
#include "explore/explorer.h"
#include "fuzz/harness.h"
#include "toy/toy_builder.h"
#include "toy/toy_machine.h"

namespace slalom {
namespace {

constexpr const char* kStrategies[] = {
    "dpor",      "dpor:coarse", "dpor:bounded,limit=2", "dfs", "dfs:cache", "pct", "pos", "surw",
    "portfolio", "random"};

std::unique_ptr<Strategy> strategy(uint8_t number) {
  return make_strategy(*parse_strategy(kStrategies[number % std::size(kStrategies)], 1), {}).value();
}

WorkerFactory workers() {
  ToyBuilder b;
  b.shared("x").shared("f", {.atomic = true}).sync("m", ToySyncKind::Mutex);
  b.thread("a", "lock m\nx = 1\nunlock m\nr = cas(f, 0, 1)").thread("b", "r = cas(f, 1, 2)\nx = 2\nr = x");
  b.thread("c", "lock m\nq = fetch_add(f, 1)\nunlock m\nr = f\nassert r != 3");
  const auto program = std::make_shared<const ToyProgram>(b.build().value());
  return [program]() -> Result<Worker> { return Worker{std::make_unique<ToyMachine>(program), nullptr}; };
}

std::vector<uint8_t> saved(const Explorer& explorer) {
  ByteWriter out;
  explorer.save(out);
  return out.take();
}

}  // namespace

// Searches that stopped at once, after a few rounds, and at their end.
std::vector<std::vector<uint8_t>> seed_inputs() {
  std::vector<std::vector<uint8_t>> seeds;
  for (uint8_t number = 0; number < std::size(kStrategies); ++number) {
    for (const uint64_t rounds : {0, 1, 2, 5}) {
      const std::unique_ptr<Strategy> searches = strategy(number);
      ExploreOptions options;
      options.schedules = 300;
      Explorer explorer(*searches, workers(), options);
      uint64_t round = 0;
      explorer.on_round = [&](const ExploreResult&) { return round++ < rounds; };
      explorer.on_pause = [&] {
        std::vector<uint8_t>& seed = seeds.emplace_back(1, number);
        const std::vector<uint8_t> state = saved(explorer);
        seed.insert(seed.end(), state.begin(), state.end());
      };
      CHECK(explorer.run().ok());
    }
  }
  return seeds;
}

}  // namespace slalom

// What can be read must survive being written and read again, and must be something to go on from.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace slalom;
  if (size == 0) return 0;
  const std::unique_ptr<Strategy> first = strategy(data[0]);
  Explorer explorer(*first, {}, {});
  ByteReader in(std::span(data + 1, size - 1));
  if (!explorer.load(in) || !in.at_end()) return 0;
  const std::vector<uint8_t> state = saved(explorer);
  const std::unique_ptr<Strategy> second = strategy(data[0]);
  Explorer again(*second, {}, {});
  ByteReader once_more(state);
  CHECK(again.load(once_more) && once_more.at_end(), "a state that was read cannot be read again");
  CHECK(saved(again) == state, "a state changed when written again");
  first->coverage();
  for (int i = 0; i < 3; ++i)
    if (!first->begin()) break;
  return 0;
}
