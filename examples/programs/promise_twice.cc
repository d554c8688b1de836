// Two threads answer the same question; each checks first whether it has been answered.
//
// expect: crash
#include <future>
#include <mutex>
#include <thread>

static std::mutex lock;
static bool answered = false;
static std::promise<int> answer;

static void reply(int value) {
  {
    std::lock_guard guard(lock);
    if (answered) return;
#ifdef FIXED
    answered = true;
#endif
  }
  answer.set_value(value);
#ifndef FIXED
  std::lock_guard guard(lock);
  answered = true;
#endif
}

int main() {
  std::future<int> result = answer.get_future();
  std::thread one(reply, 1), two(reply, 2);
  const int value = result.get();
  one.join();
  two.join();
  return value == 1 || value == 2 ? 0 : 1;
}
