// A wait with a time limit whose result is ignored.
//
// expect: assertion
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::condition_variable ready;
static bool done = false;

int main() {
  std::thread worker([] {
    std::lock_guard guard(lock);
    done = true;
    ready.notify_one();
  });
  {
    std::unique_lock guard(lock);
#ifdef FIXED
    while (!done) ready.wait_for(guard, std::chrono::seconds(1));
#else
    if (!done) ready.wait_for(guard, std::chrono::seconds(1));
#endif
    assert(done);
  }
  worker.join();
}
