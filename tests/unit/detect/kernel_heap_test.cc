// A kernel's memory: hand-written streams of allocations, frees and accesses, each with an innocent twin.
#include "detect/kernels/kernel_heap.h"

#include <gtest/gtest.h>

#include "unit/detect/kernel_stream.h"

namespace slalom::test {
namespace {

constexpr uint64_t kObject = 0xffff'8880'0000'1000, kSize = 24, kStack = 0xffff'c900'0000'7f00;

Titles titles(const Stream& stream) {
  KernelHeapDetector detector(stream.places);
  Titles found;
  for (const Verdict& verdict : stream.verdicts(detector)) found.push_back(verdict.title);
  return found;
}
Stream& alloc(Stream& s, int cpu = 0, uint64_t object = kObject) {
  return s.event(cpu, OpKind::Alloc, "m:make+0x10", object, kSize, "kmalloc-32");
}
Stream& free(Stream& s, int cpu = 0, uint64_t object = kObject, uint64_t state = 0) {
  return s.event(cpu, OpKind::Free, "m:drop+0x20", object, kSize, "kmalloc-32", state);
}
const Titles kUse = {"use after free: in m:use, freed in m:drop"};
const Titles kTwice = {"double free: in m:drop, freed before in m:drop"};

TEST(KernelHeap, AUseAfterFreeIsToldWithItsHistory) {
  Stream s;
  alloc(s);
  s.call(1, "do_syscall_64+0x5", "m:ioctl", kStack).call(1, "m:ioctl+0x44", "m:drop", kStack - 16);
  free(s, 1);
  s.ret(1, "m:drop+0x30", kStack - 8);
  s.call(0, "do_syscall_64+0x5", "m:ioctl", kStack + 0x10000);
  s.event(0, OpKind::Lock, "m:use+0x1", 0x77, 0, "spin_lock");
  s.call(0, "m:ioctl+0x60", "m:use", kStack + 0x10000 - 16);
  s.call(0, "m:use+0x4", "__list_del_entry_valid", kStack + 0x10000 - 32);
  s.load(0, "__list_del_entry_valid+0x3", kObject + 8, 8, 0xdead);
  KernelHeapDetector detector(s.places);
  const std::vector<Verdict> found = s.verdicts(detector);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].title, kUse[0]);
  EXPECT_EQ(found[0].kind, BugKind::UseAfterFree);
  EXPECT_EQ(found[0].severity, Severity::Failure);
  EXPECT_EQ(found[0].detail,
            "The object: kmalloc-32 of 24 bytes at 0xffff888000001000. Allocated by cpu1 in m:make+0x10. "
            "Freed by cpu2 in m:drop+0x20 <- m:ioctl+0x44. Then a load of 8 bytes at its offset 0x8, value "
            "0xdead, by cpu1 in __list_del_entry_valid+0x3 <- m:use+0x4 <- m:ioctl+0x60. Held there: 0x77.");
  ASSERT_EQ(found[0].evidence.size(), 3u);
  EXPECT_EQ(found[0].evidence[1].agent, Stream::id(1));
}

TEST(KernelHeap, LiveMemoryMayBeUsed) {
  Stream s;
  alloc(s).store(0, "m:use+0x1", kObject);
  free(s);
  alloc(s, 1).store(1, "m:use+0x1", kObject);  // a new object at the same address
  EXPECT_EQ(titles(s), Titles{});
  free(s, 1).store(0, "m:use+0x1", kObject + 16);
  EXPECT_EQ(titles(s), kUse);
}

TEST(KernelHeap, MemoryFromBeforeIsKnownOnceItIsFree) {
  Stream s;
  s.store(0, "m:use+0x1", kObject);
  free(s, 1);
  EXPECT_EQ(titles(s), Titles{});
  s.load(0, "m:use+0x1", kObject + kSize - 8).load(0, "m:use+0x9", kObject + kSize);
  EXPECT_EQ(titles(s), kUse);
}

