// pos: partial order sampling (Yuan, Yang, Gu, CAV 2018).
//
// Every pending operation has a random priority, drawn when it becomes pending; the highest enabled one runs.
// Then the pending operations that conflict with it get new priorities, so that their order among themselves
// does not depend on having lost to it. Two operations that do not conflict are never made to compete twice:
// executions that differ only in the order of independent operations share their probability, and one
// operation against a long run of an unrelated agent has an even chance where a random walk has an
// exponentially small one. Guarantee: every partial order has a positive probability, a better lower bound
// than a random walk's (their section 3). Deviations: an operation's conflicts are those of its pending
// object (trace/op.h); where a choice policy lets several operations pass at once, only the first of them
// counts. Cost: a sweep over the enabled agents at a choice point.
#pragma once

#include "explore/strategies/sampling.h"

namespace slalom {

struct PosOptions {
  uint64_t seed = 1;
};

class Pos : public Sampler {
 public:
  explicit Pos(PosOptions options = {}) : options_(options) {}
  std::string name() const override { return "pos"; }
  std::unique_ptr<Walker> walker(const Task& task) const override;

 private:
  PosOptions options_;
};

}  // namespace slalom
