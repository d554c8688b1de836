// A message is published before it is written.
//
// flags: -fsanitize=thread
// schedules: 300
// expect: data-race assertion
#include <atomic>
#include <cassert>
#include <thread>

static std::atomic<bool> ready{false};
static int message = 0;

int main() {
  std::thread sender([] {
#ifdef FIXED
    message = 42;
    ready.store(true);
#else
    ready.store(true);
    message = 42;
#endif
  });
  if (ready.load()) assert(message == 42);
  sender.join();
}
