// A log that, when it is full, flushes itself: the flush takes the lock that its caller holds. It is full
// only if both threads have written before the flusher has come.
//
// expect: deadlock
#include <mutex>
#include <thread>
#include <vector>

static std::mutex lock;
static std::vector<int> entries;

static void flush() {
  std::lock_guard guard(lock);
  entries.clear();
}

static void write(int entry) {
  std::unique_lock guard(lock);
  entries.push_back(entry);
  if (entries.size() < 2) return;
#ifdef FIXED
  guard.unlock();
#endif
  flush();
}

int main() {
  std::thread one([] { write(1); }), flusher(flush), two([] { write(2); });
  one.join();
  flusher.join();
  two.join();
}
