// A work-stealing deque with room for one task: its owner pushes and pops at the bottom, two thieves steal at
// the top. Top and bottom have two bits each. A thief that stops before its compare-exchange does not notice
// that four tasks have come and gone meanwhile, and takes one that another thread has taken.
//
// A task is taken twice only after 5 preemptions; no schedule with fewer shows it. FIXED, top and bottom have
// 16 bits.
#include <array>
#include <atomic>
#include <thread>

#include "rare.h"

namespace {

#ifdef FIXED
constexpr int kPositions = 1 << 16;
#else
constexpr int kPositions = 4;
#endif
constexpr int kTasks = 4, kNone = -1;

class Deque {
 public:
  bool push(int task) {
    const int bottom = bottom_.load();
    if (distance(top_.load(), bottom) >= 1) return false;
    task_.store(task);
    bottom_.store(position(bottom + 1));
    return true;
  }

  int pop() {
    const int bottom = position(bottom_.load() - 1);
    bottom_.store(bottom);
    int top = top_.load();
    int task = kNone;
    if (distance(top, bottom) >= 0) {
      task = task_.load();
      if (!top_.compare_exchange_strong(top, position(top + 1))) task = kNone;
    }
    bottom_.store(position(bottom + 1));
    return task;
  }

  int steal() {
    int top = top_.load();
    if (distance(top, bottom_.load()) <= 0) return kNone;
    const int task = task_.load();
    return top_.compare_exchange_strong(top, position(top + 1)) ? task : kNone;
  }

 private:
  static int position(int number) { return (number + kPositions) % kPositions; }
  static int distance(int from, int to) {
    const int ahead = position(to - from);
    return ahead < kPositions / 2 ? ahead : ahead - kPositions;
  }

  std::atomic<int> top_{0}, bottom_{0}, task_{kNone};
};

struct Shared {
  Deque deque;
  std::array<std::atomic<bool>, kTasks> taken{};

  void push_next(int& task) {
    if (deque.push(task)) ++task;
  }
  void take(int task) {
    if (task != kNone) slalom::expect(!taken[task].exchange(true), "a task was taken twice");
  }
};

}  // namespace

int main() {
  return search("stealing-deque", [] {
    Shared shared;
    std::thread owner([&] {
      int task = 0;
      shared.push_next(task);
      shared.push_next(task);
      shared.take(shared.deque.pop());
      shared.push_next(task);
      shared.push_next(task);
    });
    std::thread first([&] { shared.take(shared.deque.steal()); });
    std::thread second([&] {
      for (int i = 0; i < 3; ++i) shared.take(shared.deque.steal());
    });
    owner.join();
    first.join();
    second.join();
  });
}
