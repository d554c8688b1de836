// A mailbox for one message: a sender waits until it is empty, but two senders can find it empty at once.
//
// expect: assertion
#include <cassert>
#include <mutex>
#include <optional>
#include <thread>

static std::mutex lock;
static std::optional<int> box;
static int sent = 0, received = 0;

static bool empty() {
  std::lock_guard guard(lock);
  return !box.has_value();
}

static void send(int message) {
#ifdef FIXED
  std::lock_guard guard(lock);
  if (box.has_value()) return;
#else
  if (!empty()) return;
  std::lock_guard guard(lock);
#endif
  box = message;
  ++sent;
}

static void receive() {
  std::lock_guard guard(lock);
  if (!box.has_value()) return;
  box.reset();
  ++received;
}

int main() {
  std::thread one(send, 1), two(send, 2);
  one.join();
  two.join();
  receive();
  assert(empty());
  assert(sent == received);
}
