// Two asynchronous tasks keep the largest value they have seen; each compares with a copy.
//
// expect: assertion
#include <cassert>
#include <future>
#include <mutex>

static std::mutex lock;
static int largest = 0;

static void consider(int value) {
#ifdef FIXED
  std::lock_guard guard(lock);
  if (value > largest) largest = value;
#else
  int seen;
  {
    std::lock_guard guard(lock);
    seen = largest;
  }
  if (value <= seen) return;
  std::lock_guard guard(lock);
  largest = value;
#endif
}

int main() {
  auto one = std::async(std::launch::async, consider, 1);
  auto two = std::async(std::launch::async, consider, 2);
  one.get();
  two.get();
  assert(largest == 2);
}
