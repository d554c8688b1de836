// Observes a machine that boots debian:6.1 with two CPUs. The stream is complete and always the same, and
// observation does not change the machine.
#include <gtest/gtest.h>

#include <array>

#include "base/hash.h"
#include "kernel_store/kernel_cache.h"
#include "vm/boot/boot.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kMillion = 1'000'000;
constexpr const char* kCommands =
    "echo go; ls /proc >/dev/null; ls -R /sys >/dev/null; cat /proc/cpuinfo >/dev/null";

// A hash and counts of everything that was reported.
class Fold : public TapSink {
 public:
  void on_batch(const Cpu& cpu, std::span<const Access> accesses, uint64_t first_step) override {
    for (const Access& a : accesses) {
      hash = combine(hash, first_step + a.retired, cpu.id, a.pc().raw, a.address().raw, a.value, a.size,
                     a.physical, a.op_bits | a.modify_bits << 8 | a.ring << 16 | a.wrote << 18);
      ++count[a.op_bits];
      if (a.size > 8) ++wide;
    }
  }
  void on_event(const Cpu& cpu, const CpuEvent& event, uint64_t step) override {
    hash =
        combine(hash, step, cpu.id, static_cast<uint64_t>(event.kind), event.pc, event.number, event.value);
    ++events[static_cast<size_t>(event.kind)];
  }
  uint64_t of(OpKind kind) const { return count[static_cast<size_t>(kind)]; }
  uint64_t of(CpuEvent::Kind kind) const { return events[static_cast<size_t>(kind)]; }

  uint64_t hash = 0;
  std::array<uint64_t, kOpKinds> count{};
  std::array<uint64_t, 10> events{};
  uint64_t wide = 0;
};

class Observe : public testing::Test {
 public:
  static void SetUpTestSuite() {
    const Result<KernelCache> cache = KernelCache::open();
    if (!cache.ok() || !cache->has(kDefaultKernel)) return;
    Result<Booted> machine = boot({.run = kCommands, .pc = {.cpus = 2}});
    CHECK(machine.ok(), "{}", machine.ok() ? "" : machine.error().message);
    pc_ = std::move(machine->pc);
    // From here on programs start: system calls, page faults, both rings, timers, several address spaces.
    std::string said;
    while (said.find("go") == std::string::npos) {
      ASSERT_EQ(pc_->run(kMillion / 10), PcStop::Budget) << said;
      said += pc_->devices().take_console_output();
    }
    start_ = pc_->take();
  }
  static void TearDownTestSuite() { pc_.reset(); }
  void SetUp() override {
    if (pc_ == nullptr) GTEST_SKIP() << "debian:6.1 is not in the cache: scripts/fetch-kernel fetches it";
    pc_->restore(start_);
  }

 protected:
  struct Seen {
    Fold fold;
    uint64_t state = 0;
  };
  Seen observe(uint64_t instructions, const TapFilter& filter, std::span<const uint64_t> slices = {}) {
    pc_->restore(start_);
    Seen seen;
    Tap tap(seen.fold, filter);
    pc_->attach(&tap);
    for (uint64_t i = 0, done = 0; done < instructions; ++i) {
      const uint64_t size = slices.empty() ? instructions : slices[i % slices.size()];
      const uint64_t part = std::min(size, instructions - done);
      EXPECT_EQ(pc_->run(part), PcStop::Budget);
      done += part;
    }
    pc_->attach(nullptr);
    seen.state = pc_->state_hash();
    return seen;
  }

  static inline std::unique_ptr<Pc> pc_;
  static inline Pc::Checkpoint start_ = 0;
};

constexpr TapFilter kAll{.calls = true, .edges = true};

TEST_F(Observe, TheStreamDoesNotDependOnSlices) {
  const Seen whole = observe(4 * kMillion, kAll);
  const uint64_t odd[] = {1, 999, 17, 20'000, 3};
  const Seen sliced = observe(4 * kMillion, kAll, odd);
  EXPECT_EQ(whole.fold.hash, sliced.fold.hash);
  EXPECT_EQ(whole.state, sliced.state);
  // The observed stretch contains enough of everything.
  EXPECT_GT(whole.fold.of(OpKind::Load), kMillion / 2);
  EXPECT_GT(whole.fold.of(OpKind::Store), kMillion / 4);
  EXPECT_GT(whole.fold.of(OpKind::ReadModifyWrite), 1000u);
  EXPECT_GT(whole.fold.of(OpKind::CompareExchange), 1000u);
  EXPECT_GT(whole.fold.of(OpKind::Call), 10'000u);
  EXPECT_GT(whole.fold.wide, 100u);
  EXPECT_GT(whole.fold.of(CpuEvent::Kind::SystemCall), 10u);
  EXPECT_GT(whole.fold.of(CpuEvent::Kind::Exception), 10u);
  EXPECT_GT(whole.fold.of(CpuEvent::Kind::AddressSpace), 1u);
}

TEST_F(Observe, LookingChangesNothing) {
  const Seen seen = observe(4 * kMillion, kAll);
  pc_->restore(start_);
  ASSERT_EQ(pc_->run(4 * kMillion), PcStop::Budget);
  EXPECT_EQ(seen.state, pc_->state_hash());
}

TEST_F(Observe, TheStreamIsThatOfDecodingEveryInstructionAnew) {
  const uint64_t length = kMillion / 2;
  const Seen quick = observe(length, kAll);
  pc_->set_caching(false);
  const Seen slow = observe(length, kAll);
  pc_->set_caching(true);
  EXPECT_EQ(quick.fold.count, slow.fold.count);
  EXPECT_EQ(quick.fold.events, slow.fold.events);
  EXPECT_EQ(quick.fold.hash, slow.fold.hash);
  EXPECT_EQ(quick.state, slow.state);
}

TEST_F(Observe, FiltersLeaveOutWhatTheyAreToldTo) {
  class Check : public TapSink {
   public:
    void on_batch(const Cpu& cpu, std::span<const Access> accesses, uint64_t) override {
      for (const Access& a : accesses) {
        ++count;
        rings |= 1u << a.ring;
        if (a.address().raw < first || a.address().raw > last) ++outside;
        if (a.ring == 0 && (a.address().raw ^ cpu.regs.gpr[kRsp]) < 16384) ++stack;
      }
    }
    void on_event(const Cpu&, const CpuEvent&, uint64_t) override {}
    uint64_t first = 0, last = ~uint64_t{0};
    uint64_t count = 0, outside = 0, stack = 0;
    unsigned rings = 0;
  };
  const auto look = [&](TapFilter filter) {
    Check check;
    check.first = filter.first;
    check.last = filter.last;
    filter.events = false;
    pc_->restore(start_);
    Tap tap(check, filter);
    pc_->attach(&tap);
    // One instruction at a time, so that the stack pointer is known.
    for (int i = 0; i < 20'000; ++i) pc_->run(1);
    pc_->attach(nullptr);
    return check;
  };
  const Check all = look({});
  EXPECT_EQ(all.outside, 0u);
  EXPECT_GT(all.stack, 100u);
  EXPECT_EQ(look({.rings = 1}).rings & ~1u, 0u);
  const Check no_stack = look({.own_stack = false});
  EXPECT_LT(no_stack.count, all.count);
  // Few accesses are left out because their instruction itself changes the stack pointer.
  EXPECT_LT(no_stack.stack, all.stack / 50);
  const Check high = look({.first = 0xffff800000000000, .last = ~uint64_t{0}});
  EXPECT_GT(high.count, 0u);
  EXPECT_EQ(high.outside, 0u);
}

}  // namespace
}  // namespace slalom::vm
