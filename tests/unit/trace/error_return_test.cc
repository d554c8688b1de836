#include "trace/error_return.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

namespace slalom {
namespace {

// Two executions with the same failing calls may have used other names, but not other errors, calls or
// agents.
TEST(ErrorReturn, AlikeAreTheSameErrorsOfTheSameCalls) {
  const ErrorLog log{
      {{.agent = AgentId::initial(0), .ordinal = 3, .call = "open", .error = ENOENT, .about = "/tmp/a"},
       {.agent = AgentId::initial(1), .ordinal = 0, .call = "mkdir", .error = EEXIST}},
      0};
  const auto changed = [&](const std::function<void(ErrorReturn&)>& change) {
    ErrorLog other = log;
    change(other.returns[0]);
    return fail_alike(log, other);
  };
  EXPECT_TRUE(fail_alike(log, log));
  EXPECT_TRUE(changed([](ErrorReturn& failed) { failed.about = "/tmp/b"; }));
  EXPECT_TRUE(changed([](ErrorReturn& failed) { failed.subject = 7; }));
  EXPECT_FALSE(changed([](ErrorReturn& failed) { failed.agent = AgentId::initial(0).child(0); }));
  EXPECT_FALSE(changed([](ErrorReturn& failed) { failed.ordinal = 4; }));
  EXPECT_FALSE(changed([](ErrorReturn& failed) { failed.call = "stat"; }));
  EXPECT_FALSE(changed([](ErrorReturn& failed) { failed.error = EACCES; }));
  ErrorLog fewer = log, cut = log;
  fewer.returns.pop_back();
  cut.left_out = 1;
  EXPECT_FALSE(fail_alike(log, fewer));
  EXPECT_FALSE(fail_alike(log, cut));
}

}  // namespace
}  // namespace slalom
