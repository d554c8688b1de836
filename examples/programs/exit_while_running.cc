// A detached thread still uses a global object when main() returns and its destructor runs.
//
// expect: assertion
#include <cassert>
#include <mutex>
#include <thread>

static std::mutex lock;

struct Registry {
  bool alive = true;
  ~Registry() {
    {
      std::lock_guard guard(lock);
      alive = false;
    }
    std::this_thread::yield();  // other destructors take time, too
  }
};
static Registry registry;

static void work() {
  std::lock_guard guard(lock);
  assert(registry.alive);
}

int main() {
  std::thread worker(work);
#ifdef FIXED
  worker.join();
#else
  worker.detach();
#endif
}
