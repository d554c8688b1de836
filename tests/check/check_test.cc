// slalom::check as tests use it: every kind of bug and its fixed twin, replay, and the behaviour of threads
// that are fibers. Built with -fsanitize=thread; code whose accesses must not be seen is in unseen.cc.
#undef NDEBUG
#include <gtest/gtest.h>
#include <semaphore.h>
#include <slalom/check.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <cfenv>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "options.h"
#include "unseen.h"

namespace {

using slalom::check;
using slalom::CheckOptions;
using slalom::CheckResult;

bool found(const CheckResult& result, const std::string& kind) {
  for (const slalom::CheckFinding& finding : result.findings)
    if (finding.kind == kind) return true;
  return false;
}

// Two threads add to the same counter twice, each in two steps.
void count_without_lock() {
  std::atomic<int> counter{0};
  const auto add = [&] {
    for (int i = 0; i < 2; ++i) counter.store(counter.load() + 1);
  };
  std::thread first(add), second(add);
  first.join();
  second.join();
  unseen_note(counter.load());
}

TEST(Check, SeesAllOutcomes) {
  unseen_forget();
  const CheckResult result = check(options("random", 500), count_without_lock);
  EXPECT_TRUE(result.ok) << result.report;
  EXPECT_EQ(result.executions, 500u);
  for (const int outcome : {2, 3, 4}) EXPECT_GT(unseen_times(outcome), 0) << outcome;
  EXPECT_EQ(unseen_times(1), 0);
}

// The machine passes choice points without asking, as a random walk has drawn ahead. The shares are those of
// a walk that is asked at every choice point (46,191, 84,417 and 69,399 of 200,000 executions).
TEST(Check, WhatARandomWalkDrawsAheadIsNoBias) {
  unseen_forget();
  constexpr int kExecutions = 20'000;
  ASSERT_TRUE(check(options("random", kExecutions), count_without_lock).ok);
  const double shares[] = {0.231, 0.422, 0.347};
  for (int counted = 2; counted <= 4; ++counted)
    EXPECT_NEAR(static_cast<double>(unseen_times(counted)) / kExecutions, shares[counted - 2], 0.015)
        << counted;
}

// GenMC and Nidhugg also count 34 for this program.
TEST(Check, DporExecutesEachOrderOnce) {
  CheckOptions wanted = options("dpor", 0);
  wanted.choices = CheckOptions::Choices::Everywhere;
  const CheckResult result = check(wanted, count_without_lock);
  EXPECT_TRUE(result.ok) << result.report;
  EXPECT_TRUE(result.exhausted);
  EXPECT_EQ(result.interleavings, 34u);
}

TEST(Check, AnExpectationThatDoesNotHold) {
  const auto body = [](bool locked) {
    int counter = 0;
    std::mutex lock;
    const auto add = [&] {
      std::unique_lock guard(lock, std::defer_lock);
      if (locked) guard.lock();
      ++counter;
    };
    std::thread first(add), second(add);
    first.join();
    second.join();
    slalom::expect(counter == 2, "an update was lost");
  };
  const CheckResult broken = check(options(), [&] { body(false); });
  EXPECT_FALSE(broken.ok);
  EXPECT_TRUE(found(broken, "assertion")) << broken.report;
  EXPECT_TRUE(found(broken, "data-race")) << broken.report;
  EXPECT_NE(broken.report.find("an update was lost"), std::string::npos);
  EXPECT_NE(broken.report.find("++counter;"), std::string::npos) << "source lines belong into the report";
  const CheckResult fixed = check(options("dfs", 0), [&] { body(true); });
  EXPECT_TRUE(fixed.ok) << fixed.report;
  EXPECT_TRUE(fixed.exhausted) << fixed.report;
}

// No other process has it: tests of several builds may run at the same time.
std::filesystem::path own_folder() {
  return std::filesystem::path(testing::TempDir()) / ("slalom-check-" + std::to_string(getpid()));
}

TEST(Check, ReplaysACapsule) {
  const std::filesystem::path folder = own_folder();
  CheckOptions wanted = options();
  wanted.findings = folder.string();
  wanted.races = false;
  const auto body = [] {
    std::atomic<int> counter{0};
    const auto add = [&] { counter.store(counter.load() + 1); };
    std::thread first(add), second(add);
    first.join();
    second.join();
    slalom::expect(counter.load() == 2, "lost");
  };
  const CheckResult broken = check(wanted, body);
  ASSERT_EQ(broken.findings.size(), 1u) << broken.report;
  wanted.replay = broken.findings[0].capsule;
  for (int i = 0; i < 20; ++i) {
    const CheckResult again = check(wanted, body);
    ASSERT_EQ(again.findings.size(), 1u) << again.report;
    EXPECT_EQ(again.findings[0].title, broken.findings[0].title);
    EXPECT_EQ(again.executions, 1u);
  }
  const CheckResult other = check(wanted, [] {});
  EXPECT_FALSE(other.ok) << "a body in which it cannot happen must not pass as a replay";
  std::filesystem::remove_all(folder);
}

// The locks are static. Those that a deadlock leaves locked must be free in the next execution.
TEST(Check, ADeadlock) {
  static std::mutex left, right;
  const auto body = [](bool same_order) {
    std::thread first([&] {
      std::lock_guard a(left);
      std::lock_guard b(right);
    });
    std::thread second([&] {
      std::lock_guard a(same_order ? left : right);
      std::lock_guard b(same_order ? right : left);
    });
    first.join();
    second.join();
  };
  const CheckResult broken = check(options(), [&] { body(false); });
  EXPECT_TRUE(found(broken, "deadlock")) << broken.report;
  EXPECT_NE(broken.report.find("10/10"), std::string::npos) << broken.report;
  const CheckResult fixed = check(options(), [&] { body(true); });
  EXPECT_TRUE(fixed.ok) << fixed.report;
}

TEST(Check, ALostWakeup) {
  const auto body = [](bool checks) {
    std::mutex lock;
    std::condition_variable ready;
    bool is_ready = false;
    std::thread waiter([&] {
      std::unique_lock guard(lock);
      if (checks)
        ready.wait(guard, [&] { return is_ready; });
      else
        ready.wait(guard);
    });
    {
      std::lock_guard guard(lock);
      is_ready = true;
    }
    ready.notify_one();
    waiter.join();
  };
  const CheckResult broken = check(options(), [&] { body(false); });
  EXPECT_TRUE(found(broken, "lost-wakeup") || found(broken, "deadlock")) << broken.report;
  const CheckResult fixed = check(options(), [&] { body(true); });
  EXPECT_TRUE(fixed.ok) << fixed.report;
}

// There is one signal and one waiter, so only a spurious wake-up makes a difference.
TEST(Check, AnIfInsteadOfAWhile) {
  const auto body = [](bool again) {
    std::mutex lock;
    std::condition_variable ready;
    bool is_ready = false;
    std::thread waiter([&] {
      std::unique_lock guard(lock);
      if (!is_ready) ready.wait(guard);
      while (again && !is_ready) ready.wait(guard);
      slalom::expect(is_ready, "woken too early");
    });
    {
      std::lock_guard guard(lock);
      is_ready = true;
    }
    ready.notify_one();
    waiter.join();
  };
  CheckOptions alone = options("dfs:limit=2");
  EXPECT_TRUE(check(alone, [&] { body(false); }).ok);
  alone.spurious = 1;
  alone.findings = own_folder();
  const CheckResult broken = check(alone, [&] { body(false); });
  ASSERT_TRUE(found(broken, "assertion")) << broken.report;
  EXPECT_NE(broken.report.find("10/10"), std::string::npos) << broken.report;
  EXPECT_NE(broken.findings[0].title.find("woken too early"), std::string::npos) << broken.report;
  for (const char* strategy : {"portfolio", "dfs:limit=2", "dpor:coarse"}) {
    CheckOptions twin = options(strategy);
    twin.spurious = 3;
    const CheckResult fixed = check(twin, [&] { body(true); });
    EXPECT_TRUE(fixed.ok) << strategy << fixed.report;
  }
  // The capsule keeps the setting, whatever the options are by then.
  CheckOptions again = options();
  again.replay = broken.findings[0].capsule;
  const CheckResult same = check(again, [&] { body(false); });
  EXPECT_TRUE(found(same, "assertion")) << same.report;
  std::filesystem::remove_all(alone.findings);
}

TEST(Check, ALivelock) {
  const auto body = [](bool sets) {
    std::atomic<bool> ready{false};
    std::thread waiter([&] {
      while (!ready.load()) std::this_thread::yield();
    });
    if (sets) ready.store(true);
    waiter.join();
  };
  CheckOptions wanted = options("dfs:limit=1", 50);
  wanted.max_steps = 2'000;
  const CheckResult broken = check(wanted, [&] { body(false); });
  EXPECT_TRUE(found(broken, "livelock")) << broken.report;
  const CheckResult fixed = check(wanted, [&] { body(true); });
  EXPECT_TRUE(fixed.findings.empty()) << fixed.report;
}

// Anything that would end a program only ends the execution.
TEST(Check, SurvivesWhatBreaksABody) {
  const struct {
    const char* text;
    std::function<void()> breaks;
  } cases[] = {
      {"std::runtime_error: no more", [] { throw std::runtime_error("no more"); }},
      {"1 == 2", [] { assert(1 == 2); }},
      {"abort", [] { std::abort(); }},
      {"null pointer", [] { *static_cast<volatile int*>(nullptr) = 1; }},
      {"terminate", [] { std::terminate(); }},
      {"exit", [] { std::exit(0); }},
  };
  for (const auto& [text, breaks] : cases) {
    const auto body = [&breaks = breaks](bool when_late) {
      std::atomic<bool> late{false};
      std::thread first([&] { late.store(true); });
      std::thread second([&] {
        if (late.load() && when_late) breaks();
      });
      first.join();
      second.join();
    };
    const CheckResult broken = check(options(), [&] { body(true); });
    EXPECT_FALSE(broken.ok) << text;
    EXPECT_NE(broken.report.find(text), std::string::npos) << broken.report;
    const CheckResult fixed = check(options(), [&] { body(false); });
    EXPECT_TRUE(fixed.ok) << fixed.report;
  }
}

TEST(Check, TheHeap) {
  struct Node {
    int value = 0;
  };
  enum Bug { None, Leak, UseAfterFree };
  const auto body = [](Bug bug) {
    auto node = std::make_unique<Node>();
    std::atomic<bool> done{false};
    std::thread reader([&, raw = node.get()] {
      const bool may_be_gone = bug == UseAfterFree && done.load();
      if (bug != UseAfterFree || may_be_gone) unseen_note(raw->value);
    });
    if (bug == UseAfterFree) {
      node.reset();
      done.store(true);
    }
    reader.join();
    if (bug == Leak) node.release();
  };
  EXPECT_TRUE(found(check(options(), [&] { body(UseAfterFree); }), "use-after-free"));
  EXPECT_TRUE(found(check(options(), [&] { body(Leak); }), "leak"));
  const CheckResult fixed = check(options(), [&] { body(None); });
  EXPECT_TRUE(fixed.ok) << fixed.report;
}

thread_local int mine = 7;
struct Counts {
  ~Counts() { unseen_note(value); }
  int value = 1;
};
thread_local Counts counts;

// Thread-local objects are separate for each thread, new in every execution, and destroyed at the thread's
// end.
TEST(Check, ThreadLocals) {
  unseen_forget();
  const CheckResult result = check(options("random", 200), [] {
    std::atomic<int> ready{0};
    const auto work = [&](int number) {
      slalom::expect(mine == 7 && errno == 0, "a thread-local variable is not new");
      mine = number;
      errno = number;
      counts.value = 5;
      ready.fetch_add(1);
      while (ready.load() < 2) std::this_thread::yield();
      slalom::expect(mine == number, "a thread-local variable is another thread's");
      slalom::expect(errno == number, "errno is another thread's");
    };
    std::thread first(work, 1), second(work, 2);
    slalom::expect(first.get_id() != second.get_id(), "two threads are one");
    first.join();
    second.join();
  });
  EXPECT_TRUE(result.ok) << result.report;
  EXPECT_GE(unseen_times(5), 2 * 200);
}

TEST(Check, OtherPrimitives) {
  const CheckResult result = check(options("random", 200), [] {
    sem_t tokens;
    sem_init(&tokens, 0, 0);
    std::latch both(2);
    std::future<int> answer = std::async(std::launch::async, [&] {
      both.arrive_and_wait();
      sem_wait(&tokens);
      return 42;
    });
    std::jthread helper([&] {
      both.arrive_and_wait();
      sem_post(&tokens);
    });
    slalom::expect(answer.get() == 42, "another answer");
    sem_destroy(&tokens);
  });
  EXPECT_TRUE(result.ok) << result.report;
}

// Tests both floating-point units: the compiler's code rounds as MXCSR says, and fegetround() reads the x87
// unit.
TEST(Check, EachThreadHasItsOwnRoundingMode) {
  constexpr unsigned kSseShift = 3;  // shift of the x87 control word's rounding bits in MXCSR
  const auto rounds = [](int mode) {
    return fegetround() == mode && (_mm_getcsr() & 0x6000) == static_cast<unsigned>(mode) << kSseShift;
  };
  const CheckResult result = check(options("random", 200), [&] {
    std::atomic<int> turns{0};
    const auto keeps = [&](int mode) {
      fesetround(mode);
      for (int i = 0; i < 3; ++i) {
        turns.fetch_add(1);
        slalom::expect(rounds(mode), "another thread's rounding mode");
      }
    };
    std::thread up([&] { keeps(FE_UPWARD); }), down([&] { keeps(FE_DOWNWARD); });
    up.join();
    down.join();
    slalom::expect(rounds(FE_TONEAREST), "a rounding mode of those that have ended");
  });
  EXPECT_TRUE(result.ok) << result.report;
  EXPECT_TRUE(rounds(FE_TONEAREST));
}

TEST(Check, SaysThatTheBodyIsNotTheSameEveryTime) {
  static int calls = 0;
  const auto body = [](bool resets) {
    if (resets) calls = 0;
    if (++calls % 2 == 0) std::this_thread::yield();
  };
  const CheckResult broken = check(options(), [&] { body(false); });
  EXPECT_FALSE(broken.ok);
  EXPECT_NE(broken.report.find("Something outlives an execution"), std::string::npos) << broken.report;
  EXPECT_NE(broken.report.find("calls"), std::string::npos) << broken.report;
  EXPECT_TRUE(check(options(), [&] { body(true); }).ok);
}

TEST(Check, NamesWhatIsNotControlled) {
  const CheckResult result = check(options("random", 10), [] { syscall(SYS_io_uring_setup, 1, nullptr); });
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.report.find("io_uring"), std::string::npos) << result.report;
}

TEST(Check, RefusesWhatItCannotDo) {
  EXPECT_NE(check(options("no-such-strategy"), [] {}).report.find("no-such-strategy"), std::string::npos);
  CheckOptions wanted = options();
  wanted.replay = "/no/such/file";
  EXPECT_NE(check(wanted, [] {}).report.find("/no/such/file"), std::string::npos);
}

}  // namespace
