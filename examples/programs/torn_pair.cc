// Two values that belong together are written in two critical sections: a reader in between sees half of the
// change.
//
// expect: assertion
#include <cassert>
#include <shared_mutex>
#include <thread>

static std::shared_mutex lock;
static int width = 1, height = 1;

static void resize() {
  lock.lock();
  width = 2;
#ifndef FIXED
  lock.unlock();
  lock.lock();
#endif
  height = 2;
  lock.unlock();
}

static void look() {
  std::shared_lock guard(lock);
  assert(width == height);
}

int main() {
  std::thread writer(resize), reader(look);
  writer.join();
  reader.join();
}
