// A thread pool is stopped by a flag that is set without the lock: the worker may already have read it and be
// about to wait.
//
// expect: lost-wakeup
#include <condition_variable>
#include <mutex>
#include <thread>

static std::mutex lock, log_lock;
static std::condition_variable wake;
static bool stop = false;

static void work() {
  std::unique_lock guard(lock);
  while (!stop) wake.wait(guard);
}

int main() {
  std::thread worker(work);
  { std::lock_guard line(log_lock); }  // stands for other work
  {
#ifdef FIXED
    std::lock_guard guard(lock);
#endif
    stop = true;
    wake.notify_all();
  }
  worker.join();
}
