// Kernel memory that stays: hand-written streams, with the numbers of serial orders at their end.
#include "detect/kernels/kernel_leak.h"

#include <gtest/gtest.h>

#include "detect/detector_set.h"
#include "unit/detect/kernel_stream.h"

namespace slalom::test {
namespace {

constexpr uint64_t kLeaked = 0xffff'8880'0000'1000;

Stream& allocates(Stream& s, int cpu, uint64_t object, const std::string& place = "m:make+0x10") {
  return s.event(cpu, OpKind::Alloc, place, object, 96, "kmalloc-96");
}
Stream& frees(Stream& s, int cpu, uint64_t object) {
  return s.event(cpu, OpKind::Free, "m:drop+0x20", object, 96, "kmalloc-96");
}
Stream& may_stay(Stream& s, int64_t count, const std::string& place = "m:make+0x10") {
  return s.event(0, OpKind::Alloc, place, 0, count, {}, kMayStay);
}
std::vector<Verdict> verdicts(const Stream& stream) {
  KernelLeakDetector detector(stream.places);
  return stream.verdicts(detector);
}

TEST(KernelLeak, WhatGoesBeyondSerialOrdersIsTold) {
  Stream s;
  s.call(1, "m:ioctl+0x44", "m:make", 0xffff'c900'0000'7f00);
  allocates(s, 0, kLeaked);
  allocates(s, 1, kLeaked + 0x100);
  may_stay(s, 1);
  const std::vector<Verdict> found = verdicts(s);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, BugKind::Leak);
  EXPECT_EQ(found[0].title, "leak: memory allocated in m:make");
  EXPECT_EQ(found[0].detail,
            "2 kmalloc-96 of 96 bytes stay allocated, where calls one after the other leave at most 1. "
            "0xffff888000001000 was allocated by cpu1 in m:make+0x10. "
            "0xffff888000001100 was allocated by cpu2 in m:make+0x10 <- m:ioctl+0x44.");
  EXPECT_EQ(found[0].evidence.size(), 2u);
}

TEST(KernelLeak, WhatStaysAnywayIsNone) {
  for (const int64_t stays : {1, 2}) {
    Stream s;
    allocates(s, 0, kLeaked);
    allocates(s, 1, kLeaked + 0x100);
    may_stay(s, stays);
    EXPECT_EQ(verdicts(s).size(), stays == 1 ? 1u : 0u);
  }
}

TEST(KernelLeak, WhatIsFreedIsNoneWhoeverFreesIt) {
  Stream s;
  allocates(s, 0, kLeaked);
  frees(s, 1, kLeaked);
  allocates(s, 1, kLeaked);  // a new object at the same address
  frees(s, 0, kLeaked);
  may_stay(s, 0);
  EXPECT_TRUE(verdicts(s).empty());
  allocates(s, 0, kLeaked);
  EXPECT_EQ(verdicts(s).size(), 1u);
}

// Each place has its own count. A place that no serial order knows may leave no memory.
TEST(KernelLeak, PlacesAreCountedForThemselves) {
  Stream s;
  allocates(s, 0, kLeaked, "m:make+0x10");
  allocates(s, 1, kLeaked + 0x100, "m:grow+0x10");
  may_stay(s, 2, "m:make+0x10");
  const std::vector<Verdict> found = verdicts(s);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].title, "leak: memory allocated in m:grow");
}

TEST(KernelLeak, NothingIsJudgedWithoutSerialOrders) {
  Stream s;
  allocates(s, 0, kLeaked);
  EXPECT_TRUE(verdicts(s).empty());
}

TEST(KernelLeak, IsOffUnlessAskedFor) {
  const Places names;
  EXPECT_FALSE(needs_of("console")->memory);
  EXPECT_FALSE(needs_of("console,kernel-race")->memory);
  EXPECT_TRUE(needs_of("console,kernel-leak")->memory);
  for (const DetectorInfo& info : detector_catalogue())
    EXPECT_TRUE(info.name != "kernel-leak" || !info.by_default);
}

}  // namespace
}  // namespace slalom::test
