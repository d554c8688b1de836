// A real kernel whose CPUs are kept until a conflict: a strategy that is asked at few choice points must
// decide as if it were asked at all of them.
#include "support/until_conflict.h"

#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "kernel_store/kernel_cache.h"
#include "support/source_dir.h"
#include "vm/guests/linux/linux_traits.h"
#include "vm/scenario/kernel_names.h"
#include "vm/scenario/kernel_test.h"
#include "vm/scenario/prepare.h"

namespace slalom::vm {
namespace {

constexpr const char* kKernel = "debian:6.1";
constexpr uint64_t kSchedules = 64;

PosSearch search(const KernelTest& test, Asked asked) {
  const auto make = [&]() -> Result<std::unique_ptr<KernelMachine>> {
    TRY_ASSIGN(PreparedTest prepared, prepare(test));
    std::vector<std::string> flows;
    for (const KernelTest::Flow& flow : test.flows) flows.push_back(flow.name);
    return std::make_unique<KernelMachine>(std::move(prepared.machine),
                                           KernelMachineOptions{.flows = static_cast<unsigned>(flows.size()),
                                                                .test = std::make_shared<const TestInput>(
                                                                    TestInput{.programs = prepared.images}),
                                                                .guest = linux_traits()},
                                           std::make_shared<KernelNames>(SymbolTable(), flows, test.cpus));
  };
  const Inputs inputs{.policy = {.where = ChoicePolicy::Where::Nowhere}, .max_steps = 20'000'000};
  return search_with_pos(make, inputs, kSchedules, asked);
}

// Together these programs wait for locks, use timers, interrupt other CPUs, and sleep and wake each other.
class UntilConflictOnAKernel : public testing::TestWithParam<const char*> {};

TEST_P(UntilConflictOnAKernel, ChangesNothing) {
  const Result<KernelCache> cache = KernelCache::open();
  if (!cache.ok() || !cache->has(kKernel))
    GTEST_SKIP() << kKernel << " is not in the cache: scripts/fetch-kernel fetches it";
  const std::string path = source_dir() + "/" + GetParam() + ".toml";
  const std::vector<uint8_t> text = read_file(path).value();
  const KernelTest test =
      parse_kernel_test({reinterpret_cast<const char*>(text.data()), text.size()}, path).value();
  const PosSearch kept = search(test, Asked::AtConflicts), asked = search(test, Asked::Everywhere);
  ASSERT_EQ(kept.schedules.size(), asked.schedules.size());
  for (size_t i = 0; i < kept.schedules.size(); ++i)
    ASSERT_EQ(kept.schedules[i], asked.schedules[i]) << "execution " << i;
  EXPECT_LT(kept.choice_points, asked.choice_points / 3);
}

INSTANTIATE_TEST_SUITE_P(
    Pairs, UntilConflictOnAKernel,
    testing::Values("examples/kernel/pairs/futex-wait-wake", "examples/kernel/pairs/mount-umount",
                    "examples/kernel/pairs/timer-set-delete", "examples/kernel/pairs/tty-write-flush",
                    "bench/kernel/bind-unmount"),
    [](const auto& one) {
      std::string name = std::string(one.param).substr(std::string(one.param).rfind('/') + 1);
      std::erase(name, '-');
      return name;
    });

}  // namespace
}  // namespace slalom::vm
