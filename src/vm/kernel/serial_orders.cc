#include "vm/kernel/serial_orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/hash.h"
#include "inputs/image.h"

namespace slalom::vm {
namespace {

// What is allocated, by where that was.
class Allocated : public EventSink {
 public:
  void on_accesses(std::span<const Access>, const BatchHeader&) override {}
  void on_event(const Event& event) override {
    if (event.op == OpKind::Alloc && event.state == 0) places_[event.object] = event.pc;
    if (event.op == OpKind::Free) places_.erase(event.object);
  }
  void on_end(const Outcome&) override {}
  std::map<Place, uint64_t> counts() const {
    std::map<Place, uint64_t> counts;
    for (const auto& [object, place] : places_) ++counts[place];
    return counts;
  }

 private:
  std::map<ObjectId, Place> places_;
};

// stat and its family, clocks, usage: see the system's asm/unistd_64.h.
bool tells_time(uint32_t number) {
  constexpr std::array kThose = {4u, 5u, 6u, 96u, 98u, 99u, 100u, 201u, 228u, 229u, 262u, 332u, 36u, 105u};
  return std::ranges::find(kThose, number) != kThose.end();
}

// Sleeping, and timers: what comes of them depends on how fast the CPUs are, in serial orders as in others.
bool depends_on_time(uint32_t number) {
  constexpr std::array kThose = {35u, 37u, 38u, 222u, 223u, 230u, 283u, 286u};
  return std::ranges::find(kThose, number) != kThose.end();
}

// Of all orders together; where flows wait for long, few of them are enough.
constexpr uint64_t kMostInstructions = 200'000'000;

bool at_entry(const ChoicePoint& point, Place entry) {
  return point.kind == ChoiceKind::Running && std::ranges::any_of(point.options(), [&](const Option& option) {
           return option.agent == point.current && option.op.pc == entry;
         });
}

std::string in_words(int64_t value) {
  return value < 0 && value > -4096
             ? fmt::format("-{} ({})", -value, strerrorname_np(static_cast<int>(-value)))
             : fmt::format("{}", value);
}

}  // namespace

SerialOrders::SerialOrders(std::vector<CallProgram> flows, std::vector<std::string> names)
    : flows_(std::move(flows)), names_(std::move(names)) {
  for (const CallProgram& flow : flows_)
    for (const CallStep& step : flow.steps)
      tells_time_ = tells_time_ || (step.kind == CallStep::Kind::Call && tells_time(step.number));
}

uint64_t SerialOrders::fingerprint(const std::vector<std::vector<uint8_t>>& results, Values& values) const {
  uint64_t hash = 0;
  for (size_t flow = 0; flow < flows_.size(); ++flow) {
    values.emplace_back();
    const Result<CallResults> decoded = decode_results(flows_[flow], results[flow]);
    if (!decoded.ok()) continue;
    values.back() = decoded->values;
    for (const int64_t value : decoded->values) hash = combine(hash, static_cast<uint64_t>(value));
    if (!tells_time_)
      for (const uint8_t byte : decoded->data) hash = combine(hash, byte);
  }
  return hash;
}

void SerialOrders::find(KernelMachine& machine, Place system_call_entry, uint64_t max_steps) {
  for (const CallProgram& flow : flows_)
    for (const CallStep& step : flow.steps)
      if (step.kind == CallStep::Kind::Call && depends_on_time(step.number)) return;
  // Far more orders than are tried, even if some calls wait for others: not worth a beginning.
  double orders = 1;
  size_t before = 0;
  for (const CallProgram& flow : flows_)
    for (size_t i = 1; i <= flow.sources.size(); ++i)
      orders *= static_cast<double>(++before) / static_cast<double>(i);
  if (orders > 4 * kMost) return;
  machine.set_explores(false);
  search(machine, system_call_entry, max_steps);
  machine.set_explores(true);
}

void SerialOrders::search(KernelMachine& machine, Place system_call_entry, uint64_t max_steps) {
  Inputs inputs{.policy = {.where = ChoicePolicy::Where::Nowhere, .places = {system_call_entry}},
                .max_steps = max_steps};
  std::vector<size_t> path;  // which of the flows was taken at each choice
  uint64_t instructions = 0;
  while (orders_ < kMost && instructions < kMostInstructions) {
    if (!machine.reset(inputs).ok()) return;
    std::vector<size_t> counts;
    Allocated sink;
    Stop stop = machine.start(sink);
    size_t depth = 0;
    while (std::holds_alternative<ChoicePoint>(stop)) {
      const ChoicePoint& point = std::get<ChoicePoint>(stop);
      std::vector<AgentId> flows;
      AgentId interrupt;
      for (const Option& option : point.options()) {
        if (option.op.kind == OpKind::IrqEnter)
          interrupt = option.agent;
        else
          flows.push_back(option.agent);
      }
      // Interrupts come as soon as they can.
      if (point.kind == ChoiceKind::Data || interrupt) {
        stop = machine.resume({.next = interrupt ? interrupt : point.current});
        continue;
      }
      // Elsewhere than between calls there is nothing to choose.
      const bool was_interrupt = static_cast<bool>(point.current.parent());
      const bool between = point.kind == ChoiceKind::Start ||
                           (point.kind == ChoiceKind::Ended && !was_interrupt) ||
                           point.kind == ChoiceKind::Blocked || at_entry(point, system_call_entry);
      size_t pick = 0;
      if (between && flows.size() > 1) {
        if (depth == path.size()) path.push_back(0);
        counts.push_back(flows.size());
        pick = path[depth++];
      } else {
        // Whoever runs goes on, or was interrupted, unless it seems to wait for another one.
        const bool returned = point.kind == ChoiceKind::Ended && was_interrupt;
        const auto current = std::ranges::find(flows, returned ? point.current.parent() : point.current);
        if (current != flows.end() && (returned || point.kind == ChoiceKind::Running))
          pick = static_cast<size_t>(current - flows.begin());
        else if (flows.size() > 1 && flows[0] == point.current)
          pick = 1;
      }
      stop = machine.resume({.next = flows[pick]});
    }
    ++orders_;
    instructions += machine.instructions();
    if (std::holds_alternative<Exited>(std::get<Outcome>(stop))) {
      Values values;
      fingerprints_.insert(fingerprint(machine.results(), values));
      values_.insert(std::move(values));
      for (const auto& [place, count] : sink.counts()) {
        uint64_t& most = stays_[place];
        most = std::max(most, count);
      }
    }
    path.resize(depth);
    while (!path.empty() && path.back() + 1 == counts[path.size() - 1]) path.pop_back();
    if (path.empty()) {
      complete_ = true;
      stays_[Place{}] = 0;  // so that there is something to tell
      return;
    }
    ++path.back();
  }
}

std::string SerialOrders::judge(const std::vector<std::vector<uint8_t>>& results) const {
  if (!complete_) return {};
  Values values;
  if (fingerprints_.contains(fingerprint(results, values))) return {};
  // The first result that no order gives; else the combination is what is wrong.
  for (size_t flow = 0; flow < values.size(); ++flow)
    for (size_t call = 0; call < values[flow].size(); ++call) {
      const int64_t value = values[flow][call];
      const bool known = std::ranges::any_of(
          values_, [&](const Values& one) { return call < one[flow].size() && one[flow][call] == value; });
      if (!known && call < flows_[flow].sources.size())
        return fmt::format("{} of {} gives {}, as in no order of whole calls",
                           flows_[flow].sources[call].text, names_[flow], in_words(value));
    }
  return values_.contains(values) ? "calls gave data that they give in no order of whole calls"
                                  : "calls gave results that they give together in no order of whole calls";
}

}  // namespace slalom::vm
