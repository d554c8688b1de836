// slalom::check: runs a piece of a test again and again inside the test's own process, with its threads
// interleaved in different ways, and reports the first interleaving that breaks it.
//
//   #include <slalom/check.h>
//
//   const slalom::CheckResult result = slalom::check([] {
//     Queue queue;
//     std::thread producer([&] { queue.push(1); });
//     std::thread consumer([&] { queue.pop(); });
//     producer.join();
//     consumer.join();
//     slalom::expect(queue.empty(), "something is left in the queue");
//   });
//   ASSERT_TRUE(result.ok) << result.report;
//
// The body must do the same every time: it creates the objects that it uses, joins its threads, and leaves
// nothing behind. Threads are std::thread or pthread. In files compiled with -fsanitize=thread (but linked
// without it) slalom also sees every memory access. Guide: docs/howto-check.md. Needs C++17.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace slalom {

struct CheckOptions {
  std::string name;  // of the test, in reports and capsules; if empty, the file and line of the call
  // Search strategy: portfolio, dfs, dfs:limit=2, dpor, random, pct, pos, surw (see docs/howto-explore.md).
  std::string strategy = "portfolio";
  // Maximum number of executions; 0 means unlimited (for a strategy that ends by itself)
  uint64_t schedules = 100'000;
  double seconds = 0;  // maximum time; 0 means unlimited
  uint64_t seed = 1;
  // Where threads may be switched. Sync: at synchronisation and atomic operations, and at plain accesses that
  // were seen to conflict. Everywhere: at every access.
  enum class Choices : uint8_t { Sync, Everywhere } choices = Choices::Sync;
  uint64_t max_steps = 20'000;  // limit for one execution
  uint32_t patience = 20;       // seconds that a thread may run or wait without an operation
  bool races = true;            // a data race fails the check
  bool weak_memory = false;     // a store that other threads may see after a later load fails the check
  bool leaks = true;            // a block of memory that is left over fails the check
  uint32_t spurious = 0;        // spurious wake-ups that each thread may have from condition variables
  bool run_twice = false;  // run every execution twice and compare, to test whether the body is deterministic
  std::string findings = "slalom-findings";  // folder for capsules; empty means none are kept
  // A capsule to replay instead of searching. The environment variable SLALOM_REPLAY overrides it.
  std::string replay;
};

struct CheckFinding {
  std::string title;    // equal for the same bug
  std::string kind;     // "assertion", "deadlock", "data-race", ...
  std::string capsule;  // file to replay it with; empty if it was not kept
  std::string report;   // columns per thread, with source lines
};

struct CheckCaveat {
  std::string kind;  // "step-limit", "accesses-not-seen", ...: docs/formats.md has them all
  std::string text;  // what the check did not cover
};

struct CheckResult {
  bool ok = false;     // nothing was found, there are no warnings, and at least one execution ended
  std::string report;  // text for people: the findings, or the coverage
  uint64_t executions = 0;
  uint64_t interleavings = 0;  // distinct interleavings among them
  // All interleavings were executed, up to the limits in the caveats, such as a bound of the strategy or
  // fairness. Never true if executions were cut off, or if slalom does not see the program's memory accesses.
  bool exhausted = false;
  std::vector<CheckCaveat> caveats;
  double seconds = 0;
  std::vector<CheckFinding> findings;  // failures first
  std::vector<std::string> warnings;   // things that the search could not control or repeat

  explicit operator bool() const { return ok; }
};

// Not for two threads at a time. Throws no exception, whatever the body does.
CheckResult check(const CheckOptions& options, const std::function<void()>& body,
                  const char* file = __builtin_FILE(), int line = __builtin_LINE());
CheckResult check(const std::function<void()>& body, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE());

// Call in any thread of the body, with a condition that must hold. If it does not, the execution ends here.
// assert() and exceptions that leave a thread do the same. Outside a check it aborts the program.
void expect(bool condition, const char* what = "an expectation does not hold");

}  // namespace slalom
