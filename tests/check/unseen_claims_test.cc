// A test that is built without -fsanitize=thread: slalom sees its locks and waits, but not its accesses.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "options.h"

namespace {

using slalom::check;
using slalom::CheckResult;

// The flag is set without the lock, so the signal can come between the test of the flag and the wait. Slalom
// does not switch there.
void lost_wake_up() {
  std::mutex lock;
  std::condition_variable is_ready;
  bool ready = false;
  std::thread setter([&] {
    ready = true;
    is_ready.notify_one();
  });
  setter.join();
  std::unique_lock guard(lock);
  is_ready.wait(guard, [&] { return ready; });
}

TEST(CheckUnseen, IsNeverExhausted) {
  for (const char* strategy : {"dfs", "dfs:limit=1", "dpor:coarse"}) {
    slalom::CheckOptions named = options(strategy, 0);
    named.name = "lost-wake-up";  // the report begins with it
    const CheckResult result = check(named, lost_wake_up);
    EXPECT_TRUE(result.ok) << result.report;
    EXPECT_FALSE(result.exhausted) << strategy;
    EXPECT_EQ(result.report.find("xhausted"), std::string::npos) << result.report;
    const auto is_unseen = [](const slalom::CheckCaveat& one) { return one.kind == "accesses-not-seen"; };
    EXPECT_EQ(std::count_if(result.caveats.begin(), result.caveats.end(), is_unseen), 1) << result.report;
  }
}

}  // namespace
