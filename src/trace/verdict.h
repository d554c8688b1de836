// Verdict: what a detector says about one execution. The same bug has the same title in every execution on
// every machine, so findings are merged by title.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/strong.h"
#include "trace/agent.h"

namespace slalom {

enum class BugKind : uint8_t {
  Assertion,
  Crash,
  Deadlock,
  LostWakeup,
  Livelock,
  GoodSamaritan,  // spins without yielding (CHESS, section 5.4.2)
  UseAfterFree,
  DoubleFree,
  Leak,
  DataRace,
  WeakMemory,  // a processor may reorder accesses in a way that no interleaving shows
};
inline constexpr int kBugKinds = static_cast<int>(BugKind::WeakMemory) + 1;
std::string_view name(BugKind kind);  // "assertion", "data-race": as in JSON

enum class Severity : uint8_t { Failure, Race, Suspicion };
std::string_view name(Severity severity);

// A place in the execution that the reader should see.
struct Evidence {
  Step step;
  AgentId agent;
  Place pc;
  std::string text;
  bool operator==(const Evidence&) const = default;
};

struct Verdict {
  BugKind kind = BugKind::Assertion;
  Severity severity = Severity::Failure;
  std::string title;
  std::string detail;  // sentences for the report; may be empty
  std::vector<Evidence> evidence;
  bool operator==(const Verdict&) const = default;
};

}  // namespace slalom
