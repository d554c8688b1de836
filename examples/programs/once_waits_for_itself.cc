// An initialisation starts a thread and waits for it; the thread needs the initialised object.
//
// expect: deadlock
#include <mutex>
#include <thread>

static std::once_flag once;
static int value = 0;

static void initialise() {
#ifdef FIXED
  value = 1;
#else
  std::thread helper([] { std::call_once(once, initialise); });
  helper.join();
  value = 1;
#endif
}

int main() {
  std::thread other([] { std::call_once(once, initialise); });
  std::call_once(once, initialise);
  other.join();
  return value == 1 ? 0 : 1;
}
