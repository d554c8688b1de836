// surw: selectively uniform random walk (Zhao, Wolff, Mathur, Roychoudhury, ASPLOS 2025).
//
// Some operations are interesting: all operations, or those on one object. For every execution, the object is
// drawn anew among the objects that several agents use and one of them writes. The agent whose interesting
// operation comes next is drawn in proportion to the number of interesting operations that each agent has
// left, including the agents that it has still to spawn. All other operations go on at random meanwhile. Only
// the interesting operations of agents that were not drawn wait.
//
// Guarantee: for programs that do not block, with exact counts, every order of the interesting operations is
// equally probable (agents that spawn agents make a forest, and drawing roots by the size of their trees is
// uniform over its linear extensions). Every execution stays possible.
//
// Deviations: counts are means over the earlier executions that exited, rounded up. Another agent is drawn if
// the drawn agent yields, if it does not reach its operation within a mean execution's length, or if all
// others wait for it in vain. An operation that is visibly pending counts as left, whatever the counts say.
//
// Cost: a sweep over the enabled agents and a random number per choice; for one object also the recording of
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
    std::map<AgentId, uint64_t> by_agent;  // operations in all executions together
  };
  struct Counts {
    uint64_t executions = 0;
    uint64_t steps = 0;
    std::map<ObjectId, Uses> objects;  // by object; kEverything counts all operations
    void save(ByteWriter& out) const;
    bool load(ByteReader& in);
  };
  void count_objects(const Execution& execution);

  SurwOptions options_;
  Counts learned_;                // counts in effect
  Counts learning_;               // counts in effect from the next epoch on
  std::vector<ObjectId> shared_;  // objects in learned_ that can be the one object
};

}  // namespace slalom
