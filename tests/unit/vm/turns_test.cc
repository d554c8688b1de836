// Turns of CPUs without control: their length varies, an exchange loop that waits for another CPU ends them
// early, and they do not depend on how the run is sliced.
#include <gtest/gtest.h>

#include <set>

#include "unit/vm/tiny_code.h"
#include "unit/vm/tiny_machine.h"
#include "vm/pc/pc.h"

namespace slalom::vm {
namespace {

constexpr Physical kWaiter = 0x20000;
constexpr uint32_t kTaken = 0x100100;

// CPU 0 works forever. CPU 1 runs `waiter`.
std::unique_ptr<Pc> make_worker_and(const TinyCode& waiter) {
  TinyCode worker;
  worker.increment().add({0xeb, 0xf3});  // jmp to its start
  std::unique_ptr<Pc> pc = make_tiny(worker.bytes, 2);
  pc->ram().write(kWaiter, waiter.bytes);
  Pc::Rest rest = pc->rest();
  rest.cpus[1] = rest.cpus[0];
  rest.cpus[1].gpr[kRip] = kWaiter;
  rest.privileges[1] = rest.privileges[0];
  CHECK(pc->set_rest(rest).ok(), "the second CPU");
  const uint8_t one[] = {1};
  pc->ram().write(kTaken, one);
  return pc;
}

// mov eax, 1; 1: xchg [kTaken], eax; test eax, eax; jnz 1b
TinyCode exchanging() {
  return TinyCode().add({0xb8}).word(1).add({0x87, 0x05}).word(kTaken).add({0x85, 0xc0, 0x75, 0xf6});
}
// mov ecx, 1; 1: xor eax, eax; lock cmpxchg [kTaken], ecx; jnz 1b
TinyCode comparing() {
  TinyCode code;
  code.add({0xb9}).word(1);
  return code.add({0x31, 0xc0, 0xf0, 0x0f, 0xb1, 0x0d}).word(kTaken).add({0x75, 0xf4});
}
// 1: xor eax, eax; xor edx, edx; lock cmpxchg8b [kTaken]; jnz 1b
TinyCode comparing_eight_bytes() {
  TinyCode code;
  code.add({0x31, 0xc0, 0x31, 0xd2, 0xf0, 0x0f, 0xc7, 0x0d}).word(kTaken);
  return code.add({0x75, 0xf2});
}
// 1: mov eax, 1; xchg [kTaken], eax; mov dword [kTaken], 0; jmp 1b: its exchange always succeeds
TinyCode getting_on() {
  TinyCode code;
  code.add({0xb8}).word(1).add({0x87, 0x05}).word(kTaken).store(kTaken, 0);
  return code.add({0xeb, 0xe9});
}

double share_of_second(Pc& pc) {
  pc.run(2'000'000);
  return static_cast<double>(pc.cpu(1).regs.retired) / static_cast<double>(pc.executed());
}

TEST(Turns, AreOfManyLengths) {
  const auto pc = make_tiny(TinyCode().increment().add({0xeb, 0xf3}).bytes, 1);
  std::set<uint32_t> lengths;
  uint64_t sum = 0;
  constexpr unsigned kTurns = 200;
  for (unsigned turn = 0; turn < kTurns; ++turn) {
    pc->run(1);
    const uint32_t length = pc->turns().quantum + 1;
    EXPECT_GE(length, 10'000u);
    EXPECT_LT(length, 30'000u);
    lengths.insert(length);
    sum += length;
    pc->run(length - 1);
    EXPECT_EQ(pc->turns().quantum, 0u);
  }
  EXPECT_GT(lengths.size(), kTurns / 2);
  EXPECT_NEAR(static_cast<double>(sum) / kTurns, 20'000, 2'000);
}

TEST(Turns, EndWhereTheSameExchangeFailsAgainAndAgain) {
  for (const TinyCode& waiter : {exchanging(), comparing(), comparing_eight_bytes()})
    EXPECT_LT(share_of_second(*make_worker_and(waiter)), 0.01);
  EXPECT_NEAR(share_of_second(*make_worker_and(getting_on())), 0.5, 0.1);
}

struct CountingSink final : TapSink {
  void on_batch(const Cpu&, std::span<const Access> accesses, uint64_t) override { count += accesses.size(); }
  void on_event(const Cpu&, const CpuEvent&, uint64_t) override {}
  size_t count = 0;
};

// Also if a turn ends in the middle of observed code, or at a watched exchange.
TEST(Turns, AreTheSameWhileObserved) {
  for (const TinyCode& waiter : {exchanging(), comparing(), comparing_eight_bytes(), getting_on()}) {
    constexpr uint64_t kMost = 200'000;
    const auto plain = make_worker_and(waiter), observed = make_worker_and(waiter),
               watched = make_worker_and(waiter);
    plain->run(kMost);
    CountingSink sink;
    Tap tap(sink, {.rings = 1}), watching(sink, {.rings = 1});
    observed->attach(&tap);
    observed->run(kMost);
    observed->attach(nullptr);
    EXPECT_GT(sink.count, 1'000u);
    EXPECT_EQ(plain->state_hash(), observed->state_hash());
    watching.watches = {{.first = kTaken, .last = kTaken + 3, .after = true}};
    watched->attach(&watching);
    unsigned stops = 0;
    while (watched->executed() < kMost) stops += watched->run(kMost - watched->executed()) == PcStop::Access;
    watched->attach(nullptr);
    EXPECT_GT(stops, 10u);
    EXPECT_EQ(plain->state_hash(), watched->state_hash());
  }
}

TEST(Turns, AreTheSameInSlices) {
  for (const TinyCode& waiter : {exchanging(), comparing(), comparing_eight_bytes(), getting_on()}) {
    constexpr uint64_t kMost = 200'000;
    const auto whole = make_worker_and(waiter), sliced = make_worker_and(waiter),
               anew = make_worker_and(waiter);
    whole->run(kMost);
    constexpr uint64_t kSlices[] = {1, 2, 3, 5, 7, 64, 997};
    for (size_t i = 0; sliced->executed() < kMost; ++i)
      sliced->run(std::min(kSlices[i % std::size(kSlices)], kMost - sliced->executed()));
    EXPECT_EQ(whole->state_hash(), sliced->state_hash());
    anew->set_caching(false);
    anew->run(kMost);
    EXPECT_EQ(whole->state_hash(), anew->state_hash());
  }
}

}  // namespace
}  // namespace slalom::vm
