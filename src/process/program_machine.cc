#include "process/program_machine.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "base/hash.h"

namespace slalom {
namespace {

using preload::Ending;
using preload::kNobody;
using preload::Phase;
using State = preload::Slot::State;

constexpr const char* kNonsense =
    "the program has overwritten slalom's memory in its process; it may be writing through wild pointers";

uint64_t hash_of(std::span<const Option> options) {
  uint64_t hash = options.size();
  for (const Option& option : options) hash = combine(hash, option.agent.raw);
  return hash;
}

// What a program that aborts says about it: the C and C++ libraries have their own words.
std::string last_words(const std::string& errors) {
  for (const char* start :
       {"terminate called", "*** ", "free()", "double free", "malloc()", "munmap_chunk"}) {
    const size_t at = errors.find(start);
    if (at != std::string::npos)
      return errors.substr(at, std::min(errors.find('\n', at), errors.size()) - at);
  }
  return {};
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
  TRY_ASSIGN(zygote_, Zygote::launch(program_, options_));
  names_->learn_modules(zygote_->modules());
  preload::Channel& channel = zygote_->channel();
  channel.wrapper_count = 0;
  for (const preload::Range& range : names_->wrappers())
    if (channel.wrapper_count < preload::kMostWrappers) channel.wrappers[channel.wrapper_count++] = range;
  return {};
}

Result<void> ProgramMachine::reset(const Inputs& inputs) {
  if (running_) zygote_->end_execution(kind_ == ChoiceKind::Start ? 0 : current_);
  running_ = false;
  inputs_ = inputs;
  if (!zygote_) TRY(launch());
  preload::Channel& channel = zygote_->channel();
  channel.timeouts =
      program_.timeouts == Program::Timeouts::Any ? preload::Timeouts::Any : preload::Timeouts::Idle;
  channel.skip_alone = inputs.policy.where != ChoicePolicy::Where::Everywhere;
  channel.stop_at_accesses = inputs.policy.where == ChoicePolicy::Where::Everywhere;
  channel.place_count = 0;
  if (inputs.policy.where != ChoicePolicy::Where::Everywhere)
    for (Place place : inputs.policy.places)
      if (channel.place_count < preload::kMostPlaces) channel.places[channel.place_count++] = place.raw;
  channel.max_steps = inputs.max_steps;
  channel.stop_at = UINT64_MAX;
  channel.agent_count = channel.record_count = channel.text_used = channel.holder_count = 0;
  channel.steps = 0;
  channel.ending = {};
  channel.uncontrolled = 0;
  agents_.clear();
  order_.clear();
  enabled_.clear();
  conflicts_.clear();
  steps_ = hash_ = 0;
  return {};
}

Stop ProgramMachine::start(EventSink& sink) {
  sink_ = &sink;
  lease_ = 0;
  zygote_->fork_execution();
  return run();
}

Stop ProgramMachine::resume(Decision decision) {
  if (!running_) return Outcome(ToolError{"resume() without a choice point: call reset() and start() first"});
  const Seen* agent = find(decision.next);
  if (kind_ == ChoiceKind::Data) {
    if (agent != &agents_[current_] || decision.value >= arity_)
      return finish_running(ToolError{"the decision does not answer the question that was asked"});
  } else if (agent == nullptr || agent->state != State::Enabled) {
    return finish_running(ToolError{fmt::format("the decision is to run {}, which cannot run at step {}",
                                                names_->agent(decision.next), steps_)});
  }
  zygote_->channel().value = decision.value;
  lease_ = decision.lease;
  lease_enabled_ = hash_of(enabled_);
  let_run(static_cast<uint32_t>(agent - agents_.data()));
  return run();
}

void ProgramMachine::let_run(uint32_t agent) {
  running_ = false;
  current_ = agent;
  zygote_->channel().stop_at = next_stop(agents_[agent]);
  zygote_->let_run(agent);
}

Stop ProgramMachine::run() {
  for (;;) {
    const Zygote::Waited waited = zygote_->wait();
    preload::Channel& channel = zygote_->channel();
    if (options_.uncontrolled) *options_.uncontrolled |= channel.uncontrolled;
    if (waited == Zygote::Waited::Dead) {
      zygote_.reset();
      return finish(ToolError{"the process that forks the executions has died; was it killed?"});
    }
    if (waited == Zygote::Waited::Silent) {
      const std::string who = current_ < agents_.size() ? names_->agent(agents_[current_].id) : "the program";
      zygote_->end_execution(kNobody);
      return finish(ToolError{fmt::format(
          "{} ran for {} seconds without an operation that slalom can see: it computes for long "
          "(--patience), "
          "waits for something outside the program, or spins on memory (build it with -fsanitize=thread)",
          who, options_.patience)});
    }
    const Phase phase = channel.phase.load();
    if (phase == Phase::Refused) {
      const std::string message(channel.message, strnlen(channel.message, sizeof channel.message));
      return finish(ToolError{message});
    }
    std::optional<std::string> trouble = read_stop();
    if (!trouble) trouble = read_records();
    if (phase == Phase::Over) return finish(trouble ? Outcome(ToolError{*trouble}) : conclude());
    if (trouble) return finish_running(ToolError{*trouble});
    if (phase == Phase::Drain) {
      zygote_->let_run(current_);
      continue;
    }
    if (enabled_.empty()) return finish_running(deadlock());
    if (steps_ >= inputs_.max_steps) {
      LimitReached limit{steps_, {}};
      for (const Option& option : enabled_) limit.enabled.push_back(option.agent);
      return finish_running(std::move(limit));
    }
    if (wants(kind_)) break;
    let_run(current_);
  }
  running_ = true;
  return choice_point();
}

// Is this stop of the target a choice point for the search?
bool ProgramMachine::wants(ChoiceKind kind) {
  if (kind != ChoiceKind::Running) return true;
  const Seen& agent = agents_[current_];
  if (std::binary_search(inputs_.policy.stops.begin(), inputs_.policy.stops.end(),
                         ChoicePolicy::Position{agent.id, agent.ops}))
    return true;
  if (inputs_.policy.where == ChoicePolicy::Where::Nowhere) return false;
  if (lease_ == 0 || hash_of(enabled_) != lease_enabled_) return true;
  --lease_;
  return false;
}

std::optional<std::string> ProgramMachine::read_stop() {
  const preload::Channel& channel = zygote_->channel();
  const uint32_t count = channel.agent_count;
  const uint32_t kind = channel.choice.kind;
  if (count > preload::kMostAgents || count < agents_.size() ||
      kind > static_cast<uint32_t>(ChoiceKind::Data))
    return kNonsense;
  for (auto i = static_cast<uint32_t>(agents_.size()); i < count; ++i) {
    const AgentId id{channel.slots[i].id};
    if (!id || find(id) != nullptr) return kNonsense;
    agents_.emplace_back().id = id;
    order_.insert(std::lower_bound(order_.begin(), order_.end(), i,
                                   [&](uint32_t a, uint32_t) { return agents_[a].id < id; }),
                  i);
    names_->learn_agent(id, channel.slots[i].entry);
  }
  enabled_.clear();
  for (uint32_t index : order_) {
    const preload::Slot& slot = channel.slots[index];
    Seen& seen = agents_[index];
    if (slot.id != seen.id.raw || static_cast<int>(slot.op) >= kOpKinds || slot.state > State::Ended)
      return kNonsense;
    seen.ops = slot.ops;
    seen.pending = {slot.op, ObjectId{slot.object}, Place{slot.pc}};
    seen.state = slot.state;
    if (seen.state == State::Enabled) enabled_.push_back({seen.id, seen.pending});
  }
  steps_ = channel.steps;
  kind_ = static_cast<ChoiceKind>(kind);
  arity_ = channel.choice.arity;
  if (count == 0) return std::nullopt;  // it ended before it began
  current_ = channel.choice.current;
  if (current_ >= count) return kNonsense;
  return std::nullopt;
}

std::optional<std::string> ProgramMachine::read_records() {
  preload::Channel& channel = zygote_->channel();
  const uint32_t count = channel.record_count;
  if (count > preload::kMostRecords) return kNonsense;
  for (uint32_t i = 0; i < count;) {
    const preload::Record record = channel.records[i];
    if (record.agent >= agents_.size() || static_cast<int>(record.op) >= kOpKinds ||
        (record.other != kNobody && record.other >= agents_.size()))
      return kNonsense;
    hash_ = combine(hash_, record.step, record.object, agents_[record.agent].id.raw,
                    static_cast<uint64_t>(record.op), static_cast<uint64_t>(record.value));
    if (!is_memory(record.op)) {
      Event event;
      event.step = Step{record.step};
      event.agent = agents_[record.agent].id;
      event.op = record.op;
      event.pc = Place{record.pc};
      event.object = ObjectId{record.object};
      event.state = record.state;
      if (record.other != kNobody) event.other = agents_[record.other].id;
      event.value = record.value;
      const std::string text = text_at(record.text);
      event.text = text;
      sink_->on_event(event);
      ++i;
      continue;
    }
    accesses_.clear();
    const BatchHeader header{agents_[record.agent].id, 0, Step{record.step}};
    for (; i < count; ++i) {
      const preload::Record& next = channel.records[i];
      if (next.agent != record.agent || !is_memory(next.op) || next.step - record.step > UINT16_MAX) break;
      Access access{};
      access.pc_bits = next.pc;
      access.op_bits = static_cast<uint64_t>(next.op);
      access.size = next.size;
      access.address_bits = next.object;
      access.retired = next.step - record.step;
      access.value = static_cast<uint64_t>(next.value);
      access.wrote = next.wrote != 0;
      accesses_.push_back(access);
      if (!is_atomic(next.op)) conflicts_.add(next);
    }
    sink_->on_accesses(accesses_, header);
  }
  channel.record_count = 0;
  return std::nullopt;
}

ChoicePoint ProgramMachine::choice_point() const {
  ChoicePoint point;
  point.step = Step{steps_};
  point.kind = kind_;
  point.source = this;
  point.arity = kind_ == ChoiceKind::Data ? arity_ : 0;
  uint64_t here = static_cast<uint64_t>(kind_);
  if (kind_ != ChoiceKind::Start) {
    const Seen& agent = agents_[current_];
    point.current = agent.id;
    point.current_ops = agent.ops;
    here = combine(here, agent.id.raw, agent.ops, agent.pending.pc.raw, point.arity);
  }
  point.digest = combine(hash_of(enabled_), here);
  return point;
}

Stop ProgramMachine::finish(Outcome outcome) {
  running_ = false;
  sink_->on_end(outcome);
  return outcome;
}

Stop ProgramMachine::finish_running(Outcome outcome) {
  zygote_->end_execution(kind_ == ChoiceKind::Start ? 0 : current_);
  return finish(std::move(outcome));
}

// How a process ended by itself.
Outcome ProgramMachine::conclude() {
  const preload::Channel& channel = zygote_->channel();
  const Ending ending = channel.ending;
  const int status = channel.wait_status;
  const std::string errors = zygote_->errors();
  hash_ = combine(hash_, hash_text(errors), static_cast<uint64_t>(ending.kind), ending.status);
  Faulted fault;
  if (ending.agent < agents_.size()) fault.agent = agents_[ending.agent].id;
  fault.pc = Place{ending.pc};
  const auto exited = [&](uint32_t code) -> Outcome {
    if (code == 0 || program_.statuses == Program::Statuses::AnyGood) return Exited{};
    fault.kind = Faulted::Kind::Assertion;
    if (ending.agent < agents_.size()) fault.pc = agents_[ending.agent].pending.pc;
    fault.what = fmt::format("the program exits with status {}", code);
    return fault;
  };
  switch (ending.kind) {
    case Ending::Kind::Exit:
      return exited(ending.status);
    case Ending::Kind::Assertion:
      fault.kind = Faulted::Kind::Assertion;
      fault.what = text_at(ending.text);
      return fault;
    case Ending::Kind::Crash: {
      fault.kind = Faulted::Kind::Crash;
      fault.what = text_at(ending.text);
      const std::string words = fault.what == "abort" ? last_words(errors) : "";
      if (!words.empty()) fault.what += ": " + words;
      return fault;
    }
    case Ending::Kind::None:
      break;
  }
  if (WIFEXITED(status)) return exited(static_cast<uint32_t>(WEXITSTATUS(status)));
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  fault.kind = Faulted::Kind::Crash;
  fault.agent = current_ < agents_.size() ? agents_[current_].id : AgentId{};
  fault.pc = current_ < agents_.size() ? agents_[current_].pending.pc : Place{};
  fault.what =
      fmt::format("killed by signal {}", sigabbrev_np(signal) == nullptr ? "?" : sigabbrev_np(signal));
  return fault;
}

Deadlocked ProgramMachine::deadlock() const {
  const preload::Channel& channel = zygote_->channel();
  Deadlocked result;
  for (uint32_t index : order_) {
    const Seen& agent = agents_[index];
    if (agent.state == State::Ended) continue;
    Deadlocked::Waiting waiting{agent.id, agent.pending.kind, agent.pending.object, agent.pending.pc, {}};
    for (uint32_t i = 0; i < std::min(channel.holder_count, preload::kMostHolders); ++i)
      if (channel.holders[i].waiting == index && channel.holders[i].holder < agents_.size())
        waiting.held_by.push_back(agents_[channel.holders[i].holder].id);
    std::sort(waiting.held_by.begin(), waiting.held_by.end());
    result.waiting.push_back(std::move(waiting));
  }
  return result;
}

std::vector<Option> ProgramMachine::blocked() const {
  std::vector<Option> blocked;
  for (uint32_t index : order_)
    if (agents_[index].state == State::Disabled)
      blocked.push_back({agents_[index].id, agents_[index].pending});
  return blocked;
}

// The agent's own count of operations at which a schedule wants it stopped next.
uint64_t ProgramMachine::next_stop(const Seen& agent) const {
  const ChoicePolicy::Position after{agent.id, agent.ops + 1};
  const auto& stops = inputs_.policy.stops;
  const auto found = std::lower_bound(stops.begin(), stops.end(), after);
  return found != stops.end() && found->agent == agent.id ? found->ops : UINT64_MAX;
}

std::string ProgramMachine::text_at(uint32_t text) const {
  const preload::Channel& channel = zygote_->channel();
  if (text == 0 || text > preload::kTextBytes) return {};
  const char* start = channel.texts + (text - 1);
  return std::string(start, strnlen(start, preload::kTextBytes - (text - 1)));
}

const ProgramMachine::Seen* ProgramMachine::find(AgentId id) const {
  const auto at = std::lower_bound(order_.begin(), order_.end(), id, [&](uint32_t index, AgentId wanted) {
    return agents_[index].id < wanted;
  });
  return at != order_.end() && agents_[*at].id == id ? &agents_[*at] : nullptr;
}

}  // namespace slalom
