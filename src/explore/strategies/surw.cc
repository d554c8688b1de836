#include "explore/strategies/surw.h"

namespace slalom {
namespace {

constexpr ObjectId kEverything{0};
// Limit of the counts, because a target may make new objects for ever.
constexpr size_t kMaxObjects = 1 << 14;

class SurwWalker : public Walker {
 public:
  SurwWalker(Rng rng, const SurwHint& hint) : rng_(rng), object_(hint.object), patience_(hint.patience) {
    for (const auto& [agent, operations] : hint.operations) agents_.at(agent).left = operations;
    // Children come after their parents. From the end, each count grows to that of the whole tree below the
    // agent.
    auto& entries = agents_.entries();
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
      if (Agent* parent = agents_.existing(entry->agent.parent())) parent->left += entry->value.left;
    weights_.reserve(16);
  }

  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    if (point.kind == ChoiceKind::Data) return random_value(point, rng_);
    const bool all = object_ == kEverything;
    if (all && point.current) {
      Agent& current = agents_.at(point.current);
      take(current, point.current_ops - current.ops);
      current.ops = point.current_ops;
    }
    meet_newcomers(options);
    if (all) return Decision{options[draw(options)].agent};
    if ((point.kind == ChoiceKind::Yielded && point.current == drawn_) ||
        point.position.raw - drawn_at_ > patience_)
      drawn_ = {};
    if (!drawn_) draw_agent(point, options);
    size_t free = 0;
    for (const Option& option : options) free += may_run(option);
    if (free == 0) {  // the drawn agent is blocked or has ended, and all others wait for it
      draw_agent(point, options);
      for (const Option& option : options) free += may_run(option);
    }
    uint64_t skip = rng_.below(free);
    const Option* next = options.data();
    while (!may_run(*next) || skip-- > 0) ++next;
    if (next->op.object == object_) {
      take(agents_.at(next->agent), 1);
      drawn_ = {};
    }
    return Decision{next->agent};
  }

 private:
  struct Agent {
    uint64_t left = 0;  // interesting operations of the agent and of all agents that it has still to spawn
    uint64_t ops = 0;
    bool met = false;
  };

  static void take(Agent& agent, uint64_t operations) { agent.left -= std::min(agent.left, operations); }

  // A new agent takes its own count from its parent, and inherits the parent's turn with its share as the
  // probability.
  void meet_newcomers(std::span<const Option> options) {
    size_t at = 0;
    for (const Option& option : options) {
      at = agents_.find(option.agent, at);
      Agent& agent = agents_[at++];
      if (agent.met) continue;
      agent.met = true;
      const uint64_t own = agent.left;
      Agent* parent = agents_.existing(option.agent.parent());
      if (parent == nullptr || own == 0) continue;
      if (drawn_ == option.agent.parent() && rng_.below(std::max(parent->left, own)) < own)
        drawn_ = option.agent;
      take(*parent, own);
    }
  }

  // Draws an option in proportion to what its agent has left. An operation that is visibly pending counts,
  // whatever was learned.
  size_t draw(std::span<const Option> options) {
    weights_.clear();
    uint64_t sum = 0;
    size_t at = 0;
    for (const Option& option : options) {
      at = agents_.find(option.agent, at);
      const bool pending = object_ == kEverything || option.op.object == object_;
      weights_.push_back(std::max<uint64_t>(agents_[at++].left, pending));
      sum += weights_.back();
    }
    if (sum == 0) return options.size();
    uint64_t rest = rng_.below(sum);
    size_t chosen = 0;
    while (rest >= weights_[chosen]) rest -= weights_[chosen++];
    return chosen;
  }

  void draw_agent(const ChoicePoint& point, std::span<const Option> options) {
    const size_t chosen = draw(options);
    drawn_ = chosen < options.size() ? options[chosen].agent : AgentId{};
    drawn_at_ = point.position.raw;
  }

  bool may_run(const Option& option) const { return option.op.object != object_ || option.agent == drawn_; }

  Rng rng_;
  ObjectId object_;
  uint64_t patience_;
  AgentMap<Agent> agents_;
  std::vector<uint64_t> weights_;
  AgentId drawn_;  // the agent whose interesting operation comes next
  uint64_t drawn_at_ = 0;
};

uint64_t mean(uint64_t sum, uint64_t count) {
  return count == 0 ? 0 : (sum + count - 1) / count;
}

}  // namespace

