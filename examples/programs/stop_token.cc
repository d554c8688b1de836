// A worker checks its stop token, then waits on a condition variable that a stop request does not
// notify.
//
// expect: deadlock lost-wakeup
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

static std::mutex lock, log_lock;
#ifdef FIXED
static std::condition_variable_any work_here;
#else
static std::condition_variable work_here;
#endif

static void work(std::stop_token stop) {
  std::unique_lock guard(lock);
#ifdef FIXED
  work_here.wait(guard, stop, [] { return false; });
#else
  while (!stop.stop_requested()) work_here.wait(guard);
#endif
}

int main() {
  std::jthread worker(work);
  std::lock_guard line(log_lock);  // stands for other work
}
