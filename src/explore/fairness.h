// Fairness: CHESS's fair scheduling (section 4.3; Musuvathi and Qadeer, PLDI 2008, Algorithm 1).
//
// An agent that yields where it has yielded before gets a lower priority than the agents it starved: those
// that were enabled, or that it disabled, since its last yield and did not run. Programs whose threads yield
// when they cannot go on thus end under every schedule that is left. Nothing is lost that shows without an
// agent yielding twice at one place. (The paper counts instead: it looks at every k-th yield of an agent, and
// can lose what shows after more than k, in programs without loops too.) Programs that never yield are not
// restricted at all.
//
// Some loops give up: they yield a few times, then sleep. What goes wrong after that shows only if nobody
// else runs meanwhile. So an agent may *insist*, once at each place: it is offered to go on where it should
// give way, and if it does, it goes through the same loop alone, without further choices, until it leaves it
// or has had its turns.
#pragma once

#include <vector>

#include "explore/agent_set.h"
#include "trace/choice.h"

namespace slalom {

class Fairness {
 public:
  // How often whoever insists may yield in a row; 0: nobody may insist.
  explicit Fairness(uint32_t turns = 0) : turns_(turns) {}
  void clear() { *this = Fairness(turns_); }
  bool restricts() const { return yielded_; }
  bool has_withheld() const { return withheld_; }  // an option, in this execution
  bool concerns(const ChoicePoint& point) const { return yielded_ || point.kind == ChoiceKind::Yielded; }
  // Reports what is enabled at a scheduling choice point and who ran last; removes options that would be
  // unfair.
  void filter(const ChoicePoint& point, std::vector<Option>& options);
  uint64_t hash() const { return yielded_ ? hash_all() : 0; }

 private:
  struct PerAgent {
    AgentSet starved_by_priority;  // agents that must run before this one: P(this, *)
    AgentSet scheduled;            // S: ran since this one's last yield
    AgentSet enabled;              // E: enabled ever since this one's last yield
    AgentSet disabled;             // D: disabled by this one since its last yield
    std::vector<Place> yields;     // where it went on after each
    std::vector<Place> offers;     // where it could insist
    std::vector<Place> passed;     // since its last yield,
    std::vector<Place> loop;       // and between the last two
    uint32_t turns = 0;            // that are left, if it insists or was just offered to
  };
  void yields(PerAgent& agent, Place place);
  bool goes_on_alone(PerAgent& agent, ChoiceKind kind, Place place);
  uint64_t hash_all() const;

  uint32_t turns_;
  AgentTable table_;
  std::vector<PerAgent> agents_;
  AgentSet enabled_before_;
  bool yielded_ = false;  // until somebody yields there is nothing to do
  bool withheld_ = false;
};

}  // namespace slalom
