// random: a random walk. Each enabled agent is equally probable at every scheduling choice point. Thomson,
// Donaldson and Betts (PPoPP 2014) used it as a baseline, and found it hard to beat.
//
// Guarantee: every execution of the target has a positive probability, and nothing better: an execution that
// needs m particular choices among n agents has n^-m.
//
// With stretch=N, each agent goes on for 1 to N choice points, at random, before the next agent is drawn.
// This is as coarse as plain stress, where the running thread keeps running, and a baseline for finer
// strategies.
//
// Deviations: none. The runner's fairness removes options only after an agent yielded.
//
// Cost: one random number per choice.
#pragma once

#include "explore/strategies/sampling.h"

namespace slalom {

struct RandomOptions {
  uint64_t seed = 1;
  uint32_t stretch = 1;
};

class Random : public Sampler {
 public:
  explicit Random(RandomOptions options = {}) : options_(options) {}
  void restart() override { *this = Random(options_); }
  std::string name() const override { return "random"; }
  std::unique_ptr<Walker> walker(const Task& task) const override;

 private:
  RandomOptions options_;
};

}  // namespace slalom
