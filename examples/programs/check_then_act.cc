// A cache that looks a key up and inserts it if it is missing, each under the lock: two threads can both
// find it missing and both create the entry.
//
// expect: assertion
#include <cassert>
#include <map>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::map<int, int> cache;
static int created = 0;

static bool known(int key) {
  std::lock_guard guard(lock);
  return cache.count(key) != 0;
}

static void get(int key) {
#ifdef FIXED
  std::lock_guard guard(lock);
  if (cache.count(key) != 0) return;
  cache[key] = key * key;
  ++created;
#else
  if (known(key)) return;
  std::lock_guard guard(lock);
  cache[key] = key * key;
  ++created;
#endif
}

int main() {
  std::thread first([] { get(7); }), second([] { get(7); });
  first.join();
  second.join();
  assert(known(7));
  assert(created == 1);
}
