// pct: probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010).
//
// Every agent has a random priority above all change values 1 .. d-1; the highest enabled one runs. There are
// d-1 change points, drawn uniformly from the steps 1 .. k: whoever executes the step of change point i falls
// to priority i.
//
// Guarantee: an execution finds a bug of depth d (d ordering constraints suffice for it) with probability at
// least 1 / (n k^(d-1)), where n bounds the agents and k the steps. That holds for programs that do not
// yield, with choice points at all operations; under other choice policies a change waits for the next choice
// point.
//
// Deviations: an agent that yields becomes the lowest of all, for liveness, in every execution or, where
// agents may insist, in every other one; the runner's fairness applies then, too. Where k is not given, it is
// the largest number of steps seen so far, and the pilot has no change points.
//
// Cost: a sweep over the enabled agents at a choice point. Between change points a lease passes them unasked,
// once the first epoch has shown that every step is a choice point: a lease counts choice points, a change
// point steps.
#pragma once

#include "explore/strategies/sampling.h"

namespace slalom {

struct PctOptions {
  uint64_t seed = 1;
  uint32_t depth = 3;    // d, at least 1 and at most Pct::kMostDepth
  uint64_t k = 0;        // steps of the target; 0: learned
  uint64_t n = 0;        // its agents, for the guarantee only; 0: learned
  bool insists = false;  // half of the executions keep the priority of an agent that yields
};

class Pct : public Sampler {
 public:
  static constexpr uint32_t kMostDepth = PctPicks::kMostChanges + 1;

  explicit Pct(PctOptions options = {});
  void restart() override { *this = Pct(options_); }
  std::string name() const override { return fmt::format("pct depth {}", options_.depth); }
  std::unique_ptr<Walker> walker(const Task& task) const override;
  Coverage coverage() const override;
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in) override;

 protected:
  void start_epoch() override;
  void prepare(Task& task) const override;
  void learn(const Task& task, const Execution& execution) override;

 private:
  PctOptions options_;
  uint64_t k_ = 0;       // in effect; 0: not known yet
  bool leases_ = false;  // in effect
  uint64_t max_steps_ = 0;
  uint64_t max_agents_ = 0;
  uint64_t measured_ = 0;   // executions without leases
  bool every_step_ = true;  // was a choice point, in all of these
  uint64_t counted_ = 0;    // executions made with the k in effect: those the guarantee speaks of
};

}  // namespace slalom
