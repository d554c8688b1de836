// Checkpoints, slices and snapshot files of a machine that boots debian:6.1 with two CPUs. However an
// instruction is reached, the machine must be in the same state there.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include "kernel_store/kernel_cache.h"
#include "vm/boot/boot.h"
#include "vm/snapshot/snapshot_file.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kMillion = 1'000'000;
constexpr uint64_t kEvery = 5 * kMillion;

Booted booted() {
  Result<Booted> machine = boot({.run = "echo hello; nproc", .pc = {.cpus = 2}});
  CHECK(machine.ok(), "{}", machine.ok() ? "" : machine.error().message);
  return std::move(*machine);
}

using Hashes = std::map<uint64_t, uint64_t>;  // by number of instructions

class Checkpoints : public testing::Test {
 public:
  static void SetUpTestSuite() {
    const Result<KernelCache> cache = KernelCache::open();
    if (!cache.ok() || !cache->has(kDefaultKernel)) return;
    // The reference: a run in one go.
    Booted machine = booted();
    PcStop stop = PcStop::Budget;
    while (stop == PcStop::Budget) {
      stop = machine.pc->run(kEvery);
      expected_[machine.pc->executed()] = machine.pc->state_hash();
    }
    ASSERT_EQ(stop, PcStop::PowerOff);
    said_ = machine.pc->devices().take_console_output();
  }
  void SetUp() override {
    if (expected_.empty()) GTEST_SKIP() << "debian:6.1 is not in the cache: scripts/fetch-kernel fetches it";
  }

 protected:
  static uint64_t end() { return expected_.rbegin()->first; }

  // Runs to `target` in slices of these sizes. Compares the hash wherever the reference has one.
  static PcStop run_to(Pc& pc, uint64_t target, std::span<const uint64_t> slices = {}) {
    PcStop stop = PcStop::Budget;
    for (size_t i = 0; stop == PcStop::Budget && pc.executed() < target; ++i) {
      const uint64_t to_hash = kEvery - pc.executed() % kEvery;
      uint64_t size = std::min(to_hash, target - pc.executed());
      if (!slices.empty()) size = std::min(size, slices[i % slices.size()]);
      stop = pc.run(size);
      const auto known = expected_.find(pc.executed());
      if (known != expected_.end()) {
        EXPECT_EQ(pc.state_hash(), known->second) << pc.executed();
      }
    }
    return stop;
  }
  static void expect_at(Pc& pc, uint64_t place) {
    ASSERT_EQ(pc.executed(), place);
    EXPECT_EQ(pc.state_hash(), expected_.at(place)) << place;
  }

  static Hashes expected_;
  static std::string said_;
};
Hashes Checkpoints::expected_;
std::string Checkpoints::said_;

TEST_F(Checkpoints, SlicesOfPrimeSizesMakeTheSameBoot) {
  constexpr std::array<uint64_t, 6> kPrimes = {1, 7'919, 104'729, 13, 1'299'709, 19'997};
  EXPECT_GT(expected_.size(), 40u);
  Booted machine = booted();
  EXPECT_EQ(run_to(*machine.pc, ~uint64_t{0}, kPrimes), PcStop::PowerOff);
  EXPECT_EQ(machine.pc->executed(), end());
  EXPECT_EQ(machine.pc->devices().take_console_output(), said_);
  EXPECT_NE(said_.find("hello\r\n2\r\n"), std::string::npos) << said_;
}

// A tree of checkpoints at distances of 10 million instructions:
//
//   a (100) - b (110) - c (120)
//          \ d (110) - e (120)
TEST_F(Checkpoints, AnyOfATreeGoesOnAsIfNeverLeft) {
  Booted machine = booted();
  Pc& pc = *machine.pc;
  const auto on = [&](uint64_t millions) { run_to(pc, millions * kMillion); };
  on(100);
  const Pc::Checkpoint a = pc.take();
  on(110);
  const Pc::Checkpoint b = pc.take();
  on(120);
  const Pc::Checkpoint c = pc.take();
  on(125);
  pc.restore(a);
  expect_at(pc, 100 * kMillion);
  on(110);
  const Pc::Checkpoint d = pc.take();
  on(120);
  const Pc::Checkpoint e = pc.take();
  on(123);
  const std::pair<Pc::Checkpoint, uint64_t> places[] = {{a, 100}, {b, 110}, {c, 120}, {d, 110}, {e, 120}};
  for (const auto& from : places) {
    for (const auto& [id, millions] : places) {
      pc.restore(from.first);
      pc.run(20'011);
      pc.restore(id);
      expect_at(pc, millions * kMillion);
    }
  }
  pc.drop(a);
  pc.drop(d);
  pc.restore(e);
  expect_at(pc, 120 * kMillion);
  on(130);
  pc.restore(b);
  expect_at(pc, 110 * kMillion);
  on(130);
}

TEST_F(Checkpoints, ForkedWorkersAndFilesGoOnTheSameWay) {
  Booted machine = booted();
  Pc& pc = *machine.pc;
  run_to(pc, 150 * kMillion);
  pc.ram().make_base();
  const Pc::Checkpoint start = pc.take();
  const Result<std::vector<uint8_t>> file = encode_snapshot(machine);
  ASSERT_TRUE(file.ok()) << file.error().message;
  run_to(pc, 152 * kMillion);

  std::array<pid_t, 2> workers;
  for (pid_t& worker : workers) {
    worker = fork();
    ASSERT_GE(worker, 0);
    if (worker == 0) {
      pc.restore(start);
      pc.run(5 * kMillion);
      _exit(pc.state_hash() == expected_.at(155 * kMillion) ? 0 : 1);
    }
  }
  for (const pid_t worker : workers) {
    int status = -1;
    ASSERT_EQ(waitpid(worker, &status, 0), worker);
    EXPECT_EQ(status, 0);
  }
  pc.restore(start);
  expect_at(pc, 150 * kMillion);
  run_to(pc, 155 * kMillion);

  Result<Booted> loaded = decode_snapshot(*file);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  expect_at(*loaded->pc, 150 * kMillion);
  EXPECT_EQ(run_to(*loaded->pc, ~uint64_t{0}), PcStop::PowerOff);
  EXPECT_EQ(loaded->pc->executed(), end());
}

}  // namespace
}  // namespace slalom::vm
