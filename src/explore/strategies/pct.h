// pct: probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010).
//
// Every agent has a random priority above all change values 1 .. d-1. The highest enabled agent runs. There
// are d-1 change points, drawn uniformly from the steps 1 .. k. The agent that executes the step of change
// point i falls to priority i.
//
// Guarantee: an execution finds a bug of depth d (d ordering constraints suffice for it) with probability at
// least 1 / (n k^(d-1)), where n bounds the agents and k the steps. This holds for programs that do not
// yield, with choice points at all operations. Under other choice policies, a change waits for the next
// choice point.
//
// Deviations: for liveness, an agent that yields gets the lowest priority of all, in every execution or, if
// agents may insist, in every other one. The runner's fairness then applies too. If k is not given, it is the
// largest number of steps seen so far, and the pilot has no change points.
//
// Cost: a sweep over the enabled agents at a choice point. Between change points, the forecast keeps the
// agent, once the first epoch has shown that every step is a choice point: `keep` counts choice points, and a
// change point counts steps.
#pragma once

#include "explore/strategies/sampling.h"

namespace slalom {

struct PctOptions {
  uint64_t seed = 1;
  uint32_t depth = 3;    // d, at least 1 and at most Pct::kMostDepth
  uint64_t k = 0;        // steps of the target; 0: learned
  uint64_t n = 0;        // agents of the target, only for the guarantee; 0: learned
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
  uint64_t k_ = 0;      // in effect; 0: unknown yet
  bool keeps_ = false;  // forecasts keep agents; in effect
  uint64_t max_steps_ = 0;
  uint64_t max_agents_ = 0;
  uint64_t measured_ = 0;   // executions without such forecasts
  bool every_step_ = true;  // in all of these, every step was a choice point
  uint64_t counted_ = 0;    // executions made with the k in effect; the guarantee holds for them
};

}  // namespace slalom