std::string Surw::name() const {
  switch (options_.interesting) {
    case SurwOptions::Interesting::All:
      return "surw";
    case SurwOptions::Interesting::OneObject:
      return "surw by object";
    case SurwOptions::Interesting::Alternate:
      return "surw alternating";
  }
  return {};
}

Recording Surw::recording() const {
  return options_.interesting == SurwOptions::Interesting::All ? Recording::Schedule : Recording::Choices;
}

void Surw::start_epoch() {
  learned_ = learning_;
  shared_.clear();
  for (const auto& [object, uses] : learned_.objects)
    if (object != kEverything && uses.written && uses.by_agent.size() > 1) shared_.push_back(object);
}

void Surw::prepare(Task& task) const {
  ObjectId object = kEverything;
  const bool one = options_.interesting == SurwOptions::Interesting::OneObject ||
                   (options_.interesting == SurwOptions::Interesting::Alternate && task.index % 2 == 1);
  if (one && !shared_.empty())
    object = shared_[Rng(combine(options_.seed, hash_text("object")), task.index).below(shared_.size())];
  SurwHint hint{.object = object, .patience = mean(learned_.steps, learned_.executions), .operations = {}};
  if (const auto uses = learned_.objects.find(object); uses != learned_.objects.end())
    for (const auto& [agent, operations] : uses->second.by_agent)
      hint.operations.emplace_back(agent, mean(operations, learned_.executions));
  task.hint = std::move(hint);
}

std::unique_ptr<Walker> Surw::walker(const Task& task) const {
  return std::make_unique<SurwWalker>(Rng(options_.seed, task.index), hint_of<SurwHint>(task));
}

void Surw::learn(const Task&, const Execution& execution) {
  // An execution that failed half-way says too little about what the agents would have done.
  if (execution.divergence || !std::holds_alternative<Exited>(execution.outcome)) return;
  ++learning_.executions;
  learning_.steps += execution.positions;
  for (const auto& [agent, operations] : execution.agent_ops)
    learning_.objects[kEverything].by_agent[agent] += operations;
  if (recording() != Recording::Schedule) count_objects(execution);
}

void Surw::count_objects(const Execution& execution) {
  for (size_t i = 0; i < execution.choices.size(); ++i) {
    const Pick& taken = execution.choices[i].taken;
    if (taken.data) continue;
    for (const Option& option : execution.options_at(i)) {
      if (option.agent != taken.agent) continue;
      const Effect does = effect(option.op.kind);
      if (does == Effect::None) break;
      if (learning_.objects.size() >= kMaxObjects && !learning_.objects.contains(option.op.object)) break;
      Uses& uses = learning_.objects[option.op.object];
      uses.written |= does == Effect::Write;
      ++uses.by_agent[option.agent];
      break;
    }
  }
}

void Surw::Counts::save(ByteWriter& out) const {
  out.u64(executions);
  out.u64(steps);
  out.u64(objects.size());
  for (const auto& [object, uses] : objects) {
    out.u64(object.raw);
    out.u8(uses.written);
    out.u64(uses.by_agent.size());
    for (const auto& [agent, operations] : uses.by_agent) {
      out.u64(agent.raw);
      out.u64(operations);
    }
  }
}

bool Surw::Counts::load(ByteReader& in) {
  *this = {};
  executions = in.u64();
  steps = in.u64();
  for (uint64_t left = in.count(); left > 0 && in.ok(); --left) {
    Uses& uses = objects[ObjectId{in.u64()}];
    uses.written = in.u8() != 0;
    for (uint64_t agents = in.count(); agents > 0 && in.ok(); --agents) {
      const AgentId agent{in.u64()};
      uses.by_agent[agent] = in.u64();
    }
  }
  return in.ok();
}

void Surw::save(ByteWriter& out) const {
  Sampler::save(out);
  learned_.save(out);
  learning_.save(out);
}

bool Surw::load(ByteReader& in) {
  if (!Sampler::load(in) || !learned_.load(in)) return false;
  Counts learning;
  if (!learning.load(in)) return false;
  learning_ = learned_;  // start_epoch() computes the other members from learned_
  start_epoch();
  learning_ = std::move(learning);
  return true;
}

}  // namespace slalom