TEST(KernelHeap, TheAllocatorsOwnAccessesAreNoUses) {
  for (const bool allocator : {true, false}) {
    Stream s;
    free(s);
    s.store(0, allocator ? "__slab_free+0x10" : "m:use+0x1", kObject);
    EXPECT_EQ(titles(s), allocator ? Titles{} : kUse);
    Stream clears;
    free(clears);
    clears.call(0, "m:use+0x2", allocator ? "kmem_cache_alloc" : "m:clear", kStack);
    clears.call(0, "x+0x1", "memset", kStack - 16).store(0, "memset+0x4", kObject);
    EXPECT_EQ(titles(clears).size(), allocator ? 0u : 1u);
    Stream jumps;  // m:alloc_path ends in a jump to the allocator
    free(jumps);
    jumps.call(0, "m:use+0x2", "m:alloc_path", kStack);
    jumps.call(0, allocator ? "kmem_cache_alloc+0x1f7" : "m:alloc_path+0x9", "memset", kStack - 16);
    jumps.store(0, "memset+0x4", kObject);
    EXPECT_EQ(titles(jumps).size(), allocator ? 0u : 1u);
  }
}

TEST(KernelHeap, WhatRcusReadersMayStillReadIsNoUseAfterFree) {
  for (const uint64_t state : {1, 0}) {
    Stream s;
    alloc(s);
    free(s, 0, kObject, state);
    s.load(1, "m:use+0x1", kObject);
    EXPECT_EQ(titles(s), state != 0 ? Titles{} : kUse);
    free(s, 1, kObject, state);
    EXPECT_EQ(titles(s).back(), kTwice[0]);
  }
}

TEST(KernelHeap, PagesThatBecomeSomethingElseAreForgotten) {
  for (const bool pages : {true, false}) {
    Stream s;
    free(s);
    if (pages) s.event(1, OpKind::Alloc, "m:make+0x1", kObject & ~0xfffull, 4096, "pages", 1);
    s.store(1, "m:use+0x1", kObject);
    EXPECT_EQ(titles(s), pages ? Titles{} : kUse);
  }
}

TEST(KernelHeap, AReadThatBeginsInAnotherObjectIsNoUse) {
  Stream s;
  free(s);
  s.load(0, "m:use+0x1", kObject - 4, 8);
  EXPECT_EQ(titles(s), Titles{});
}

TEST(KernelHeap, ADoubleFree) {
  for (const bool again : {true, false}) {
    Stream s;
    alloc(s);
    free(s);
    if (again) alloc(s, 1);
    free(s, 1);
    EXPECT_EQ(titles(s), again ? Titles{} : kTwice);
  }
}

TEST(KernelHeap, AnInvalidFree) {
  Stream s;
  alloc(s);
  free(s, 0, kObject + 8);
  EXPECT_EQ(titles(s), Titles{"invalid free: m:drop frees the middle of an object"});
  Stream fixed;
  fixed.event(0, OpKind::Free, "m:drop+0x20", 0xffff'ffff'c000'0040, 0, "kfree");
  EXPECT_EQ(titles(fixed), Titles{"invalid free: m:drop frees 0xffffffffc0000040"});
  Stream module;  // a kernel frees a module's memory like this
  module.event(0, OpKind::Free, "m:drop+0x20", 0xffff'ffff'c000'0040, 0, "vfree");
  EXPECT_EQ(titles(module), Titles{});
}

TEST(KernelHeap, ItGoesOnFromACheckpoint) {
  Stream s;
  alloc(s);
  s.call(0, "a+0x1", "m:use", kStack);
  free(s, 1);
  s.store(0, "m:use+0x1", kObject);
  KernelHeapDetector whole(s.places), half(s.places);
  const std::vector<Verdict> expected = s.verdicts(whole);
  half.reset();
  s.feed(half, 0, 3);
  const auto saved = half.save();
  free(s, 0);
  s.feed(half, 3, 5);
  half.restore(*saved);
  s.feed(half, 3, 4);
  half.on_end(Exited{});
  std::vector<Verdict> found;
  half.harvest(found);
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace slalom::test
