// surw: selectively uniform random walk (Zhao, Wolff, Mathur, Roychoudhury, ASPLOS 2025).
//
// Some operations are interesting: all, or those on one object, drawn anew for every execution among the
// objects that several agents use and one of them writes. Whose interesting operation comes next is drawn in
// proportion to how many of them each agent has left, the agents it has still to spawn included. All other
// operations go on at random meanwhile; only the interesting ones of agents that were not drawn wait.
//
// Guarantee: for programs that do not block, with exact counts, every order of the interesting operations is
// equally probable (agents that spawn agents make a forest, and drawing roots by the size of their trees is
// uniform over its linear extensions). Every execution stays possible.
//
// Deviations: counts are means over the earlier executions that exited, rounded up. Where the drawn agent
// yields, or does not get there within a mean execution's length, or all others wait for it in vain, another
// one is drawn. What can be seen to be pending counts as left, whatever was learned.
//
// Cost: a sweep over the enabled agents and a random number a choice; for one object also the recording of
// choices.
#pragma once

#include <map>

#include "explore/strategies/sampling.h"

namespace slalom {

struct SurwOptions {
  uint64_t seed = 1;
  enum class Interesting : uint8_t { All, OneObject, Alternate } interesting = Interesting::All;
};

class Surw : public Sampler {
 public:
  explicit Surw(SurwOptions options = {}) : options_(options) {}
  void restart() override { *this = Surw(options_); }
  std::string name() const override;
  Recording recording() const override;
  std::unique_ptr<Walker> walker(const Task& task) const override;
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in) override;

 protected:
  void start_epoch() override;
  void prepare(Task& task) const override;
  void learn(const Task& task, const Execution& execution) override;

 private:
  struct Uses {
    bool written = false;
    std::map<AgentId, uint64_t> by_agent;  // operations, in all executions together
  };
  struct Counts {
    uint64_t executions = 0;
    uint64_t steps = 0;
    std::map<ObjectId, Uses> objects;  // kEverything: all operations
    void save(ByteWriter& out) const;
    bool load(ByteReader& in);
  };
  void count_objects(const Execution& execution);

  SurwOptions options_;
  Counts learned_;                // in effect
  Counts learning_;               // in effect from the next epoch on
  std::vector<ObjectId> shared_;  // of learned_: worth being the one object
};

}  // namespace slalom
