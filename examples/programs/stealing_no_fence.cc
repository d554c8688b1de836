// A work-stealing deque, right but for one thing: its owner lowers the tail and then reads the head, and
// nothing makes thieves see these in that order. With two tasks left, thief and owner may both take the
// last.
//
// flags: -fsanitize=thread -Wno-tsan
// options: --detectors default,weak-memory
// schedules: 300
// expect: weak-memory
#include <atomic>
#include <cassert>
#include <thread>

constexpr auto kAcquire = std::memory_order_acquire, kRelease = std::memory_order_release;
static std::atomic<int> head{0}, tail{2};
static std::atomic<int> taken[2];

static void run(int task) {
  const int before = taken[task].fetch_add(1);
  assert(before == 0);
}

static void own() {
  for (;;) {
    const int last = tail.load(kAcquire) - 1;
    tail.store(last, kRelease);
#ifdef FIXED
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    int first = head.load(kAcquire);
    if (first < last) {
      run(last);
      continue;
    }
    // At most one task is left: the thread that moves the head gets it.
    const bool won = first == last && head.compare_exchange_strong(first, first + 1);
    tail.store(last + 1, kRelease);
    if (won) run(last);
    return;
  }
}

static void steal() {
  int first = head.load(kAcquire);
#ifdef FIXED
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  if (first < tail.load(kAcquire) && head.compare_exchange_strong(first, first + 1)) run(first);
}

int main() {
  std::thread owner(own), thief(steal), other(steal);
  owner.join();
  thief.join();
  other.join();
}
