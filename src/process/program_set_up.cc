// A program's set-up: one process runs it once, under control, and then forks the executions. The machine
// reads the events of set-up as those of an execution, and keeps them (process/set_up.h).
#include <algorithm>

#include "base/log.h"
#include "process/program_machine.h"

namespace slalom {

using preload::Phase;

std::vector<std::string> in_words(SetUpRemarks& remarks) {
  std::vector<std::string> words;
  if (remarks.executions != 0 && remarks.alone == remarks.executions)
    words.emplace_back(
        "the program has never had a second thread: there was nothing to interleave, and nothing was tested "
        "but "
        "one run of it");
  const std::lock_guard lock(remarks.mutex);
  if (!remarks.not_shared.empty())
    words.push_back(
        fmt::format("every execution begins at main(), since executions cannot have a copy of what the "
                    "program's set-up made: {}",
                    remarks.not_shared));
  return words;
}

uint64_t ProgramMachine::step_limit() const {
  const uint64_t set_up = zygote_->channel().set_up_steps;
  if (set_up == preload::kInSetUp) return options_.max_set_up;
  return inputs_.max_steps > UINT64_MAX - set_up ? UINT64_MAX : set_up + inputs_.max_steps;
}

EndFacts ProgramMachine::ending() const {
  const uint64_t set_up = zygote_ ? zygote_->channel().set_up_steps : 0;
  return {.steps = Step{steps_},
          .positions = position(),
          .set_up_steps = std::min(set_up, steps_),
          .errors = &errors_};
}

void ProgramMachine::note_end(const Outcome& outcome) {
  if (options_.remarks == nullptr || std::holds_alternative<ToolError>(outcome)) return;
  ++options_.remarks->executions;
  constexpr auto kOthers = static_cast<uint32_t>(preload::Uncontrolled::Fork) |
                           static_cast<uint32_t>(preload::Uncontrolled::Program);
  options_.remarks->alone += agents_.size() <= 1 && (zygote_->channel().uncontrolled & kOthers) == 0;
}

// Makes all calls for real. has_set_up_errors() decides whether their errors are those to be repeated.
void ProgramMachine::run_set_up() {
  const std::optional<ErrorLog> errors = std::exchange(inputs_.repeated.errors, std::nullopt);
  prepare_channel();
  inputs_.repeated.errors = errors;
  set_up_.emplace();
  sink_ = &*set_up_;
  zygote_->begin_set_up();
  const std::optional<std::string> trouble = follow_set_up();
  sink_ = nullptr;
  if (trouble) return drop_set_up(*trouble);
  zygote_->keep_set_up();
  const preload::Channel& channel = zygote_->channel();
  const preload::Slot& slot = channel.slots[0];
  set_up_->id = slot.id;
  set_up_->ops = slot.ops;
  set_up_->entry = slot.entry;
  set_up_->steps = channel.steps;
  set_up_->hash = hash_;
  set_up_->text_used = channel.text_used;
  set_up_->error_count = channel.error_count;
  set_up_->uncontrolled = channel.uncontrolled;
  set_up_->calls = channel.set_up_calls;
  set_up_->errors = std::move(errors_);
  set_up_->freed = std::move(freed_);
  set_up_->kept = std::move(kept_);
  set_up_->kept_bytes = kept_bytes_;
  DEBUG_LOG(Process, "set-up: executions are forked after {} operations and {} events", set_up_->steps,
            set_up_->events.size());
}

std::optional<std::string> ProgramMachine::follow_set_up() {
  const preload::Channel& channel = zygote_->channel();
  for (;;) {
    const Zygote::Waited waited = zygote_->wait();
    const Phase phase = channel.phase.load();
    if (waited == Zygote::Waited::Dead) {
      zygote_.reset();
      return "";
    }
    if (waited != Zygote::Waited::Stopped) {
      zygote_->end_execution(preload::kNoAgent);
      return "";
    }
    if (phase == Phase::Over)
      return std::string(channel.message, strnlen(channel.message, sizeof channel.message));
    held_ = {phase, 0};
    std::optional<std::string> trouble = read_agents();
    if (!trouble) trouble = read_records();
    const bool goes_on = phase == Phase::Drain && channel.choice.current == 0;
    if (trouble || at_passed_ || agents_.size() != 1 || (phase != Phase::Ready && !goes_on)) {
      zygote_->end_execution(preload::kNoAgent);
      return "";
    }
    held_ = {};
    if (phase == Phase::Ready) return std::nullopt;
    let_run(0);
  }
}

// Makes all later executions begin at main(). `why` is the state that they would share, for a remark; empty
// for none.
void ProgramMachine::drop_set_up(const std::string& why) {
  DEBUG_LOG(Process, "set-up: every execution begins at main(){}{}", why.empty() ? "" : ": ", why);
  set_up_.reset();
  may_set_up_ = false;
  held_ = {};
  if (zygote_) zygote_->end_set_up();
  if (why.empty() || options_.remarks == nullptr) return;
  const std::lock_guard lock(options_.remarks->mutex);
  options_.remarks->not_shared = why;
}

// Returns whether the errors to repeat in set-up are those that set-up had.
bool ProgramMachine::has_set_up_errors(const std::optional<ErrorLog>& errors) const {
  if (!errors) return true;
  const auto in_set_up = [&](const ErrorReturn& one) {
    return one.agent.raw == set_up_->id && one.ordinal < set_up_->calls;
  };
  const auto same = [](const ErrorReturn& a, const ErrorReturn& b) {
    return a.ordinal == b.ordinal && a.call == b.call && a.error == b.error;
  };
  std::vector<ErrorReturn> wanted;
  std::ranges::copy_if(errors->returns, std::back_inserter(wanted), in_set_up);
  return std::ranges::equal(wanted, set_up_->errors.returns, same);
}

void ProgramMachine::take_up_set_up() {
  preload::Channel& channel = zygote_->channel();
  preload::Slot& slot = channel.slots[0];
  slot.id = set_up_->id;
  slot.ops = set_up_->ops;
  slot.entry = set_up_->entry;
  slot.turn.store(static_cast<uint32_t>(preload::Turn::Wait));
  slot.state = preload::Slot::State::Enabled;
  channel.agent_count = 1;
  channel.steps = set_up_->steps;
  channel.text_used = set_up_->text_used;
  channel.error_count = set_up_->error_count;
  channel.uncontrolled = set_up_->uncontrolled;
  steps_ = set_up_->steps;
  hash_ = set_up_->hash;
  errors_ = set_up_->errors;
  freed_ = set_up_->freed;
  kept_ = set_up_->kept;
  kept_bytes_ = set_up_->kept_bytes;
}

void ProgramMachine::emit_set_up_events() {
  for (const SetUp::Happened& one : set_up_->events) {
    Event event = one.event;
    event.text = one.text;
    sink_->on_event(event);
  }
}

}  // namespace slalom
