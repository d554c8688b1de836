// Peterson's algorithm for two threads, with its first two steps in the wrong order.
//
// flags: -fsanitize=thread
// schedules: 300
// expect: data-race assertion
#include <atomic>
#include <cassert>
#include <thread>

static std::atomic<bool> wants[2];
static std::atomic<int> turn{0};
static int inside = 0;

static void work(int me) {
  const int other = 1 - me;
#ifdef FIXED
  wants[me].store(true);
  turn.store(other);
#else
  turn.store(other);
  wants[me].store(true);
#endif
  while (wants[other].load() && turn.load() == other) {
  }
  ++inside;
  assert(inside == 1);
  --inside;
  wants[me].store(false);
}

int main() {
  std::thread one(work, 0), two(work, 1);
  one.join();
  two.join();
}
