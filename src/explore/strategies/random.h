// random: a random walk. At every scheduling choice point each enabled agent is equally probable. The
// baseline of Thomson, Donaldson and Betts (PPoPP 2014), who found it hard to beat.
//
// Guarantee: every execution of the target has a positive probability; nothing better, since one that needs m
// particular choices among n agents has n^-m.
//
// With stretch=N each agent goes on for 1 to N choice points, at random, before the next one is drawn: as
// coarse as plain stress, where whoever runs keeps running, and a baseline for all that looks closer.
//
// Deviations: none; the runner's fairness takes options away only after somebody yielded.
//
// Cost: one random number a choice.
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
