// Dekker's idea: each thread raises its flag, then reads the other one's. No interleaving lets both in, but a
// processor does that keeps the stores in a buffer while it loads.
//
// flags: -fsanitize=thread
// options: --detectors default,weak-memory
// schedules: 300
// expect: weak-memory
#include <atomic>
#include <cassert>
#include <thread>

#ifdef FIXED
constexpr auto kRaise = std::memory_order_seq_cst;
#else
constexpr auto kRaise = std::memory_order_release;
#endif

static std::atomic<bool> wants[2];
static std::atomic<int> inside{0};

static void work(int me) {
  wants[me].store(true, kRaise);
  if (wants[1 - me].load(std::memory_order_seq_cst)) return;
  const int others = inside.fetch_add(1);
  assert(others == 0);
}

int main() {
  std::thread one(work, 0), two(work, 1);
  one.join();
  two.join();
}
