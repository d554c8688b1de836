// The API does not say which waiting thread goes on. slalom::check reaches every order in which three waiters
// can go on. Built with -fsanitize=thread; unseen.cc counts the orders, where no access is a choice point.
#include <gtest/gtest.h>
#include <semaphore.h>
#include <slalom/check.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "options.h"
#include "unseen.h"

namespace {

using Order = std::array<int, 3>;

// One operation each; std::counting_semaphore makes several.
class Semaphore {
 public:
  Semaphore() { sem_init(&semaphore_, 0, 0); }
  ~Semaphore() { sem_destroy(&semaphore_); }
  void release() { sem_post(&semaphore_); }
  void acquire() { sem_wait(&semaphore_); }

 private:
  sem_t semaphore_;
};

// Counts this order of 0, 1 and 2 under its index among all orders.
void count_order(const Order& order) {
  Order one = {0, 1, 2};
  int number = 0;
  while (one != order && std::next_permutation(one.begin(), one.end())) ++number;
  unseen_note(one == order ? number : -1);
}

// Three threads announce themselves and wait for `goes_on(number)`, which appends their number to the order.
// Then `lets_go` is called once. Without preemptions all three wait by then.
void run_waiters(const std::function<void(int, Semaphore&)>& goes_on, const std::function<void()>& lets_go) {
  Semaphore waits;
  std::array<std::thread, 3> threads;
  for (int i = 0; i < 3; ++i) threads[static_cast<size_t>(i)] = std::thread([&, i] { goes_on(i, waits); });
  for (int i = 0; i < 3; ++i) waits.acquire();
  lets_go();
  for (std::thread& thread : threads) thread.join();
}

void expect_every_order(const std::function<void()>& body) {
  unseen_forget();
  const slalom::CheckResult result = slalom::check(options("dfs:limit=0", 0), body);
  EXPECT_TRUE(result.ok) << result.report;
  EXPECT_TRUE(result.exhausted) << result.report;
  for (int number = 0; number < 6; ++number) EXPECT_GT(unseen_times(number), 0) << number;
}

TEST(Wakeups, OfAConditionVariable) {
  expect_every_order([] {
    std::mutex lock;
    std::condition_variable ready;
    Semaphore done;
    Order order{};
    size_t length = 0;
    int may_go = 0;
    run_waiters(
        [&](int self, Semaphore& waits) {
          std::unique_lock guard(lock);
          waits.release();
          ready.wait(guard, [&] { return may_go > 0; });
          --may_go;
          order[length++] = self;
          guard.unlock();
          done.release();
        },
        [&] {
          for (int i = 0; i < 3; ++i) {
            {
              std::lock_guard guard(lock);
              ++may_go;
              ready.notify_one();
            }
            done.acquire();
          }
        });
    count_order(order);
  });
}

TEST(Wakeups, OfABroadcast) {
  expect_every_order([] {
    std::mutex lock;
    std::condition_variable ready;
    Order order{};
    size_t length = 0;
    bool may_go = false;
    run_waiters(
        [&](int self, Semaphore& waits) {
          std::unique_lock guard(lock);
          waits.release();
          ready.wait(guard, [&] { return may_go; });
          order[length++] = self;
        },
        [&] {
          std::lock_guard guard(lock);
          may_go = true;
          ready.notify_all();
        });
    count_order(order);
  });
}

TEST(Wakeups, OfAMutex) {
  expect_every_order([] {
    std::mutex gate;
    Order order{};
    size_t length = 0;
    gate.lock();
    run_waiters(
        [&](int self, Semaphore& waits) {
          waits.release();
          std::lock_guard guard(gate);
          order[length++] = self;
        },
        [&] { gate.unlock(); });
    count_order(order);
  });
}

TEST(Wakeups, OfAReaderWriterLock) {
  expect_every_order([] {
    std::shared_mutex gate;
    Order order{};
    size_t length = 0;
    gate.lock();
    run_waiters(
        [&](int self, Semaphore& waits) {
          waits.release();
          if (self == 0)
            gate.lock_shared();
          else
            gate.lock();
          order[length++] = self;
          if (self == 0)
            gate.unlock_shared();
          else
            gate.unlock();
        },
        [&] { gate.unlock(); });
    count_order(order);
  });
}

TEST(Wakeups, OfASemaphore) {
  expect_every_order([] {
    Semaphore tokens, done;
    Order order{};
    size_t length = 0;
    run_waiters(
        [&](int self, Semaphore& waits) {
          waits.release();
          tokens.acquire();
          order[length++] = self;
          done.release();
        },
        [&] {
          for (int i = 0; i < 3; ++i) {
            tokens.release();
            done.acquire();
          }
        });
    count_order(order);
  });
}

}  // namespace
