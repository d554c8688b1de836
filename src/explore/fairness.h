// Fairness: CHESS's fair scheduling (section 4.3; Musuvathi and Qadeer, PLDI 2008, Algorithm 1).
//
// An agent that yields where it has yielded before gets a lower priority than the agents that it starved:
// those that did not run since its last yield, although they were enabled or it disabled them. A program
// whose threads yield when they cannot go on thus ends under every remaining schedule. No behaviour is lost,
// except behaviour that needs an agent to yield twice at one place. (The paper instead handles every k-th
// yield of an agent. It can lose behaviour that needs more than k yields, even in programs without loops.)
// Programs that never yield are not restricted at all.
//
// Some loops give up: they yield a few times, then sleep. A bug after that shows only if no other agent runs
// meanwhile. So an agent may *insist*, once per place: where it should give way, the search is also offered
// to let it go on. An agent that goes on repeats the same loop alone, without further choices, until it
// leaves the loop or has used its turns.
#pragma once

#include <vector>

#include "explore/agent_set.h"
#include "trace/choice.h"

namespace slalom {

class Fairness {
 public:
  // `turns`: how often an insisting agent may yield in a row; 0: agents may not insist.
  explicit Fairness(uint32_t turns = 0) : turns_(turns) {}
  void clear() { *this = Fairness(turns_); }
  bool restricts() const { return yielded_; }
  bool has_withheld() const { return withheld_; }  // whether it removed an option from this execution
  bool concerns(const ChoicePoint& point) const { return yielded_ || point.kind == ChoiceKind::Yielded; }
  // Takes the enabled agents of a scheduling choice point and the agent that ran last. Removes the options
  // that would be unfair.
  void filter(const ChoicePoint& point, std::vector<Option>& options);
  uint64_t hash() const { return yielded_ ? hash_all() : 0; }

 private:
  struct PerAgent {
    AgentSet starved_by_priority;  // agents that must run before this one: P(this, *)
    AgentSet scheduled;            // S: agents that ran since this one's last yield
    AgentSet enabled;              // E: agents enabled ever since this one's last yield
    AgentSet disabled;             // D: agents that this one disabled since its last yield
    std::vector<Place> yields;     // places where it continued after each yield
    std::vector<Place> offers;     // places where it was offered to insist
    std::vector<Place> passed;     // choice points since its last yield
    std::vector<Place> loop;       // choice points between its last two yields
    uint32_t turns = 0;            // remaining turns, if it insists or was just offered to
  };
  void yields(PerAgent& agent, Place place);
  bool goes_on_alone(PerAgent& agent, ChoiceKind kind, Place place);
  uint64_t hash_all() const;

  uint32_t turns_;
  AgentTable table_;
  std::vector<PerAgent> agents_;
  AgentSet enabled_before_;
  bool yielded_ = false;  // false until an agent yields: there is nothing to do before
  bool withheld_ = false;
};

}  // namespace slalom
