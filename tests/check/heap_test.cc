// Heap errors of a slalom::check that show in every order, and so in the first execution.
#include <gtest/gtest.h>
#include <slalom/check.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "options.h"
#include "unseen.h"

namespace {

using slalom::check;
using slalom::CheckResult;

constexpr int kBlocks = 40;  // more than libc caches per size before it uses its other lists

TEST(CheckHeap, UseAfterFreeInEveryOrder) {
  const CheckResult result = check(options("random", 20), [] {
    volatile uint64_t* blocks[kBlocks];
    for (auto& block : blocks) block = static_cast<uint64_t*>(std::malloc(40));
    for (auto* block : blocks) std::free(const_cast<uint64_t*>(block));
    for (auto* block : blocks) *block = 0x5a5a5a5a5a5a5a5a;  // overwrites libc's list pointers
    void* volatile large = std::malloc(100'000);             // libc examines its lists now
    for (int i = 0; i < kBlocks; ++i) std::free(std::malloc(40));
    std::free(large);
  });
  ASSERT_FALSE(result.findings.empty()) << result.report;
  EXPECT_EQ(result.findings.front().kind, "use-after-free") << result.report;
}

TEST(CheckHeap, EachByteOfAFreedBlockIsFreed) {
  for (const size_t size : {1u, 16u, 17u, 40u, 48u}) {
    const CheckResult result = check(options("random", 2), [size] {
      char* const block = static_cast<char*>(std::malloc(size));
      volatile char* volatile last = block + size - 1;
      std::free(block);
      *last = 1;
    });
    ASSERT_FALSE(result.findings.empty()) << size << result.report;
    EXPECT_EQ(result.findings.front().kind, "use-after-free") << size << result.report;
  }
}

TEST(CheckHeap, DoubleFreeInEveryOrder) {
  const CheckResult result = check(options("random", 20), [] {
    void* volatile block = std::malloc(40);
    std::free(block);
    std::free(block);
  });
  ASSERT_FALSE(result.findings.empty()) << result.report;
  EXPECT_EQ(result.findings.front().kind, "double-free") << result.report;
}

TEST(CheckHeap, MemoryThatGrowsAgainAndAgain) {
  slalom::CheckOptions enough = options("random", 20);
  enough.max_steps = 1'000'000;
  const CheckResult result = check(enough, [] {
    char* text = nullptr;
    for (size_t size = 1; size < 5'000; size += 7) {
      text = static_cast<char*>(std::realloc(text, size));
      text[size - 1] = static_cast<char>(size);
      for (size_t i = 1; i <= size; i += 7)
        slalom::expect(text[i - 1] == static_cast<char>(i), "it was lost");
    }
    std::free(text);
  });
  EXPECT_TRUE(result.ok) << result.report;
}

// std::mutex has no destructor that reports misuse.
void delete_mutex(bool wait) {
  auto* mutex = new std::mutex;
  std::thread other([=] { std::lock_guard held(*mutex); });
  if (wait) other.join();
  delete mutex;
  if (!wait) other.join();
}

TEST(CheckHeap, MutexThatIsDeletedBeforeItIsUsed) {
  const CheckResult result = check(options("random", 50), [] { delete_mutex(false); });
  ASSERT_FALSE(result.findings.empty()) << result.report;
  EXPECT_EQ(result.findings.front().kind, "use-after-free") << result.report;
  const CheckResult fixed = check(options("random", 50), [] { delete_mutex(true); });
  EXPECT_TRUE(fixed.ok) << fixed.report;
}

}  // namespace
