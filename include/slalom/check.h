// slalom::check: runs a piece of a test again and again, inside the test's own process, with its threads
// interleaved in different ways, and reports the first way that breaks it.
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
// The body must be the same every time: it makes what it uses, joins its threads, and leaves nothing behind.
// Threads are std::thread or pthread; of files compiled with -fsanitize=thread (but linked without) every
// access to memory is seen, too. All about it: docs/howto-check.md. Needs C++17.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace slalom {

struct CheckOptions {
  std::string name;  // of the test, in reports and capsules; empty: the file and line of the call
  // How to search: portfolio, dfs, dfs:limit=2, dpor, random, pct, pos, surw (see README.md).
  std::string strategy = "portfolio";
  uint64_t schedules = 100'000;  // executions at most; 0: no limit (for a strategy that ends by itself)
  double seconds = 0;            // at most; 0: no limit
  uint64_t seed = 1;
  // Where threads may be switched: Sync is at synchronisation and atomic operations, and at plain accesses
  // that were seen to conflict; Everywhere is at every access.
  enum class Choices : uint8_t { Sync, Everywhere } choices = Choices::Sync;
  uint64_t max_steps = 20'000;               // of one execution
  uint32_t patience = 20;                    // seconds that a thread may be without an operation
  bool races = true;                         // a data race fails the check
  bool weak_memory = false;                  // so does a store that may be seen after a later load
  bool leaks = true;                         // so does a block of memory that is left over
  uint32_t spurious = 0;                     // how often each thread may wake from a condition by itself
  bool run_twice = false;                    // every execution, to compare: is the body deterministic?
  std::string findings = "slalom-findings";  // where capsules are kept; empty: nowhere
  std::string replay;  // a capsule: replay it instead of searching. Also: SLALOM_REPLAY in the environment
};

struct CheckFinding {
  std::string title;    // the same for the same bug
  std::string kind;     // "assertion", "deadlock", "data-race", ...
  std::string capsule;  // a file to replay it with; empty: not kept
  std::string report;   // columns per thread, with source lines
};

struct CheckCaveat {
  std::string kind;  // "step-limit", "accesses-not-seen", ...: docs/formats.md has them all
  std::string text;  // what was left out
};

struct CheckResult {
  bool ok = false;     // nothing was found, and the search could do what it should
  std::string report;  // for people: what was found, or what was covered
  uint64_t executions = 0;
  uint64_t interleavings = 0;  // distinct ones among them
  // Everything was executed, as far as the caveats do not limit that: a bound of the strategy, fairness.
  // Never true if executions were cut off, or if memory accesses of the program are not seen.
  bool exhausted = false;
  std::vector<CheckCaveat> caveats;
  double seconds = 0;
  std::vector<CheckFinding> findings;  // failures first
  std::vector<std::string> warnings;   // what the search could not control or repeat

  explicit operator bool() const { return ok; }
};

// Not from two threads at a time. Does not throw for anything that the body does.
CheckResult check(const CheckOptions& options, const std::function<void()>& body,
                  const char* file = __builtin_FILE(), int line = __builtin_LINE());
CheckResult check(const std::function<void()>& body, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE());

// In the body, in any of its threads: a condition that must hold. If not, the execution ends here. assert()
// and exceptions that leave a thread do the same. Outside of a check it aborts the program.
void expect(bool condition, const char* what = "an expectation does not hold");

}  // namespace slalom
