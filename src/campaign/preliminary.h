// Preliminary: a short search that comes before everything else that is done with a target, since the target
// judges executions by its results. For a kernel test, it runs whole system calls in every serial order.
//
// A campaign, a replay and plain stress call run_preliminary() first. The target describes the search; the
// explorer runs it.
#pragma once

#include <functional>
#include <memory>

#include "explore/explorer.h"

namespace slalom {

struct Target;

class Preliminary {
 public:
  virtual ~Preliminary() = default;
  // Returns nullptr if there is nothing to search for, or nothing any more. Else end() follows.
  virtual std::unique_ptr<Strategy> begin() = 0;
  virtual Inputs inputs() const = 0;
  virtual Result<Worker> make_worker() = 0;
  virtual void end(const ExploreResult& result) = 0;
};

// Runs the target's preliminary search, if it has one that has not been run. Ends it early if `stop` returns
// true.
Result<void> run_preliminary(const Target& target, const std::function<bool()>& stop);

}  // namespace slalom
