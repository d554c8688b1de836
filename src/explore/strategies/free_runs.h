// free-runs: plain stress, for comparison with searches. The machine goes on by itself (Control::None). The
// seed draws only which agent begins, and how long its first turn lasts.
//
// Guarantee: none.
//
// Deviations: there is no paper. Runs share no decisions, so there is nothing to learn.
//
// Cost: two random numbers per execution.
#pragma once

#include "explore/strategies/sampling.h"

namespace slalom {

struct FreeRunsOptions {
  uint64_t seed = 1;
  uint32_t longest_turn = 1;  // operations; the first turn lasts 1 to this many
};

class FreeRuns : public Sampler {
 public:
  explicit FreeRuns(FreeRunsOptions options) : options_(options) {}
  std::string name() const override { return "free runs"; }
  bool fair() const override { return false; }
  bool adapts() const override { return false; }  // it makes no choices that knowledge could name
  bool restarts() const override { return false; }
  std::unique_ptr<Walker> walker(const Task& task) const override;

 private:
  FreeRunsOptions options_;
};

}  // namespace slalom
