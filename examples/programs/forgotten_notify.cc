// A value is handed over by an atomic flag. Whoever waits for it looks a few times, yields in between, and
// then sleeps; but who sets it wakes nobody. That shows only if the other one has given up looking before.
//
// flags: -fsanitize=thread
// expect: deadlock
#include <atomic>
#include <cassert>
#include <thread>

static std::atomic<bool> ready{false};
static int answer;

static void hand_over() {
  answer = 42;
  ready.store(true, std::memory_order_release);
#ifdef FIXED
  ready.notify_one();
#endif
}

int main() {
  std::thread giver(hand_over);
  ready.wait(false, std::memory_order_acquire);
  assert(answer == 42);
  giver.join();
}
