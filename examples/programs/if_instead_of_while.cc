// A consumer that was woken takes an item without checking again: another consumer may have been faster.
//
// expect: assertion
#include <cassert>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::condition_variable filled;
static std::deque<int> items;

static void consume() {
  std::unique_lock guard(lock);
#ifdef FIXED
  while (items.empty()) filled.wait(guard);
#else
  if (items.empty()) filled.wait(guard);
#endif
  assert(!items.empty());
  items.pop_front();
}

static void produce() {
  for (int i = 0; i < 2; ++i) {
    std::lock_guard guard(lock);
    items.push_back(i);
    filled.notify_all();
  }
}

int main() {
  std::thread one(consume), two(consume), producer(produce);
  one.join();
  two.join();
  producer.join();
}
