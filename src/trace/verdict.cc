#include "trace/verdict.h"

#include "base/check.h"

namespace slalom {

std::string_view name(BugKind kind) {
  switch (kind) {
    case BugKind::Assertion:
      return "assertion";
    case BugKind::Crash:
      return "crash";
    case BugKind::Deadlock:
      return "deadlock";
    case BugKind::LostWakeup:
      return "lost-wakeup";
    case BugKind::Livelock:
      return "livelock";
    case BugKind::GoodSamaritan:
      return "good-samaritan";
    case BugKind::UseAfterFree:
      return "use-after-free";
    case BugKind::DoubleFree:
      return "double-free";
    case BugKind::Leak:
      return "leak";
    case BugKind::DataRace:
      return "data-race";
    case BugKind::WeakMemory:
      return "weak-memory";
  }
  CHECK(false, "bug kind {}", static_cast<int>(kind));
  return {};
}

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::Failure:
      return "failure";
    case Severity::Race:
      return "race";
    case Severity::Suspicion:
      return "suspicion";
  }
  CHECK(false, "severity {}", static_cast<int>(severity));
  return {};
}

}  // namespace slalom
