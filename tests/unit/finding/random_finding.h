// Random findings, for round-trip tests and as seeds for the fuzz drivers.
#pragma once

#include "finding/finding.h"
#include "unit/trace/random_values.h"

namespace slalom {

inline OrderPoint random_point(Rng& rng) {
  return {random_agent(rng), random_number(rng), random_place(rng), random_text(rng)};
}

inline Finding random_finding(Rng& rng) {
  Finding finding;
  finding.verdict = random_verdict(rng);
  finding.target = make_target(random_text(rng), random_text(rng), random_text(rng),
                               random_vector<std::pair<std::string, int64_t>>(rng, 3, [](Rng& r) {
                                 return std::pair(random_text(r), static_cast<int64_t>(random_number(r)));
                               }));
  finding.policy = random_policy(rng);
  finding.max_steps = random_number(rng);
  finding.schedule = random_schedule(rng);
  finding.original = random_schedule(rng);
  finding.minimality = random_enum<Minimality>(rng, kMinimalities);
  finding.excluded = static_cast<uint8_t>(rng.below(kMostExcluded + 1));
  finding.constraints = random_vector<OrderConstraint>(rng, 3, [](Rng& r) {
    return OrderConstraint{random_point(r), random_point(r)};
  });
  finding.strategy = random_text(rng);
  finding.seed = random_number(rng);
  finding.execution = random_number(rng);
  finding.occurrences = random_number(rng);
  finding.replays_tried = random_u32(rng);
  finding.replays_same = random_u32(rng);
  finding.surroundings = random_text(rng);
  for (Schedule* schedule : {&finding.schedule, &finding.original})
    if (rng.below(2) == 0)
      schedule->errors = ErrorLog{
          random_vector<ErrorReturn>(rng, 1,
                                     [](Rng& r) {
                                       return ErrorReturn{random_agent(r), random_number(r),
                                                          random_text(r),  -static_cast<int32_t>(r.below(9)),
                                                          r.below(2) == 0, random_number(r),
                                                          random_text(r),  random_place(r)};
                                     }),
          random_number(rng)};
  return finding;
}

}  // namespace slalom
