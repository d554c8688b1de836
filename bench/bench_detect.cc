// What detectors cost: nanoseconds per access, per lock and per checkpoint.
#include <benchmark/benchmark.h>

#include "base/rng.h"
#include "detect/detector_set.h"
#include "detect/kernels/kernel_race.h"

namespace slalom {
namespace {

class NoNames : public Names {
 public:
  std::string agent(AgentId) const override { return "agent"; }
  std::string role(AgentId) const override { return "role"; }
  std::string object(ObjectId) const override { return "object"; }
  std::string place(Place) const override { return "place"; }
  std::string source(Place) const override { return "source"; }
};

constexpr uint64_t kAgents = 4;

// Batches of the given length, by agents in turn, over `cells` cells each of its own and some that all read.
std::vector<std::vector<Access>> make_batches(uint64_t length, uint64_t cells) {
  Rng rng(1);
  std::vector<std::vector<Access>> batches;
  for (uint64_t i = 0; i < 4096 / length; ++i) {
    auto& batch = batches.emplace_back(length);
    for (uint64_t j = 0; j < length; ++j) {
      const bool shared = rng.below(4) == 0;
      const bool store = !shared && rng.below(3) == 0;
      batch[j] = Access{};
      batch[j].pc_bits = 0x1000 + rng.below(64);
      batch[j].op_bits = static_cast<uint64_t>(store ? OpKind::Store : OpKind::Load);
      batch[j].size = 8;
      batch[j].address_bits = 0x100000 + 8 * rng.below(cells) + (shared ? 0 : (1 + i % kAgents) << 24);
      batch[j].wrote = store;
      batch[j].value = rng.below(4);
      batch[j].retired = j;
    }
  }
  return batches;
}

void accesses(benchmark::State& state, const char* detectors) {
  const NoNames names;
  auto set = *select_detectors(names, detectors);
  const auto length = static_cast<uint64_t>(state.range(0));
  const auto batches = make_batches(length, static_cast<uint64_t>(state.range(1)));
  uint64_t step = 0;
  for (auto _ : state) {
    for (uint64_t i = 0; i < batches.size(); ++i) {
      set->on_accesses(batches[i], {AgentId::initial(static_cast<uint32_t>(i % kAgents)), 0, Step{step}});
      step += length;
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(batches.size() * length));
}

// As a kernel's test looks: two CPUs in turn, physical addresses, every 50th access a lock or its release.
void kernel_accesses(benchmark::State& state) {
  const NoNames names;
  KernelRaceDetector detector(names);
  constexpr uint64_t kLength = 64;
  auto batches = make_batches(kLength, static_cast<uint64_t>(state.range(0)));
  uint64_t number = 0;
  for (auto& batch : batches) {
    for (Access& access : batch) {
      access.physical = access.address_bits;
      if (++number % 50 != 0) continue;
      access.address_bits = access.physical = 0x8000 + 64 * (number % 8);
      access.op_bits = static_cast<uint64_t>(number % 100 == 0 ? OpKind::Store : OpKind::ReadModifyWrite);
      access.wrote = 1;
    }
  }
  uint64_t step = 0;
  for (auto _ : state) {
    for (uint64_t i = 0; i < batches.size(); ++i) {
      detector.on_accesses(batches[i], {AgentId::initial(static_cast<uint32_t>(i % 2)), 0, Step{step}});
      step += kLength;
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(batches.size() * kLength));
}

void locks(benchmark::State& state, const char* detectors) {
  const NoNames names;
  auto set = *select_detectors(names, detectors);
  Event event;
  event.object = ObjectId{0x1000};
  for (auto _ : state) {
    event.agent = AgentId::initial(static_cast<uint32_t>(event.step.raw / 2 % kAgents));
    event.op = event.step.raw % 2 == 0 ? OpKind::Lock : OpKind::Unlock;
    set->on_event(event);
    ++event.step.raw;
  }
}

void checkpoint(benchmark::State& state) {
  const NoNames names;
  auto set = all_detectors(names);
  for (const auto& batch : make_batches(1, static_cast<uint64_t>(state.range(0))))
    set->on_accesses(batch, {AgentId::initial(0), 0, Step{}});
  for (auto _ : state) set->restore(*set->save());
}

// Length of a batch, cells touched by each agent.
BENCHMARK_CAPTURE(accesses, race, "race")->Args({1, 16})->Args({64, 16})->Args({64, 4096})->Args({64, 65536});
BENCHMARK_CAPTURE(accesses, livelock, "livelock")->Args({1, 16})->Args({64, 16})->Args({64, 4096});
BENCHMARK_CAPTURE(accesses, all, "all")->Args({1, 16})->Args({64, 16})->Args({64, 4096})->Args({64, 65536});
BENCHMARK_CAPTURE(locks, race, "race");
BENCHMARK_CAPTURE(locks, all, "all");
BENCHMARK(kernel_accesses)->Arg(16)->Arg(4096)->Arg(65536);  // cells of each CPU
BENCHMARK(checkpoint)->Arg(16)->Arg(4096);

}  // namespace
}  // namespace slalom
