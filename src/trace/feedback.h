// Feedback: facts that an execution has shown and that later executions should know. A search merges feedback
// at fixed points, so that the result is the same for any number of workers.
#pragma once

#include <vector>

#include "base/strong.h"

namespace slalom {

struct Feedback {
  std::vector<Place> places;  // places that should be choice points besides those of the policy; sorted
  // Places of the execution's atomic operations; empty unless Reporting::collect_atomics. Sorted.
  std::vector<Place> atomics;
  bool guessed = false;  // the machine inferred from an agent's behaviour that it waits (a CPU that spins)
};

}  // namespace slalom
