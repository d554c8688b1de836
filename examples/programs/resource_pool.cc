// A semaphore counts the free connections of a pool; the search for a free one takes no lock.
//
// flags: -fsanitize=thread
// expect: assertion
#include <atomic>
#include <cassert>
#include <semaphore>
#include <thread>

static std::counting_semaphore<2> free_connections(2);
static std::atomic<bool> used[2];

static void query() {
  free_connections.acquire();
  for (std::atomic<bool>& connection : used) {
#ifdef FIXED
    bool expected = false;
    if (!connection.compare_exchange_strong(expected, true)) continue;
#else
    if (connection.load()) continue;
    const bool before = connection.exchange(true);
    assert(!before);
#endif
    connection.store(false);
    break;
  }
  free_connections.release();
}

int main() {
  std::thread one(query), two(query);
  one.join();
  two.join();
}
