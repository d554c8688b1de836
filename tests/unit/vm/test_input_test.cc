// What the flows run is an input of an execution: one machine runs many tests, as if it were made for each.
#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "unit/vm/two_flows.h"

namespace slalom::vm {
namespace {

constexpr uint32_t kImage = 0x100100;

// Gets four bytes from slalom, adds them to the counter, and returns them as its result.
TinyCode adds_its_program(uint32_t flow) {
  const uint32_t image = kImage + 0x100 * flow;
  TinyCode code;
  code.add({0xbf}).word(flow).add({0xbe}).word(image).add({0xba}).word(4);  // edi, esi, edx
  code.add({0xb8}).word(SLALOM_PROGRAM).add({0x0f, 0x1f, 0x84, 0x00}).word(0x6c616c73);
  code.add({0xa1}).word(0x100000);     // mov eax, [counter]
  code.add({0x03, 0x05}).word(image);  // add eax, [image]
  code.add({0xa3}).word(0x100000);     // mov [counter], eax
  code.add({0xba}).word(4);            // edx
  code.add({0xb8}).word(SLALOM_DONE).add({0x0f, 0x1f, 0x84, 0x00}).word(0x6c616c73);
  return code.add({0xeb, 256 - 15});  // again: back to mov eax
}

std::shared_ptr<const TestInput> test_of(uint8_t first, uint8_t second) {
  TestInput test{.programs = {{first, 0, 0, 0}, {second, 0, 0, 0}}};
  test.judge = [first](const TestInput::Results& results) {
    return results[0][0] == first ? "" : "these are the results of another test";
  };
  return std::make_shared<const TestInput>(std::move(test));
}

std::unique_ptr<KernelMachine> any_test(std::shared_ptr<const TestInput> test = nullptr) {
  return make_flows({adds_its_program(0), adds_its_program(1)}, std::move(test));
}

struct Ran {
  std::vector<std::vector<uint8_t>> results;
  uint32_t counter = 0;
  uint64_t state_hash = 0, digest = 0;
  bool exited = false;
  bool operator==(const Ran&) const = default;
};

Ran run(KernelMachine& machine, std::shared_ptr<const TestInput> test, uint64_t seed) {
  Quiet sink;
  Rng rng(seed);
  EXPECT_TRUE(machine.reset({.max_steps = 100'000, .test = std::move(test)}).ok());
  Stop stop = machine.start(sink);
  while (std::holds_alternative<ChoicePoint>(stop)) {
    const auto options = std::get<ChoicePoint>(stop).options();
    stop = machine.resume({.next = options[rng.below(options.size())].agent});
  }
  return {machine.results(), counter(machine), machine.pc().state_hash(), machine.ending().digest,
          std::holds_alternative<Exited>(std::get<Outcome>(stop))};
}

TEST(TestInputs, OfOneMachineGiveWhatTwoMachinesGive) {
  const auto a = test_of(3, 5), b = test_of(20, 40);
  const auto shared = any_test();
  std::set<uint32_t> sums;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto for_a = any_test(a), for_b = any_test(b);
    const Ran of_a = run(*for_a, nullptr, seed), of_b = run(*for_b, nullptr, seed);
    EXPECT_TRUE(of_a.exited && of_b.exited);
    EXPECT_EQ(of_a.results, a->programs);
    EXPECT_NE(of_a.state_hash, of_b.state_hash);
    EXPECT_EQ(run(*shared, a, seed), of_a) << seed;
    EXPECT_EQ(run(*shared, b, seed), of_b) << seed;
    EXPECT_EQ(run(*for_a, b, seed), of_b) << seed;
    sums.insert(of_b.counter);
  }
  EXPECT_EQ(sums, (std::set<uint32_t>{20, 40, 60}));
}

TEST(TestInputs, AreMissingIfNobodyGivesThem) {
  const auto machine = any_test();
  const Ran ran = run(*machine, nullptr, 1);
  EXPECT_TRUE(ran.exited);
  EXPECT_EQ(ran.counter, 0u);
}

}  // namespace
}  // namespace slalom::vm
