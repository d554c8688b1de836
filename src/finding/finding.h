// Finding: a bug with everything needed to see it again: the verdict, the target, the schedule, and how it
// was found.
//
// Two findings are the same bug if their signatures are equal: same target name, same title. A Finding is a
// value. finding/store.h keeps it, a capsule (finding/capsule.h) transports it, and report/ shows it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "trace/choice_policy.h"
#include "trace/schedule.h"
#include "trace/verdict.h"

namespace slalom {

// The executed target, complete: a replay needs nothing else.
struct TargetId {
  std::string kind;     // "toy"
  std::string name;     // "bank"
  std::string content;  // of a toy: the whole TOML text
  std::vector<std::pair<std::string, int64_t>> params;
  std::string hash;  // of the fields above, 16 hex digits; computed by make_target, never stored
  bool operator==(const TargetId&) const = default;
};
TargetId make_target(std::string kind, std::string name, std::string content,
                     std::vector<std::pair<std::string, int64_t>> params = {});

// A place in an execution, by the agent's own count of operations.
struct OrderPoint {
  AgentId agent;
  uint64_t ops = 0;
  Place pc;
  std::string text;
  bool operator==(const OrderPoint&) const = default;
};
// An order of two operations that the bug needs.
struct OrderConstraint {
  OrderPoint before;
  OrderPoint after;
  bool operator==(const OrderConstraint&) const = default;
};

enum class Minimality : uint8_t {
  Unshrunk,
  Minimal,  // no switch can be left out
  Minimum,  // Minimal, and all smaller bounds were searched completely
};
inline constexpr uint8_t kMostExcluded = 63;
inline constexpr int kMinimalities = static_cast<int>(Minimality::Minimum) + 1;
std::string_view name(Minimality minimality);  // "unshrunk", "minimal", "minimum"

struct Finding {
  Verdict verdict;
  TargetId target;
  ChoicePolicy policy;
  uint64_t max_steps = 0;

  Schedule schedule;
  Schedule original;  // as found, before shrinking
  Minimality minimality = Minimality::Unshrunk;
  // All schedules with fewer preemptions than this were executed, and none shows the bug. At most
  // kMostExcluded.
  uint8_t excluded = 0;
  std::vector<OrderConstraint> constraints;

  std::string strategy;
  uint64_t seed = 0;
  uint64_t execution = 0;    // index of the first execution that showed it
  uint64_t occurrences = 0;  // number of executions that showed it
  uint32_t replays_tried = 0;
  uint32_t replays_same = 0;  // of those, replays with the same verdict
  uint64_t state_hash = 0;    // of the target at the end of the schedule; 0 if unknown
  std::string surroundings;   // where the target ran, as text; empty if replays do not depend on it
  bool operator==(const Finding&) const = default;
};

std::string signature(const Finding& finding);  // 16 hex digits

void encode(ByteWriter& out, const Finding& finding);
void decode(ByteReader& in, Finding& finding);

}  // namespace slalom
