// A worker pool is destroyed without waiting for its worker, which still has to report its end: the condition
// variable for that is gone.
//
// expect: crash
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>

class Pool {
 public:
  Pool() : worker_([this] { work(); }) {}
  ~Pool() {
    {
      std::lock_guard guard(lock_);
      stop_ = true;
      wake_.notify_all();
    }
#ifdef FIXED
    worker_.join();
#else
    worker_.detach();
#endif
  }

 private:
  void work() {
    std::unique_lock guard(lock_);
    while (!stop_) wake_.wait(guard);
    guard.unlock();
    ended_.notify_all();
  }
  std::mutex lock_;
  std::condition_variable wake_, ended_;
  bool stop_ = false;
  std::thread worker_;
};

alignas(Pool) static char room[sizeof(Pool)];  // memory that nothing else uses

int main() {
  (new (room) Pool)->~Pool();
  std::thread other([] {});  // gives the worker time to use the destroyed pool
  other.join();
}
