#include "process/program_machine.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "base/hash.h"
#include "base/log.h"
#include "process/launch/debugger.h"
#include "process/uncontrolled.h"

namespace slalom {
namespace {

using preload::kNoAgent;
using preload::Phase;
using State = preload::Slot::State;

uint64_t hash_of(std::span<const Option> options) {
  uint64_t hash = options.size();
  for (const Option& option : options) hash = combine(hash, option.agent.raw);
  return hash;
}

}  // namespace

Result<std::unique_ptr<ProgramMachine>> ProgramMachine::make(const Program& program,
                                                             const LaunchOptions& options,
                                                             std::shared_ptr<ProgramNames> names) {
  std::unique_ptr<ProgramMachine> machine(new ProgramMachine(program, options, std::move(names)));
  TRY(machine->launch());
  return machine;
}

Result<void> ProgramMachine::launch() {
  zygote_.reset();
  set_up_.reset();
  may_set_up_ = options_.begin == LaunchOptions::Begin::AfterSetUp;
  TRY_ASSIGN(zygote_, Zygote::launch(program_, options_));
  names_->learn_modules(zygote_->modules());
  preload::Channel& channel = zygote_->channel();
  TRY_ASSIGN(scope_, ProgramScope::make(program_, *names_));
  std::vector<preload::ScopedCode> scoped = scope_.find_in(
      zygote_->modules(), *names_, [this](preload::Range range) { return zygote_->memory(range); });
  if (Result<void> found = scope_.check_found("when main() begins"); !found.ok() && !names_->may_load())
    return found;
  channel.switches_outside = program_.scope.empty();
  return added_.describe(channel, names_->wrappers(), std::move(scoped));
}

// Adds the module that the target has loaded by itself, before the target goes on.
Result<void> ProgramMachine::add_module() {
  preload::Channel& channel = zygote_->channel();
  std::string path(channel.loaded.path, strnlen(channel.loaded.path, sizeof channel.loaded.path));
  // Names the original instead of a copy in the scratch folder.
  if (const std::string copies = zygote_->folder().string() + "/"; path.starts_with(copies)) {
    const std::string original = program_.scratch + "/" + path.substr(copies.size());
    if (std::filesystem::exists(original)) path = original;
  }
  TRY(added_.add(channel, std::filesystem::path(path).lexically_normal().string(), *names_, scope_,
                 [this](preload::Range range) { return zygote_->memory(range, zygote_->execution()); }));
  write_places();
  return {};
}

// Writes the places, and those of watched accesses, at their current addresses in the target.
void ProgramMachine::write_places() {
  preload::Channel& channel = zygote_->channel();
  const auto write = [this](const std::vector<Place>& places, uint64_t(&to)[preload::kMostPlaces]) {
    uint32_t count = 0;
    for (Place place : places)
      if (const std::optional<uint64_t> here = added_.here(place.raw); here && count < preload::kMostPlaces)
        to[count++] = *here;
    if (added_.any()) std::sort(to, to + count);
    return count;
  };
  using Where = ChoicePolicy::Where;
  const Where where = inputs_.policy.where;
  channel.place_count = where != Where::Everywhere ? write(inputs_.policy.places, channel.places) : 0;
  channel.passed_count = where == Where::Sync ? write(inputs_.policy.skipped_atomics, channel.passed) : 0;
  channel.access_count = 0;
  for (ChoicePolicy::WatchedAccess access : inputs_.policy.accesses) {
    if (access.place.raw != 0) {
      const std::optional<uint64_t> here = added_.here(access.place.raw);
      if (!here) continue;
      access.place = Place{*here};
    }
    channel.accesses[channel.access_count++] = access;
  }
  channel.named_count = channel.place_count + channel.access_count;
}

Result<void> ProgramMachine::reset(const Inputs& inputs) {
  if (inputs.control == Control::None)
    return error("a program cannot run here without control; start it without slalom");
  if (running_) end_execution();
  if (inputs.policy.accesses.size() > preload::kMostAccesses)
    return error("{} watched accesses: in a program, at most {}; name fewer", inputs.policy.accesses.size(),
                 preload::kMostAccesses);
  inputs_ = inputs;
  if (!zygote_) TRY(launch());
  const bool debugged = options_.debugger && !options_.debugger->used();
  if (may_set_up_ && !set_up_ && !debugged) run_set_up();
  if (set_up_ && (debugged || !has_set_up_errors(inputs.repeated.errors))) drop_set_up("");
  prepare_channel();
  if (set_up_) take_up_set_up();
  return {};
}

// Names what the agents touched since the last stop, and what the current agent will touch next.
void ProgramMachine::name_stacks() {
  if (at_passed_ || *held_.phase == Phase::Over || kind_ == ChoiceKind::Start || current_ >= agents_.size())
    return stack_names_->forget();
  std::vector<AgentId> ids;
  for (const AgentView& agent : agents_) ids.push_back(agent.id);
  stack_names_->look(zygote_->execution(), zygote_->channel_in_target(), current_,
                     agents_[current_].pending.object.raw, ids);
}

void ProgramMachine::prepare_channel() {
  const Inputs& inputs = inputs_;
  preload::Channel& channel = zygote_->channel();
  channel.spurious = program_.spurious;
  channel.timeouts =
      program_.timeouts == Program::Timeouts::Any ? preload::Timeouts::Any : preload::Timeouts::Idle;
  channel.choice_points = inputs.policy.where == ChoicePolicy::Where::Everywhere
                              ? preload::Channel::ChoicePoints::All
                              : preload::Channel::ChoicePoints::SeveralAlive;
  channel.stop_at_accesses = inputs.policy.where == ChoicePolicy::Where::Everywhere;
  added_.begin_execution(channel);
  write_places();
  channel.keeps_values = inputs.reporting.keeps_values;
  stack_names_.reset();
  if (inputs.reporting.keeps_values) stack_names_.emplace(*names_);
  channel.record_limit = inputs.reporting.keeps_values ? 1 : preload::kMostRecords;
  // The target finds the stops of a schedule by the agents' own counts of operations.
  channel.passes_stops = inputs.policy.stops.empty();
  channel.forecast.agent_count = 0;
  channel.forecast.rule.kind = ChoiceRule::Kind::Unknown;
  channel.debugged = options_.debugger && !options_.debugger->used();
  channel.show_at = channel.debugged != 0 ? options_.debugger->show_at() : 0;
  channel.max_steps = options_.max_set_up;
  channel.max_after_set_up = inputs.max_steps;
  channel.set_up_steps = preload::kInSetUp;
  channel.stop_at = UINT64_MAX;
  channel.agent_count = channel.record_count = channel.text_used = 0;
  channel.holder_count = channel.watched_count = 0;
  channel.access_agent = preload::kNoAgent;
  channel.steps = 0;
  channel.ending = {};
  repeat_errors();
  channel.uncontrolled = zygote_->uncontrolled();
  channel.waits_outside = preload::Outside::No;
  agents_.clear();
  order_.clear();
  enabled_.clear();
  freed_.clear();
  kept_.clear();
  kept_bytes_ = 0;
  steps_ = hash_ = 0;
  held_ = {};
  records_ = runs_ = 0;
}

Stop ProgramMachine::start(EventSink& sink) {
  sink_ = &sink;
  keep_ = passed_ = 0;
  if (Result<void> forked = zygote_->fork_execution(); !forked.ok())
    return finish(ToolError{forked.error().message});
  return run();
}

Stop ProgramMachine::resume(Decision decision) {
  if (!running_) return Outcome(ToolError{"resume() without a choice point: call reset() and start() first"});
  const AgentView* agent = find(decision.next);
  if (kind_ == ChoiceKind::Data) {
    if (agent != &agents_[current_] || decision.value >= arity_)
      return finish_running(ToolError{"the decision does not answer the question that was asked"});
  } else if (agent == nullptr || agent->state != State::Enabled) {
    return finish_running(ToolError{fmt::format("the decision is to run {}, which cannot run at step {}",
                                                names_->agent(decision.next), steps_)});
  }
  if (kind_ == ChoiceKind::Start && set_up_) emit_set_up_events();
  zygote_->channel().value = decision.value;
  if (decision.forecast.later != nullptr && uses_later_choices())
    write_later_choices(*decision.forecast.later);
  keep_ = decision.forecast.keep;
  keep_enabled_ = hash_of(enabled_);
  passed_ = 0;
  running_ = false;
  const auto index = static_cast<uint32_t>(agent - agents_.data());
  if (!at_passed_)
    let_run(index);
  else if (index != passed_to_)
    return finish_running(ToolError{fmt::format(
        "the program went on with {} at step {}, where the search chose {}: it may be writing through wild "
        "pointers; if not, please report this",
        names_->agent(agents_[passed_to_].id), steps_, names_->agent(decision.next))});
  return run();
}

// Not at a stop that the target has passed: it already follows the choices that it was given before.
bool ProgramMachine::uses_later_choices() const {
  return !at_passed_ && zygote_->channel().passes_stops != 0 &&
         inputs_.policy.where != ChoicePolicy::Where::Nowhere && agents_.size() <= preload::kMostInMask;
}

void ProgramMachine::write_later_choices(const LaterChoices& later) {
  preload::Channel::Forecast& forecast = zygote_->channel().forecast;
  forecast.agent_count = static_cast<uint32_t>(std::min<size_t>(later.agents.size(), preload::kMostForeseen));
  for (uint32_t i = 0; i < forecast.agent_count; ++i) forecast.agents[i] = later.agents[i].raw;
  if (later.agents.size() > forecast.agent_count) return;
  forecast.rule = later.rule;
  forecast.rule.uniform.option_set = 0;  // a bit for each of the target's own indexes
  for (uint32_t i = 0; i < agents_.size(); ++i)
    if (agents_[i].state == State::Enabled) forecast.rule.uniform.option_set |= uint64_t{1} << i;
  if (later.rule.kind != ChoiceRule::Kind::Pct && later.rule.kind != ChoiceRule::Kind::Pos) return;
  std::fill_n(forecast.priorities, preload::kMostInMask, kNoPriority);
  for (uint32_t i = 0; i < later.rule.known; ++i)
    if (const AgentView* agent = find(later.rule.priorities[i].agent))
      forecast.priorities[agent - agents_.data()] = later.rule.priorities[i].priority;
}

void ProgramMachine::let_run(uint32_t agent) {
  current_ = runs_ = agent;
  held_ = {};
  records_ = zygote_->channel().record_count = 0;
  zygote_->channel().stop_at = next_stop(agents_[agent]);
  zygote_->let_run(agent);
}

// Handles the stops that the target has passed by itself, then the one where it waits now.
Stop ProgramMachine::run() {
  for (;;) {
    if (!held_.phase) {
      if (std::optional<Outcome> over = wait()) return finish(std::move(*over));
      if (added_.any()) make_stable();
    }
    std::optional<std::string> trouble = read_agents();
    if (!trouble) trouble = read_records();
    if (!trouble && !at_passed_) trouble = read_stop();
    if (trouble) return finish_running(ToolError{*trouble});
    if (stack_names_) name_stacks();
    if (at_passed_) {
      if (!is_choice_point(kind_)) continue;
      break;
    }
    if (*held_.phase == Phase::Over && !zygote_->set_up_lives()) {
      zygote_.reset();
      return finish(ToolError{"the process that forks the executions has died; was it killed?"});
    }
    if (*held_.phase == Phase::Over) return finish(unless_threads_missing(conclude()));
    if (*held_.phase == Phase::Loaded)
      if (Result<void> added = add_module(); !added.ok())
        return finish_running(ToolError{added.error().message});
    if (*held_.phase == Phase::Drain || *held_.phase == Phase::Loaded) {
      let_run(current_);
      continue;
    }
    const bool debugged = zygote_->channel().debugged != 0;
    if (debugged && !options_.debugger->used()) {
      if (Result<void> attached = options_.debugger->attach(zygote_->execution()); !attached.ok())
        return finish_running(ToolError{attached.error().message});
    }
    if (enabled_.empty()) {
      if (debugged) {
        zygote_->show(held_.agent);
        options_.debugger->wait();
      }
      return finish_running(unless_threads_missing(deadlock()));
    }
    if (steps_ >= step_limit()) {
      if (zygote_->channel().set_up_steps == preload::kInSetUp)
        return finish_running(ToolError{fmt::format(
            "the program's set-up does not end: after {} operations it has still not come to where a second "
            "thread could exist; does main() wait in a loop? (--max-set-up)",
            steps_)});
      LimitReached limit{steps_, {}};
      for (const Option& option : enabled_) limit.enabled.push_back(option.agent);
      return finish_running(std::move(limit));
    }
    if (is_choice_point(kind_)) break;
    let_run(current_);
  }
  running_ = true;
  return choice_point();
}

// Waits until the target stops. Returns an outcome if it never will.
std::optional<Outcome> ProgramMachine::wait() {
  const Zygote::Waited waited = zygote_->wait();
  const preload::Channel& channel = zygote_->channel();
  if (options_.uncontrolled) *options_.uncontrolled |= channel.uncontrolled;
  if (waited != Zygote::Waited::Stopped)
    DEBUG_LOG(Process, "no stop after step {}: {}", channel.steps,
              waited == Zygote::Waited::Dead          ? "the forking process has died"
              : waited == Zygote::Waited::Interrupted ? "interrupted"
              : waited == Zygote::Waited::Asleep      ? "asleep " + zygote_->asleep_in()
                                                      : "no sign of life");
  if (waited == Zygote::Waited::Dead) {
    zygote_.reset();
    return ToolError{"the process that forks the executions has died; was it killed?"};
  }
  if (waited == Zygote::Waited::Interrupted) {
    zygote_->end_execution(kNoAgent);
    return Abandoned{"interrupted"};
  }
  if (waited == Zygote::Waited::Silent || waited == Zygote::Waited::Asleep) {
    const uint32_t runs = find_running_agent();
    const std::string who = runs < agents_.size() ? names_->agent(agents_[runs].id) : "the program";
    const bool outside = channel.waits_outside != preload::Outside::No;
    const std::string call = zygote_->asleep_in();
    zygote_->end_execution(kNoAgent);
    if (outside)
      return ToolError{fmt::format(
          "nothing can run but something outside of the program's threads, a process that it started or "
          "a socket, and that did nothing for {} seconds (--patience)",
          options_.patience)};
    if (!call.empty() && options_.uncontrolled)
      *options_.uncontrolled |= static_cast<uint32_t>(preload::Uncontrolled::Blocking);
    if (!call.empty())
      return ToolError{
          fmt::format("{} waits {}, which slalom does not control: no other thread runs meanwhile, also "
                      "none that would end "
                      "the wait",
                      who, call)};
    return ToolError{fmt::format(
        "{} ran for {} seconds without an operation that slalom can see: it computes for long "
        "(--patience), waits for something outside the program, or spins on memory (build it with "
        "-fsanitize=thread)",
        who, options_.patience)};
  }
  const Phase phase = channel.phase.load();
  if (phase == Phase::Refused)
    return ToolError{std::string(channel.message, strnlen(channel.message, sizeof channel.message))};
  held_ = {phase,
           channel.choice.kind == static_cast<uint32_t>(ChoiceKind::Start) ? 0 : channel.choice.current};
  return std::nullopt;
}

// Returns the running agent of a target that has not stopped and may have passed stops since slalom last read
// its records.
uint32_t ProgramMachine::find_running_agent() {
  const preload::Channel& channel = zygote_->channel();
  const uint32_t count = channel.record_count;
  if (read_agents() || count > preload::kMostRecords) return kNoAgent;
  for (uint32_t i = count; i-- > records_;) {
    const preload::Record& record = channel.records[i];
    if (record.what == preload::Record::What::Stop) return record.other;
    if (record.what != preload::Record::What::Agent) return record.agent;
  }
  return current_;
}

// Returns whether this stop of the target is a choice point for the search.
bool ProgramMachine::is_choice_point(ChoiceKind kind) {
  if (kind != ChoiceKind::Running) return true;
  const AgentView& agent = agents_[current_];
  if (std::binary_search(inputs_.policy.stops.begin(), inputs_.policy.stops.end(),
                         ChoicePolicy::AgentPosition{agent.id, agent.ops}))
    return true;
  const preload::Channel& channel = zygote_->channel();
  const bool watched = channel.access_agent == current_ && channel.access_ops == agent.ops;
  if (inputs_.policy.where == ChoicePolicy::Where::Nowhere && !watched) return false;
  if (passed_ == keep_ || hash_of(enabled_) != keep_enabled_) return true;
  ++passed_;
  return false;
}

ChoicePoint ProgramMachine::choice_point() const {
  ChoicePoint point;
  point.position = Position{steps_};
  point.kind = kind_;
  point.source = this;
  point.arity = kind_ == ChoiceKind::Data ? arity_ : 0;
  point.passed = passed_;
  point.uses.later = uses_later_choices();
  uint64_t here = static_cast<uint64_t>(kind_);
  if (kind_ != ChoiceKind::Start) {
    const AgentView& agent = agents_[current_];
    point.current = agent.id;
    point.current_ops = agent.ops;
    here = combine(here, agent.id.raw, agent.ops, agent.pending.pc.raw, point.arity);
  }
  point.digest = combine(hash_of(enabled_), here);
  return point;
}

Stop ProgramMachine::finish(Outcome outcome) {
  running_ = false;
  const uint32_t failed = zygote_ ? zygote_->channel().error_count : 0;
  errors_.left_out = failed - std::min(failed, preload::kMostErrors);
  if (is_logged(LogFolder::Process, LogLevel::Debug) && zygote_)
    for (const UncontrolledAct& act : uncontrolled_in_words(zygote_->channel().uncontrolled))
      DEBUG_LOG(Process, "uncontrolled: {}", act.text);
  note_end(outcome);
  sink_->on_end(outcome);
  return outcome;
}

Stop ProgramMachine::finish_running(Outcome outcome) {
  end_execution();
  return finish(std::move(outcome));
}

void ProgramMachine::end_execution() {
  running_ = false;
  if (held_.phase && *held_.phase != Phase::Over) zygote_->end_execution(held_.agent);
  held_ = {};
}

std::vector<Option> ProgramMachine::blocked() const {
  const preload::Channel& channel = zygote_->channel();
  const uint32_t watched = std::min(channel.watched_count, preload::kMostWatched);
  std::vector<Option> blocked;
  for (uint32_t index : order_) {
    if (agents_[index].state != State::Disabled) continue;
    const PendingOp& pending = agents_[index].pending;
    blocked.push_back({agents_[index].id, pending});
    for (uint32_t i = 0; i < watched; ++i) {
      const ObjectId object{added_.stable(channel.watched[i].object)};
      if (channel.watched[i].agent == index && object != pending.object)
        blocked.push_back({agents_[index].id, {pending.kind, object, pending.pc}});
    }
  }
  return blocked;
}

// Returns the agent's own count of operations at which a schedule stops it next.
uint64_t ProgramMachine::next_stop(const AgentView& agent) const {
  const ChoicePolicy::AgentPosition after{agent.id, agent.ops + 1};
  const auto& stops = inputs_.policy.stops;
  const auto found = std::lower_bound(stops.begin(), stops.end(), after);
  return found != stops.end() && found->agent == agent.id ? found->ops : UINT64_MAX;
}

const ProgramMachine::AgentView* ProgramMachine::find(AgentId id) const {
  const auto at = std::lower_bound(order_.begin(), order_.end(), id, [&](uint32_t index, AgentId wanted) {
    return agents_[index].id < wanted;
  });
  return at != order_.end() && agents_[*at].id == id ? &agents_[*at] : nullptr;
}

}  // namespace slalom
