// A latch that waits for one worker too few.
//
// flags: -fsanitize=thread
// schedules: 300
// expect: data-race assertion lost-wakeup deadlock
#include <cassert>
#include <latch>
#include <thread>
#include <vector>

static constexpr int kWorkers = 2;
#ifdef FIXED
static std::latch finished(kWorkers);
#else
static std::latch finished(kWorkers - 1);
#endif
static int results[kWorkers];

int main() {
  std::vector<std::thread> workers;
  for (int i = 0; i < kWorkers; ++i)
    workers.emplace_back([i] {
      results[i] = 1;
      finished.count_down();
    });
  finished.wait();
  int sum = 0;
  for (int result : results) sum += result;
  for (std::thread& worker : workers) worker.join();
  assert(sum == kWorkers);
}
