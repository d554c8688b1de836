// Hangs: a flow that sleeps forever is a deadlock, even if all other flows are done. A flow that will be
// woken, or sleeps until a timeout, is not.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "kernel_store/kernel_cache.h"
#include "vm/control/kernel_machine.h"
#include "vm/guests/linux/linux_kernel.h"
#include "vm/guests/linux/linux_traits.h"
#include "vm/scenario/kernel_names.h"
#include "vm/scenario/kernel_test.h"
#include "vm/scenario/prepare.h"

namespace slalom::vm {
namespace {

constexpr const char* kKernel = "debian:6.1";
constexpr uint64_t kMostInstructions = 50'000'000;

class Nobody : public EventSink {
  void on_accesses(std::span<const Access>, const BatchHeader&) override {}
  void on_event(const Event&) override {}
  void on_end(const Outcome&) override {}
};

class Hangs : public testing::Test {
 protected:
  void SetUp() override {
    const Result<KernelCache> cache = KernelCache::open();
    if (!cache.ok() || !cache->has(kKernel))
      GTEST_SKIP() << kKernel << " is not in the cache: scripts/fetch-kernel fetches it";
  }
  // One flow makes `calls`, another one makes `others`.
  static std::unique_ptr<KernelMachine> machine_of(const std::string& calls, const std::string& others) {
    const Result<KernelTest> test = parse_kernel_test(
        fmt::format(
            "setup = [\"mkfifo /tmp/p\"]\n[[flow]]\ncalls = '''\n{}'''\n[[flow]]\ncalls = '''\n{}'''\n",
            calls, others),
        "x.toml");
    CHECK(test.ok(), "{}", test.ok() ? "" : test.error().message);
    Result<PreparedTest> prepared = prepare(*test);
    CHECK(prepared.ok(), "{}", prepared.ok() ? "" : prepared.error().message);
    const Result<GuestKernel> kernel = load_guest_kernel(prepared->machine.kernel);
    CHECK(kernel.ok(), "{}", kernel.ok() ? "" : kernel.error().message);
    return std::make_unique<KernelMachine>(
        std::move(prepared->machine),
        KernelMachineOptions{
            .flows = 2,
            .test = std::make_shared<const TestInput>(TestInput{.programs = prepared->images}),
            .guest = linux_traits(),
            .early_timers = 0},
        std::make_shared<KernelNames>(kernel->symbols, std::vector<std::string>{"one", "other"}, 2));
  }
  static Outcome run(KernelMachine& machine, uint64_t seed) {
    Rng rng(seed);
    Nobody nobody;
    CHECK(machine.reset({.policy = {.where = ChoicePolicy::Where::Nowhere}, .max_steps = kMostInstructions})
              .ok(),
          "the machine");
    Stop now = machine.start(nobody);
    while (const ChoicePoint* point = std::get_if<ChoicePoint>(&now)) {
      const std::span<const Option> options = point->options();
      now = machine.resume({.next = options[rng.below(options.size())].agent});
    }
    return std::get<Outcome>(now);
  }
  static std::string in_words(const KernelMachine& machine, const Outcome& outcome) {
    if (std::holds_alternative<Exited>(outcome)) return "ends";
    const auto* deadlock = std::get_if<Deadlocked>(&outcome);
    if (deadlock == nullptr) return fmt::format("outcome {}", outcome.index());
    std::string words = "hangs:";
    for (const Deadlocked::Waiting& one : deadlock->waiting) {
      const std::string place = machine.names().place(one.pc);
      words += fmt::format(" {} in {}", machine.names().agent(one.agent), place.substr(0, place.find('+')));
    }
    return words;
  }
  static void expect(KernelMachine& machine, const std::string& words) {
    for (const uint64_t seed : {1u, 2u}) EXPECT_EQ(in_words(machine, run(machine, seed)), words);
  }
};

const std::string kReader = "fd = open(\"/tmp/p\", O_RDWR)\nread(fd, &b(4), 1)\n";

TEST_F(Hangs, OneSleepsForEverAndTheOtherIsDone) {
  expect(*machine_of(kReader, "getppid()\n"), "hangs: one in pipe_read");
  expect(*machine_of("getppid()\n", kReader), "hangs: other in pipe_read");
}

TEST_F(Hangs, OneSleepsUntilTheOtherWakesIt) {
  expect(*machine_of(kReader, "fd = open(\"/tmp/p\", O_RDWR)\nwrite(fd, \"x\", 1)\n"), "ends");
}

TEST_F(Hangs, OneSleepsForATimeAndTheOtherIsDone) {
  expect(*machine_of("nanosleep({u64 5, u64 0}, 0)\n", "getppid()\n"), "ends");
  // Sockets have another kind of timer.
  const std::string socket = "s = socket(AF_UNIX, SOCK_DGRAM, 0)\n";
  const std::string limit = "setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, {u64 4, u64 0}, 16)\n";
  const std::string read = "read(s, &b(4), 1)\n";
  expect(*machine_of(socket + limit + read, "getppid()\n"), "ends");
  expect(*machine_of(socket + read, "getppid()\n"), "hangs: one in __skb_wait_for_more_packets");
}

}  // namespace
}  // namespace slalom::vm
