#include "toy/toy_machine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace slalom {
namespace {

std::vector<bool> choice_instructions(const ToyProgram& program, const ChoicePolicy& policy) {
  std::vector<bool> result(program.code.size());
  for (uint32_t pc = 0; pc < program.code.size(); ++pc) {
    const OpKind kind = program.code[pc].kind;
    const bool plain = kind == OpKind::Load || kind == OpKind::Store;
    const bool by_kind = policy.where == ChoicePolicy::Where::Everywhere ||
                         (policy.where == ChoicePolicy::Where::Sync && !plain);
    result[pc] = kind != OpKind::None &&
                 (by_kind || std::binary_search(policy.places.begin(), policy.places.end(), toy_place(pc)));
  }
  return result;
}

}  // namespace

ToyMachine::ToyMachine(std::shared_ptr<const ToyProgram> program, SnapshotMode mode)
    : program_(std::move(program)),
      mode_(mode),
      core_(program_),
      is_choice_(choice_instructions(*program_, policy_)) {}

ToyMachine::ToyMachine(ToyProgram program, SnapshotMode mode)
    : ToyMachine(std::make_shared<const ToyProgram>(std::move(program)), mode) {}

Result<void> ToyMachine::reset(const Inputs& inputs) {
  if (inputs.control == Control::None) return error("a toy program cannot run without control");
  const bool same_choices = inputs.policy.where == policy_.where && inputs.policy.places == policy_.places;
  policy_ = inputs.policy;
  if (!same_choices) is_choice_ = choice_instructions(*program_, policy_);
  core_.reset(inputs.max_steps);
  running_ = false;
  passed_ = 0;
  return {};
}

Stop ToyMachine::start(EventSink& sink) {
  core_.begin(sink);
  if (core_.fault()) return finish(*core_.fault());
  if (core_.state().enabled_count == 0) return conclude();
  if (core_.over_limit()) return finish(limit_reached());
  return stop(ChoiceKind::Start);
}

Stop ToyMachine::resume(Decision decision) {
  if (!running_) return Outcome(ToolError{"resume() without a choice point: call reset() and start() first"});
  const ToyState& state = core_.state();
  const uint32_t self = core_.find_agent(decision.next);
  if (state.arity != 0) {
    if (self != state.current)
      return finish(ToolError{fmt::format("{} asks for a value, but the decision is about {}",
                                          names().agent(state.agents[state.current].id),
                                          names().agent(decision.next))});
    if (decision.value >= state.arity)
      return finish(ToolError{
          fmt::format("the decision is value {}, but there are only {}", decision.value, state.arity)});
    return run(self, decision.value, decision.forecast.keep);
  }
  if (self == kNoToyIndex || !state.agents[self].enabled)
    return finish(ToolError{fmt::format("the decision is to run {}, which cannot run at step {}",
                                        names().agent(decision.next), state.steps)});
  return run(self, std::nullopt, decision.forecast.keep);
}

Stop ToyMachine::run(uint32_t self, std::optional<uint32_t> answer, uint32_t keep) {
  ToyState& state = core_.state();
  state.current = self;
  passed_ = 0;
  const uint64_t stop_at = next_stop(state.agents[self]);
  bool enabled_changed = false;
  while (true) {
    core_.step(self, std::exchange(answer, std::nullopt));
    if (core_.fault()) return finish(*core_.fault());
    if (state.arity != 0) return stop(ChoiceKind::Data);
    if (state.enabled_count == 0) return conclude();
    if (core_.over_limit()) return finish(limit_reached());
    const ToyAgent& agent = state.agents[self];
    // An interrupt's context that has ended may be able to run again at once, but that is another run.
    if (agent.status == ToyAgent::Status::Ended || agent.status == ToyAgent::Status::Idle)
      return stop(ChoiceKind::Ended);
    if (!agent.enabled) return stop(ChoiceKind::Blocked);
    if (core_.yielded()) return stop(ChoiceKind::Yielded);
    if (agent.ops == stop_at) return stop(ChoiceKind::Running);
    enabled_changed |= core_.enabled_changed();
    if (!is_choice_[agent.pc] && (policy_.accesses.empty() || !is_watched(self))) continue;
    if (passed_ == keep || enabled_changed) return stop(ChoiceKind::Running);
    ++passed_;
  }
}

