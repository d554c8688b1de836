// SerialOrders: what the flows' system calls give if they run one after the other, in every order. A result
// that no serial order gives is a bug, whatever the kernel reports.
//
// Kernel threads on CPUs without a flow may do their work between the call that woke them and the next one,
// between later calls, or not at all. Each of these is serial, too. A call that waits for another flow is
// left where it waits, so blocking calls overlap. Where a flow itself uses memory that flows share, between
// two calls, others may run before and after that. If there are too many orders, or if time makes a
// difference, no results are judged; not_compared() gives the reason.
//
// Not for running the orders: targets/serial_search.h does that, with the strategy
// explore/strategies/serial.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/strong.h"
#include "vm/guests/linux/calls/serial_results.h"

namespace slalom::vm {

class SerialOrders {
 public:
  // The most orders to try; if there are more, no results are judged.
  static constexpr uint64_t kMost = 2'000;
  // The most orders that the flows' lengths may suggest. Calls that wait for other flows reduce the real
  // number.
  static constexpr uint64_t kMostExpected = 4 * kMost;

  SerialOrders(std::vector<CallProgram> flows, std::vector<std::string> names)
      : results_(std::move(flows), std::move(names)) {}

  // Returns false if it would make no sense to run the orders; not_compared() then says why. `knows_exit`: it
  // is known where the kernel's calls end.
  bool are_wanted(bool knows_exit);
  // Returns true if flows themselves use memory that they share, between their calls.
  bool share_memory() const;
  // Adds the results of an order that ended, and how many objects of each allocation site it left.
  void add(const SerialResults::Bytes& results, const std::map<Place, uint64_t>& left);
  // Ends the search for orders. All `orders` have been run if `why_not` is empty.
  void conclude(uint64_t orders, std::string why_not);

  bool complete() const { return why_not_.empty(); }
  uint64_t orders() const { return orders_; }
  // Results that judge() ignores, with reasons, for users.
  std::vector<std::string> not_compared() const;

  // How many objects at most remain allocated after an order, by allocation site.
  const std::map<Place, uint64_t>& leftovers() const { return leftovers_; }

  // Empty if some serial order gives these results, or if the orders are unknown.
  std::string judge(const SerialResults::Bytes& results) const;

 private:
  double count_orders() const;

  SerialResults results_;
  std::string why_not_ = "not looked for";
  uint64_t orders_ = 0;
  std::map<Place, uint64_t> leftovers_;
};

}  // namespace slalom::vm
