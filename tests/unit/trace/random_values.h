// Random values of the types of trace/, for round-trip tests and as seeds for the fuzz drivers. Numbers are
// drawn from all magnitudes, so that both short and long encodings occur.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"
#include "trace/choice_policy.h"
#include "trace/outcome.h"
#include "trace/schedule.h"
#include "trace/trace_log.h"
#include "trace/verdict.h"

namespace slalom {

inline uint64_t random_number(Rng& rng) {
  switch (rng.below(8)) {
    case 0:
      return 0;
    case 1:
      return UINT64_MAX;
    default:
      return rng.next() >> rng.below(64);
  }
}

inline uint32_t random_u32(Rng& rng) {
  return static_cast<uint32_t>(random_number(rng));
}

inline std::string random_text(Rng& rng) {
  std::string text(rng.below(2) == 0 ? 0 : rng.below(20), ' ');
  for (char& c : text) c = static_cast<char>(rng.next());
  return text;
}

inline AgentId random_agent(Rng& rng) {
  AgentId agent;
  for (uint64_t levels = rng.below(11); levels > 0; --levels)
    agent = rng.below(5) == 0
                ? agent.interrupt(static_cast<uint32_t>(rng.below(60)))
                : agent.child(static_cast<uint32_t>(rng.below(4) == 0 ? rng.below(300) : rng.below(4)));
  return agent;
}

template <typename T, typename Make>
std::vector<T> random_vector(Rng& rng, uint64_t most, Make make) {
  std::vector<T> items;
  for (uint64_t left = rng.below(most + 1); left > 0; --left) items.push_back(make(rng));
  return items;
}

template <typename E>
E random_enum(Rng& rng, int count) {
  return static_cast<E>(rng.below(static_cast<uint64_t>(count)));
}

inline Place random_place(Rng& rng) {
  return Place{random_number(rng)};
}

inline Schedule random_schedule(Rng& rng) {
  Schedule schedule;
  schedule.switches = random_vector<Switch>(rng, 20, [](Rng& r) {
    return Switch{random_agent(r), random_number(r), random_agent(r)};
  });
  schedule.data = random_vector<DataChoice>(rng, 5, [](Rng& r) {
    return DataChoice{random_agent(r), random_number(r), random_u32(r), random_u32(r)};
  });
  schedule.digest = random_number(rng);
  return schedule;
}

inline ChoicePolicy random_policy(Rng& rng) {
  ChoicePolicy policy;
  policy.where = random_enum<ChoicePolicy::Where>(rng, 3);
  policy.places = random_vector<Place>(rng, 5, random_place);
  policy.stops = random_vector<ChoicePolicy::AgentPosition>(rng, 5, [](Rng& r) {
    return ChoicePolicy::AgentPosition{random_agent(r), random_number(r)};
  });
  policy.accesses = random_vector<ChoicePolicy::WatchedAccess>(rng, 3, [](Rng& r) {
    return ChoicePolicy::WatchedAccess{.place = random_place(r),
                                       .first = random_number(r),
                                       .last = random_number(r),
                                       .reads = r.below(2) != 0,
                                       .writes = r.below(2) != 0};
  });
  std::sort(policy.accesses.begin(), policy.accesses.end());
  std::sort(policy.places.begin(), policy.places.end());
  std::sort(policy.stops.begin(), policy.stops.end());
  return policy;
}

inline Verdict random_verdict(Rng& rng) {
  Verdict verdict;
  verdict.kind = random_enum<BugKind>(rng, kBugKinds);
  verdict.severity = random_enum<Severity>(rng, 3);
  verdict.title = random_text(rng);
  verdict.detail = random_text(rng);
  verdict.evidence = random_vector<Evidence>(rng, 4, [](Rng& r) {
    return Evidence{Step{random_number(r)}, random_agent(r), random_place(r), random_text(r)};
  });
  return verdict;
}

inline Outcome random_outcome(Rng& rng) {
  switch (rng.below(6)) {
    case 0:
      return Exited{};
    case 1:
      return Deadlocked{random_vector<Deadlocked::Waiting>(rng, 4, [](Rng& r) {
        return Deadlocked::Waiting{random_agent(r), random_enum<OpKind>(r, kOpKinds),
                                   ObjectId{random_number(r)}, random_place(r),
                                   random_vector<AgentId>(r, 3, random_agent)};
      })};
    case 2:
      return Faulted{random_enum<Faulted::Kind>(rng, 2), random_agent(rng), random_place(rng),
                     random_text(rng)};
    case 3:
      return LimitReached{random_number(rng), random_vector<AgentId>(rng, 4, random_agent),
                          random_enum<LimitReached::Limit>(rng, 2)};
    case 4:
      return Abandoned{random_text(rng)};
    default:
      return ToolError{random_text(rng)};
  }
}

inline Access random_access(Rng& rng, uint64_t retired) {
  Access access = {};
  access.pc_bits = random_number(rng);
  access.op_bits = rng.below(4) == 0 ? rng.below(kOpKinds) : 1 + rng.below(6);
  access.modify_bits = rng.below(3) == 0 ? rng.below(1 + static_cast<uint64_t>(Modify::Other)) : 0;
  access.size = rng.below(4) == 0 ? rng.below(65536) : 1u << rng.below(4);
  access.address_bits = random_number(rng);
  access.retired = retired;
  access.value = random_number(rng);
  access.physical = random_number(rng);
  access.ring = rng.below(4);
  access.wrote = rng.below(2);
  access.unordered = rng.below(4) == 0;
  access.is_private = rng.below(4) == 0;
  return access;
}

inline TraceLog random_trace(Rng& rng) {
  TraceLog log;
  for (uint64_t entries = rng.below(20); entries > 0; --entries) {
    if (rng.below(2) == 0) {
      const std::string text = random_text(rng);
      log.on_event({Step{random_number(rng)}, random_agent(rng), random_enum<OpKind>(rng, kOpKinds),
                    random_place(rng), ObjectId{random_number(rng)}, random_number(rng), random_agent(rng),
                    static_cast<int64_t>(random_number(rng)), text, rng.below(4) == 0});
    } else {
      std::vector<Access> accesses =
          random_vector<Access>(rng, 10, [](Rng& r) { return random_access(r, random_number(r) & 0xffff); });
      log.on_accesses(accesses, {random_agent(rng), random_number(rng), Step{random_number(rng)}});
    }
  }
  log.on_end(random_outcome(rng));
  return log;
}

}  // namespace slalom
