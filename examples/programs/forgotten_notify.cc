// A value is handed over by an atomic flag. The receiver polls the flag a few times, yields in between, and
// then sleeps; but the sender wakes no one. That shows only if the receiver has stopped polling before.
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
