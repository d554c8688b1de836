#include "vm/guests/linux/calls/serial_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/hash.h"
#include "inputs/image.h"
#include "vm/guests/linux/calls/call_facts.h"

namespace slalom::vm {
namespace {

// Values that no call returns.
constexpr int64_t kDescriptor = INT64_MIN, kTime = INT64_MIN + 1, kFirstProcess = INT64_MIN + 2;

std::string in_words(int64_t value) {
  return value < 0 && value > -4096
             ? fmt::format("-{} ({})", -value, strerrorname_np(static_cast<int>(-value)))
             : fmt::format("{}", value);
}

template <typename Function>
void for_each_call(const CallProgram& flow, const Function& function) {
  size_t call = 0;
  for (const CallStep& step : flow.steps)
    if (step.kind == CallStep::Kind::Call) function(step, call++);
}

}  // namespace

SerialResults::SerialResults(std::vector<CallProgram> flows, std::vector<std::string> names)
    : flows_(std::move(flows)), names_(std::move(names)) {
  for (const CallProgram& flow : flows_) {
    masks_.push_back(names_in_data(flow));
    for_each_call(flow, [&](const CallStep& call, size_t) {
      compares_data_ = compares_data_ && !tells_time(call);
      has_signals_ = has_signals_ || sends_signal(call);
    });
  }
}

std::string SerialResults::call_text(size_t flow, size_t call) const {
  const auto& sources = flows_[flow].sources;
  return fmt::format("{} of {}",
                     call < sources.size() ? sources[call].text : fmt::format("call {}", call + 1),
                     names_[flow]);
}

std::string SerialResults::time_teller() const {
  std::string found;
  for (size_t flow = 0; flow < flows_.size(); ++flow)
    for_each_call(flows_[flow], [&](const CallStep& call, size_t number) {
      if (found.empty() && tells_time(call)) found = call_text(flow, number);
    });
  return found;
}

SerialResults::Decoded SerialResults::decode(const Bytes& results) const {
  Decoded all;
  for (size_t flow = 0; flow < flows_.size(); ++flow) {
    all.values.emplace_back();
    const Result<CallResults> decoded = decode_results(flows_[flow], results[flow]);
    if (!decoded.ok()) continue;
    all.values.back() = decoded->values;
    if (!compares_data_) continue;
    std::vector<uint8_t> data = decoded->data;
    for (const DataObject& mask : masks_[flow])
      for (size_t i = mask.offset; i < size_t{mask.offset} + mask.size && i < data.size(); ++i) data[i] = 0;
    for (const uint8_t byte : data) all.data = combine(all.data, byte);
  }
  name(all);
  return all;
}

// Replaces names by values that all executions share. All descriptors that calls return get the same value. A
// process id is named by the call that created the process, in whichever flow. Ids of older processes stay as
// they are.
void SerialResults::name(Decoded& decoded) const {
  decoded.named = decoded.values;
  std::map<int64_t, int64_t> processes;
  int64_t next = kFirstProcess;
  const auto for_each = [&](const auto& function) {
    for (size_t flow = 0; flow < flows_.size(); ++flow)
      for_each_call(flows_[flow], [&](const CallStep& call, size_t number) {
        if (number < decoded.named[flow].size()) function(result_is(call), decoded.named[flow][number]);
      });
  };
  for_each([&](ResultIs what, int64_t& value) {
    ++next;  // for every call, so that a name does not depend on the results of other calls
    if (value >= 0 && what == ResultIs::NewDescriptor) value = kDescriptor;
    if (value >= 0 && (what == ResultIs::Time || what == ResultIs::Listing)) value = kTime;
    if (value <= 0 || what != ResultIs::NewProcess) return;
    processes.emplace(value, next);
    value = next;
  });
  for_each([&](ResultIs what, int64_t& value) {
    if (what != ResultIs::Process) return;
    if (const auto made = processes.find(value); made != processes.end()) value = made->second;
  });
}

bool SerialResults::was_interrupted(const Values& values) const {
  return has_signals_ && std::ranges::any_of(values, [](const std::vector<int64_t>& flow) {
           return std::ranges::find(flow, -EINTR) != flow.end();
         });
}

void SerialResults::add(const Bytes& results) {
  Decoded one = decode(results);
  values_.insert(one.named);
  all_.emplace(std::move(one.named), one.data);
}

std::string SerialResults::judge(const Bytes& results) const {
  const Decoded one = decode(results);
  if (all_.contains({one.named, one.data}) || was_interrupted(one.values)) return {};
  // Name the first result that no order gives. If each alone is possible, the combination is wrong.
  for (size_t flow = 0; flow < one.named.size(); ++flow)
    for (size_t call = 0; call < one.named[flow].size(); ++call) {
      const int64_t value = one.named[flow][call];
      const bool known = std::ranges::any_of(values_, [&](const Values& other) {
        return call < other[flow].size() && other[flow][call] == value;
      });
      if (!known && call < flows_[flow].sources.size())
        return fmt::format("{} gives {}, as in no order of whole calls", call_text(flow, call),
                           in_words(one.values[flow][call]));
    }
  return values_.contains(one.named)
             ? "calls gave data that they give in no order of whole calls"
             : "calls gave results that they give together in no order of whole calls";
}

}  // namespace slalom::vm
