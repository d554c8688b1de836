// Turns the end of an execution of a program into an Outcome.
#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "process/judge.h"
#include "process/program_machine.h"

namespace slalom {
namespace {

using preload::Ending;
using State = preload::Slot::State;

// Finds the message of a program that aborts. The C and C++ libraries and some others have their own
// wordings.
std::string last_words(const std::string& errors) {
  for (const char* start : {"terminate called", "*** ", "free()", "double free", "malloc()", "munmap_chunk",
                            "ERROR:" /* GLib */, "Check failed" /* Abseil, glog */}) {
    const size_t at = errors.find(start);
    if (at != std::string::npos)
      return errors.substr(at, std::min(errors.find('\n', at), errors.size()) - at);
  }
  return {};
}

}  // namespace

// The outcome of a process that ended by itself.
Outcome ProgramMachine::conclude() {
  const preload::Channel& channel = zygote_->channel();
  const Ending ending = channel.ending;
  const int status = channel.wait_status;
  const std::string errors = zygote_->errors();
  hash_ = combine(hash_, hash_text(errors), static_cast<uint64_t>(ending.kind), ending.status);
  Faulted fault;
  if (ending.agent < agents_.size()) fault.agent = agents_[ending.agent].id;
  fault.pc = Place{added_.stable(ending.pc)};
  const auto exited = [&](uint32_t code) -> Outcome {
    if (code == 0 || program_.statuses == Program::Statuses::AnyGood) return judge(code);
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
  fault.agent = runs_ < agents_.size() ? agents_[runs_].id : AgentId{};
  fault.pc = runs_ < agents_.size() ? agents_[runs_].pending.pc : Place{};
  fault.what = fmt::format(
      "killed by signal {}\nThis is the last operation that it began: no handler saw where it was",
      sigabbrev_np(signal) == nullptr ? "?" : sigabbrev_np(signal));
  return fault;
}

// The outcome of a program that has ended without a failure of its own.
Outcome ProgramMachine::judge(uint32_t status) {
  if (Result<void> found = scope_.check_found("when main() begins or, so far, later"); !found.ok())
    return ToolError{found.error().message};
  if (!program_.is_judged()) return Exited{};
  if (zygote_->output_is_full())
    return ToolError{"the program prints more than --expect-output and --check can look at, 64 MB"};
  const std::string output = zygote_->output();
  hash_ = combine(hash_, hash_text(output));
  if (program_.expected_output)
    if (std::optional<std::string> wrong = unexpected(*program_.expected_output, output))
      return Faulted{Faulted::Kind::Assertion, {}, {}, *std::move(wrong)};
  if (program_.check.empty()) return Exited{};
  const Result<std::optional<std::string>> wrong = run_check(
      {program_.check, zygote_->folder(), zygote_->output_file(), output.size(), status, options_.patience});
  if (!wrong.ok()) return ToolError{wrong.error().message};
  return *wrong ? Outcome(Faulted{Faulted::Kind::Assertion, {}, {}, **wrong}) : Exited{};
}

Outcome ProgramMachine::unless_threads_missing(Outcome outcome) const {
  const auto met = [&](preload::Uncontrolled what) {
    return (zygote_->channel().uncontrolled & static_cast<uint32_t>(what)) != 0;
  };
  if (std::holds_alternative<Exited>(outcome)) return outcome;
  if (met(preload::Uncontrolled::Missing))
    return ToolError{fmt::format(
        "the program joins a thread that it started before main() ({}), which executions do not have, and "
        "fails when pthread_join() gives ESRCH: let main() start it",
        names_->place(Place{added_.stable(zygote_->channel().foreign_entry)}))};
  if (!met(preload::Uncontrolled::Threads)) return outcome;
  return ToolError{fmt::format(
      "the program starts more threads in one execution than slalom can control ({}, counting those "
      "that have ended), and fails when pthread_create() gives EAGAIN: let it do less",
      preload::kMostAgents)};
}

Deadlocked ProgramMachine::deadlock() const {
  const preload::Channel& channel = zygote_->channel();
  Deadlocked result;
  for (uint32_t index : order_) {
    const AgentView& agent = agents_[index];
    if (agent.state == State::Ended) continue;
    // A wait for any of several objects: only the first of these is reported.
    const OpKind op = agent.pending.kind == OpKind::TryLock ? OpKind::SemWait : agent.pending.kind;
    Deadlocked::Waiting waiting{agent.id, op, agent.pending.object, agent.pending.pc, {}};
    for (uint32_t i = 0; i < std::min(channel.holder_count, preload::kMostHolders); ++i)
      if (channel.holders[i].waiting == index && channel.holders[i].holder < agents_.size())
        waiting.held_by.push_back(agents_[channel.holders[i].holder].id);
    std::sort(waiting.held_by.begin(), waiting.held_by.end());
    result.waiting.push_back(std::move(waiting));
  }
  if (zygote_->uncontrolled() & static_cast<uint32_t>(preload::Uncontrolled::ForeignThread))
    result.doubt = fmt::format(
        "This may be none: the program started a thread before main() ({}), which executions do not have; it "
        "could be the one that ends the wait.",
        names_->place(Place{added_.stable(channel.foreign_entry)}));
  return result;
}

}  // namespace slalom
