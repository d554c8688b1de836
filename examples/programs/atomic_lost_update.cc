// The counter is atomic, the addition is not: it is a load and a store.
//
// flags: -fsanitize=thread
// expect: assertion
#include <atomic>
#include <cassert>
#include <thread>

static std::atomic<int> counter{0};

static void add_one() {
#ifdef FIXED
  counter.fetch_add(1);
#else
  counter.store(counter.load() + 1);
#endif
}

int main() {
  std::thread one(add_one), two(add_one);
  one.join();
  two.join();
  assert(counter.load() == 2);
}
