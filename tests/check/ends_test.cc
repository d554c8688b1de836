// Threads of a slalom::check that end before their function does.
#include <gtest/gtest.h>
#include <pthread.h>
#include <slalom/check.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "options.h"
#include "unseen.h"

namespace {

using slalom::check;
using slalom::CheckResult;

struct Destroyed {
  std::atomic<int>& count;
  ~Destroyed() { ++count; }
};

void* end_it(void* count) {
  const Destroyed destroyed{*static_cast<std::atomic<int>*>(count)};
  pthread_exit(reinterpret_cast<void*>(intptr_t{7}));
}

TEST(CheckEnds, ByPthreadExit) {
  const CheckResult result = check(options("random", 100), [] {
    std::atomic<int> destroyed{0};
    pthread_t threads[2];
    for (pthread_t& thread : threads) pthread_create(&thread, nullptr, end_it, &destroyed);
    for (const pthread_t thread : threads) {
      void* told = nullptr;
      pthread_join(thread, &told);
      slalom::expect(told == reinterpret_cast<void*>(intptr_t{7}), "another result");
    }
    slalom::expect(destroyed == 2, "the stack was not unwound");
  });
  EXPECT_TRUE(result.ok) << result.report;
  EXPECT_EQ(result.executions, 100u);
}

void* count_to_three(void* data) {
  auto& count = *static_cast<std::atomic<int>*>(data);
  for (int i = 0; i < 3; ++i) {
    ++count;
    pthread_testcancel();
  }
  return nullptr;
}

TEST(CheckEnds, ByCancellation) {
  unseen_forget();
  const CheckResult result = check(options("random", 500), [] {
    std::atomic<int> count{0};
    pthread_t thread;
    pthread_create(&thread, nullptr, count_to_three, &count);
    pthread_cancel(thread);
    void* told = nullptr;
    pthread_join(thread, &told);
    slalom::expect(told == PTHREAD_CANCELED || count == 3, "it ended for no reason");
    unseen_note(told == PTHREAD_CANCELED ? count.load() : 4);
  });
  EXPECT_TRUE(result.ok) << result.report;
  for (const int outcome : {1, 2, 3, 4}) EXPECT_GT(unseen_times(outcome), 0) << outcome;
}

// No thread ever writes there. The threads of a check share one real thread, which would block there.
TEST(CheckEnds, ByLosingPatience) {
  slalom::CheckOptions impatient = options("random", 100);
  impatient.patience = 1;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const CheckResult hangs = check(impatient, [&] {
    std::thread reader([&] {
      char byte = 0;
      EXPECT_EQ(read(ends[0], &byte, 1), 1);
    });
    reader.join();
  });
  EXPECT_FALSE(hangs.ok);
  EXPECT_TRUE(hangs.findings.empty());
  EXPECT_NE(hangs.report.find("ends_test.cc"), std::string::npos) << hangs.report;
  EXPECT_NE(hangs.report.find("without an operation"), std::string::npos) << hangs.report;
  close(ends[0]);
  close(ends[1]);
  const CheckResult next = check(impatient, [] { std::thread([] {}).join(); });
  EXPECT_TRUE(next.ok) << next.report;
}

}  // namespace
