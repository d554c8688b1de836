// A deque whose owner takes from one end and a thief from the other. They meet at the last task: both check
// both ends, then both take it.
//
// flags: -fsanitize=thread
// expect: assertion
#include <atomic>
#include <cassert>
#include <thread>

static std::atomic<int> head{0}, tail{2};
static std::atomic<int> taken[2];

static void run(int task) {
  const int before = taken[task].fetch_add(1);
  assert(before == 0);
}

static void own() {
  for (;;) {
    const int last = tail.load() - 1;
    tail.store(last);
    const int first = head.load();
    if (first > last) {
      tail.store(first);
      return;
    }
#ifdef FIXED
    if (first == last) {
      int expected = first;
      const bool won = head.compare_exchange_strong(expected, first + 1);
      tail.store(first + 1);
      if (won) run(last);
      return;
    }
#endif
    run(last);
  }
}

static void steal() {
  int first = head.load();
  const int last = tail.load();
  if (first >= last) return;
  if (head.compare_exchange_strong(first, first + 1)) run(first);
}

int main() {
  std::thread owner(own), thief(steal);
  owner.join();
  thief.join();
}
