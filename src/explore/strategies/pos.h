// pos: partial order sampling (Yuan, Yang, Gu, CAV 2018).
//
// Every pending operation has a random priority, drawn when it becomes pending. The highest enabled operation
// runs. Then the pending operations that conflict with it get new priorities, so that having lost to it does
// not spoil their chances against later operations. Operations that do not conflict keep their priorities:
// one operation comes after m operations of an unrelated agent with probability 1 / (m+1), where a random
// walk has 2^-m.
//
// Guarantee: every partial order has a positive probability. The paper gives a lower bound, which is better
// than that of a random walk.
//
// Deviations: an operation's conflicts are those of its pending object (trace/op.h). If a choice policy lets
// several operations pass at once, only the first of them counts.
//
// Cost: a sweep over the enabled agents at a choice point.
#pragma once

#include "explore/strategies/sampling.h"

namespace slalom {

struct PosOptions {
  uint64_t seed = 1;
};

class Pos : public Sampler {
 public:
  explicit Pos(PosOptions options = {}) : options_(options) {}
  void restart() override { *this = Pos(options_); }
  std::string name() const override { return "pos"; }
  std::unique_ptr<Walker> walker(const Task& task) const override;

 private:
  PosOptions options_;
};

}  // namespace slalom
