#include "vm/scenario/serial_orders.h"

#include <fmt/format.h>

#include <algorithm>

#include "vm/guests/linux/calls/call_facts.h"

namespace slalom::vm {

// The number of orders if no call waits for another one.
double SerialOrders::count_orders() const {
  double orders = 1;
  size_t before = 0;
  for (const CallProgram& flow : results_.flows())
    for (size_t i = 1; i <= flow.calls(); ++i)
      orders *= static_cast<double>(++before) / static_cast<double>(i);
  return orders;
}

bool SerialOrders::are_wanted() {
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
