// Updates that lose what an interrupt wrote: hand-written streams, each with a twin that loses nothing.
#include "detect/kernels/kernel_interrupted.h"

#include <gtest/gtest.h>

#include "unit/detect/kernel_stream.h"

namespace slalom::test {
namespace {

constexpr uint64_t kPart = 0x1000;
const Titles kLost = {"interrupted update: m:add / m:fold"};

// Returns the titles for a CPU's accesses before and after an interrupt that stores to kPart, on that CPU or
// another.
template <typename Before, typename After>
Titles titles(Before before, After after, int cpu = 0, uint64_t address = kPart) {
  Stream s;
  before(s);
  const AgentId interrupt = Stream::id(cpu).interrupt(0x1c);
  s.interrupt(interrupt, cpu, 0xfb);
  s.add(interrupt, {s.make(OpKind::Store, "m:fold+0x8", address, true, 8, 0)});
  after(s);
  KernelInterruptedDetector detector(s.places);
  Titles found;
  for (const Verdict& verdict : s.verdicts(detector)) found.push_back(verdict.title);
  return found;
}

void reads(Stream& s) {
  s.load(0, "m:add+0x4", kPart, 8, 1);
}
void stores(Stream& s) {
  s.store(0, "m:add+0xc", kPart, 8, 2);
}

TEST(KernelInterrupted, WhatAnInterruptWroteIsLost) {
  EXPECT_EQ(titles(reads, stores), kLost);
}

TEST(KernelInterrupted, NotIfItIsReadAgain) {
  EXPECT_EQ(titles(reads,
                   [](Stream& s) {
                     reads(s);
                     stores(s);
                   }),
            Titles{});
  // The instruction itself reads what it changes.
  EXPECT_EQ(titles(reads,
                   [](Stream& s) {
                     s.add(Stream::id(0), {s.make(OpKind::Load, "m:add+0xc", kPart, false, 8, 0),
                                           s.make(OpKind::Store, "m:add+0xc", kPart, true, 8, 1)});
                   }),
            Titles{});
}

TEST(KernelInterrupted, NotIfNothingWasReadBefore) {
  EXPECT_EQ(titles([](Stream&) {}, stores), Titles{});
  EXPECT_EQ(titles(
                [](Stream& s) {
                  reads(s);
                  stores(s);
                },
                stores),
            Titles{});
}

TEST(KernelInterrupted, NotIfItWroteElsewhereOrOnAnotherCpu) {
  EXPECT_EQ(titles(reads, stores, 0, kPart + 8), Titles{});
  EXPECT_EQ(titles(reads, stores, 1), Titles{});
}

TEST(KernelInterrupted, PartsOfWordsCount) {
  const auto half = [](Stream& s) { s.store(0, "m:add+0xc", kPart + 4, 4, 2); };
  EXPECT_EQ(titles(reads, half), kLost);
  EXPECT_EQ(titles([](Stream& s) { s.load(0, "m:add+0x4", kPart, 4, 1); }, half), Titles{});
}

// The CPU's next thread stores there. It has lost nothing.
TEST(KernelInterrupted, OneThatReadsAndAnotherThatStoresAreTwo) {
  EXPECT_EQ(titles(reads, [](Stream& s) { s.store(0, "m:other+0x4", kPart, 8, 2); }), Titles{});
  // Unless one called the other.
  EXPECT_EQ(titles(
                [](Stream& s) {
                  s.call(0, "m:ioctl+0x4", "m:add", 0xffff'c900'0000'7f00);
                  s.call(0, "m:add+0x2", "m:get", 0xffff'c900'0000'7ef0);
                  s.load(0, "m:get+0x4", kPart, 8, 1);
                  s.ret(0, "m:get+0x8", 0xffff'c900'0000'7ef8);
                },
                stores),
            kLost);
}

TEST(KernelInterrupted, TheKernelsOwnBusinessIsLeftOut) {
  EXPECT_EQ(titles([](Stream& s) { s.load(0, "update_curr+0x4", kPart, 8, 1); },
                   [](Stream& s) { s.store(0, "update_curr+0xc", kPart, 8, 2); }),
            Titles{});
}

TEST(KernelInterrupted, DetailAndEvidence) {
  Stream s;
  reads(s);
  const AgentId interrupt = Stream::id(0).interrupt(0x1c);
  s.interrupt(interrupt, 0, 0xfb);
  s.add(interrupt, {s.make(OpKind::Store, "m:fold+0x8", kPart, true, 8, 0)});
  stores(s);
  KernelInterruptedDetector detector(s.places);
  const std::vector<Verdict> verdicts = s.verdicts(detector);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].severity, Severity::Race);
  EXPECT_TRUE(verdicts[0].detail.starts_with(
      "cpu1 read 0x1 from 0x1000 at m:add+0x4; an interrupt wrote 0x0 there, at m:fold+0x8; then m:add+0xc "
      "stored "
      "0x2, without having read it again. What the interrupt wrote is lost: interrupts were on.\n"))
      << verdicts[0].detail;
  ASSERT_EQ(verdicts[0].evidence.size(), 3u);
  EXPECT_EQ(verdicts[0].evidence[1].agent, interrupt);
}

}  // namespace
}  // namespace slalom::test
