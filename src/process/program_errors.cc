// The errors that a program's calls give: those of this execution, and those to repeat.
#include <algorithm>
#include <tuple>

#include "preload/runtime/calls.h"
#include "process/program_machine.h"

namespace slalom {
namespace {

using preload::Errors;

// Returns kCalls for a call that this version of slalom does not know.
uint32_t number_of(const std::string& call) {
  const auto at = std::ranges::find(preload::kCallNames, call);
  return static_cast<uint32_t>(at - preload::kCallNames);
}

}  // namespace

void ProgramMachine::repeat_errors() {
  preload::Channel& channel = zygote_->channel();
  errors_ = {};
  channel.error_count = channel.repeated_count = 0;
  channel.errors = Errors::Kept;
  if (!inputs_.repeated.errors) return;
  channel.errors = inputs_.repeated.same_schedule ? Errors::Repeat : Errors::RepeatOutside;
  for (const ErrorReturn& one : inputs_.repeated.errors->returns)
    if (channel.repeated_count < preload::kMostErrors)
      channel.repeated[channel.repeated_count++] = {
          one.agent.raw,       one.subject, static_cast<uint32_t>(one.ordinal),
          number_of(one.call), one.error,   one.outside};
}

// Errors arrive in the order of the schedule and are kept by agent. Returns false if the record is invalid.
bool ProgramMachine::read_error(const preload::Record& record) {
  if (record.size >= preload::kCalls || record.value < INT32_MIN || record.value > INT32_MAX ||
      errors_.returns.size() >= preload::kMostErrors)
    return false;
  ErrorReturn failed{agents_[record.agent].id,
                     record.state,
                     preload::kCallNames[record.size],
                     static_cast<int32_t>(record.value),
                     record.wrote != 0,
                     record.object,
                     text_at(record.text),
                     Place{record.pc}};
  const auto key = [](const ErrorReturn& one) { return std::tuple(one.agent, one.ordinal); };
  errors_.returns.insert(std::ranges::upper_bound(errors_.returns, key(failed), {}, key), std::move(failed));
  return true;
}

}  // namespace slalom
