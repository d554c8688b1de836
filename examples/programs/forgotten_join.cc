// main() uses the result of a thread that it has not waited for.
//
// expect: assertion
#include <cassert>
#include <mutex>
#include <thread>

static std::mutex lock;
static int result = 0;

int main() {
  std::thread worker([] {
    std::lock_guard guard(lock);
    result = 42;
  });
#ifdef FIXED
  worker.join();
#endif
  {
    std::lock_guard guard(lock);
    assert(result == 42);
  }
#ifndef FIXED
  worker.join();
#endif
}
