// Peterson's algorithm for two threads, in the right order, with release stores only: each thread may read
// the other one's flag before its own is visible to the other one.
//
// flags: -fsanitize=thread -Wno-tsan
// options: --detectors default,weak-memory
// schedules: 300
// expect: weak-memory
#include <atomic>
#include <cassert>
#include <thread>

static std::atomic<bool> wants[2];
static std::atomic<int> turn{0};
static int inside = 0;

static void work(int me) {
  const int other = 1 - me;
  wants[me].store(true, std::memory_order_release);
  turn.store(other, std::memory_order_release);
#ifdef FIXED
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  while (wants[other].load(std::memory_order_acquire) && turn.load(std::memory_order_acquire) == other) {
  }
  ++inside;
  assert(inside == 1);
  --inside;
  wants[me].store(false, std::memory_order_release);
}

int main() {
  std::thread one(work, 0), two(work, 1);
  one.join();
  two.join();
}
