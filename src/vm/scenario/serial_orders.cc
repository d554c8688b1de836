#include "vm/scenario/serial_orders.h"

#include <fmt/format.h>

#include <algorithm>

#include "vm/guests/linux/calls/call_facts.h"

namespace slalom::vm {
namespace {

using Flows = std::vector<CallProgram>;

bool is_of_all(const Operand& operand, Operand::Kind kind) {
  return operand.kind == kind && operand.list == CallList::OfAll;
}

// Returns true if flows may change what was prepared for all: by a store, or by a call that gets a pointer.
bool may_change_shared(const Flows& flows) {
  for (const CallProgram& flow : flows)
    for (const CallStep& step : flow.steps) {
      if (step.changes_data() && step.list == CallList::OfAll) return true;
      for (const Operand& operand : step.operands)
        if (is_of_all(operand, Operand::Kind::Pointer)) return true;
    }
  return false;
}

// Returns true if the flow itself, not a call, uses memory that flows share and that may change.
bool uses_shared(const CallStep& step, bool changes) {
  if (step.copies()) return true;
  if (!changes) return false;
  if (step.kind != CallStep::Kind::Call && step.list == CallList::OfAll) return true;
  return std::ranges::any_of(step.operands,
                             [](const Operand& operand) { return is_of_all(operand, Operand::Kind::Load); });
}

// Returns true if that happens before the flow's first call.
bool begins_with_shared(const CallProgram& flow, bool changes) {
  for (const CallStep& step : flow.steps) {
    if (uses_shared(step, changes)) return true;
    if (step.kind == CallStep::Kind::Call) return false;
  }
  return false;
}

bool chooses(const CallProgram& flow) {
  return std::ranges::any_of(flow.steps,
                             [](const CallStep& step) { return step.kind == CallStep::Kind::Choose; });
}

}  // namespace

bool SerialOrders::share_memory() const {
  const bool changes = may_change_shared(results_.flows());
  for (const CallProgram& flow : results_.flows())
    for (const CallStep& step : flow.steps)
      if (uses_shared(step, changes)) return true;
  return false;
}

// The number of orders if no call waits for another one.
double SerialOrders::count_orders() const {
  double orders = 1;
  size_t before = 0;
  for (const CallProgram& flow : results_.flows()) {
    for (size_t i = 1; i <= flow.calls(); ++i)
      orders *= static_cast<double>(++before) / static_cast<double>(i);
  }
  return orders;
}

bool SerialOrders::are_wanted(bool knows_exit) {
  if (std::ranges::any_of(results_.flows(), chooses)) {
    why_not_ = "choose() gives several values";
    return false;
  }
  const bool changes = may_change_shared(results_.flows());
  const bool begins = std::ranges::any_of(
      results_.flows(), [&](const CallProgram& flow) { return begins_with_shared(flow, changes); });
  if (begins || (share_memory() && !knows_exit)) {
    why_not_ = begins ? "a flow uses shared memory before its first call"
                      : "flows use shared memory, and it is not known where this kernel's calls end";
    return false;
  }
  for (size_t flow = 0; flow < results_.flows().size(); ++flow) {
    const CallProgram& program = results_.flows()[flow];
    size_t call = 0;
    for (const CallStep& step : program.steps) {
      if (step.kind != CallStep::Kind::Call) continue;
      if (depends_on_time(program, step)) {
        why_not_ = fmt::format("{} depends on time", results_.call_text(flow, call));
        return false;
      }
      ++call;
    }
  }
  // There are far more orders than would be tried, even if some calls wait for others.
  if (const double orders = count_orders(); orders > kMostExpected) {
    why_not_ = fmt::format("{:.6g} orders, at most {}", orders, kMostExpected);
    return false;
  }
  return true;
}

void SerialOrders::add(const SerialResults::Bytes& results, const std::map<Place, uint64_t>& left) {
  results_.add(results);
  for (const auto& [place, count] : left) {
    uint64_t& most = leftovers_[place];
    most = std::max(most, count);
  }
}

void SerialOrders::conclude(uint64_t orders, std::string why_not) {
  orders_ = orders;
  why_not_ = std::move(why_not);
  leftovers_[Place{}] = 0;  // makes the result non-empty, so that it is emitted
}

std::vector<std::string> SerialOrders::not_compared() const {
  if (!complete()) return {fmt::format("results with serial orders ({})", why_not_)};
  if (const std::string teller = results_.time_teller(); !teller.empty())
    return {fmt::format("data that calls wrote with serial orders ({} tells the time)", teller)};
  return {};
}

std::string SerialOrders::judge(const SerialResults::Bytes& results) const {
  return complete() ? results_.judge(results) : std::string();
}

}  // namespace slalom::vm