bool ToyMachine::is_watched(uint32_t self) const {
  const PendingOp next = core_.pending(self);
  return is_memory(next.kind) && std::ranges::any_of(policy_.accesses, [&](const auto& one) {
           return one.matches(next.pc, next.object.raw, 1, next.kind);
         });
}

// Returns the agent's own count of operations at the next stop of the schedule.
uint64_t ToyMachine::next_stop(const ToyAgent& agent) const {
  const ChoicePolicy::AgentPosition after{agent.id, agent.ops + 1};
  const auto found = std::lower_bound(policy_.stops.begin(), policy_.stops.end(), after);
  return found != policy_.stops.end() && found->agent == agent.id ? found->ops : UINT64_MAX;
}

Stop ToyMachine::stop(ChoiceKind kind) {
  core_.flush();
  core_.state().kind = kind;
  return choice_point();
}

Stop ToyMachine::choice_point() {
  const ToyState& state = core_.state();
  running_ = true;
  options_known_ = false;
  ChoicePoint point;
  point.position = Position{state.steps};
  point.kind = state.kind;
  point.arity = state.arity;
  point.passed = passed_;
  point.source = this;
  uint64_t position = 0;
  if (state.current != kNoToyIndex) {
    const ToyAgent& agent = state.agents[state.current];
    point.current = agent.id;
    point.current_ops = agent.ops;
    position = agent.pc;
  }
  const uint64_t here = static_cast<uint64_t>(state.kind) | position << 8 | uint64_t{state.arity} << 32;
  point.digest = combine(combine(state.enabled_hash ^ point.current.raw, point.current_ops), here);
  return point;
}

Stop ToyMachine::finish(Outcome outcome) {
  core_.flush();
  running_ = false;
  core_.sink()->on_end(outcome);
  return outcome;
}

Stop ToyMachine::conclude() {
  if (!core_.all_ended()) return finish(core_.deadlock());
  core_.check_final();
  if (core_.fault()) return finish(*core_.fault());
  return finish(Exited{});
}

LimitReached ToyMachine::limit_reached() const {
  const ToyState& state = core_.state();
  LimitReached result{state.steps + state.idle_steps, {}};
  for (uint32_t index : state.order)
    if (state.agents[index].enabled) result.enabled.push_back(state.agents[index].id);
  return result;
}

std::span<const Option> ToyMachine::options() const {
  if (!options_known_) {
    options_known_ = true;
    options_.clear();
    const ToyState& state = core_.state();
    for (uint32_t index : state.order)
      if (state.agents[index].enabled) options_.push_back({state.agents[index].id, core_.pending(index)});
  }
  return options_;
}

std::vector<Option> ToyMachine::blocked() const {
  std::vector<Option> blocked;
  const ToyState& state = core_.state();
  for (uint32_t index : state.order) {
    const ToyAgent& agent = state.agents[index];
    // A masked interrupt, or a cancelled timer: it would have come otherwise.
    const bool held_off =
        agent.status == ToyAgent::Status::Idle && (agent.interrupts == kNoToyIndex || agent.pending > 0);
    if (agent.enabled || (agent.status != ToyAgent::Status::Ready && !held_off)) continue;
    const PendingOp op = core_.pending(index);
    if (agent.status == ToyAgent::Status::Idle && agent.interrupts != kNoToyIndex)
      blocked.push_back({agent.id, {OpKind::IrqTake, toy_interrupt(agent.block), op.pc}});
    if (agent.interruptible) blocked.push_back({agent.id, {OpKind::CpuUse, toy_cpu(agent.id), op.pc}});
    blocked.push_back({agent.id, op});
  }
  return blocked;
}

Snapshots::Id ToyMachine::take() {
  CHECK(running_, "a checkpoint can be taken at a choice point only");
  if (free_slots_.empty()) {
    free_slots_.push_back(slots_.size());
    slots_.emplace_back();
  }
  const Id id = free_slots_.back();
  free_slots_.pop_back();
  slots_[id].state = core_.state();
  slots_[id].used = true;
  return id;
}

Stop ToyMachine::restore(Id id) {
  CHECK(id < slots_.size() && slots_[id].used, "there is no checkpoint {}", id);
  CHECK(core_.sink() != nullptr, "a checkpoint can be restored after start() only");
  core_.restore(slots_[id].state);
  passed_ = 0;
  return choice_point();
}

void ToyMachine::drop(Id id) {
  CHECK(id < slots_.size() && slots_[id].used, "there is no checkpoint {}", id);
  slots_[id].used = false;
  free_slots_.push_back(id);
}

}  // namespace slalom
