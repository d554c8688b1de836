// A spin lock that tests and sets in two steps.
//
// flags: -fsanitize=thread
// schedules: 300
// expect: assertion data-race
#include <atomic>
#include <cassert>
#include <thread>

static std::atomic<bool> taken{false};
static int inside = 0;

static void enter() {
#ifdef FIXED
  while (taken.exchange(true)) {
  }
#else
  while (taken.load()) {
  }
  taken.store(true);
#endif
}

static void work() {
  enter();
  ++inside;
  assert(inside == 1);
  --inside;
  taken.store(false);
}

int main() {
  std::thread one(work), two(work);
  one.join();
  two.join();
}
