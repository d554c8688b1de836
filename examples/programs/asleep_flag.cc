// A worker that finds nothing to do sets a flag that it sleeps, checks once more, and sleeps. A thread that
// brings work checks the flag, and wakes the worker only if it is set. Both store and then load: without a
// fence each may miss the other's store, and the work is never done.
//
// flags: -fsanitize=thread -Wno-tsan
// options: --detectors default,weak-memory
// schedules: 300
// expect: weak-memory
#include <atomic>
#include <semaphore>
#include <thread>

static std::atomic<int> work{0};
static std::atomic<bool> asleep{false};
static std::binary_semaphore wake_up{0};

static void full_fence() {
#ifdef FIXED
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

static void serve() {
  while (work.load(std::memory_order_acquire) == 0) {
    asleep.store(true, std::memory_order_release);
    full_fence();
    if (work.load(std::memory_order_acquire) != 0) return;
    wake_up.acquire();
  }
}

static void bring() {
  work.store(1, std::memory_order_release);
  full_fence();
  if (asleep.load(std::memory_order_acquire)) wake_up.release();
}

int main() {
  std::thread server(serve), client(bring);
  server.join();
  client.join();
}
