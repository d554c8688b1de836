// SerialOrders: runs the flows' system calls one after the other, in every order, and collects their results.
// A result that no serial order gives is a bug, whatever the kernel reports.
//
// Kernel threads on CPUs without a flow may do their work between the call that woke them and the next one,
// between later calls, or not at all. Each of these is serial, too. A call that waits for another flow is
// left where it waits, so blocking calls overlap. If there are too many orders, or if time makes a
// difference, no results are judged; not_compared() gives the reason.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vm/control/kernel_machine.h"
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

  // `system_call_entry` is the kernel's entry point. `stop` is polled; if it returns true, the search ends
  // and no results are judged.
  void find(KernelMachine& machine, Place system_call_entry, uint64_t max_steps,
            const std::function<bool()>& stop = {});
  bool complete() const { return complete_; }
  uint64_t orders() const { return orders_; }
  // After find(): results that judge() ignores, with reasons, for users.
  std::vector<std::string> not_compared() const;

  // How many objects at most remain allocated after an order, by allocation site.
  const std::map<Place, uint64_t>& leftovers() const { return leftovers_; }

  // Empty if some serial order gives these results, or if the orders are unknown.
  std::string judge(const SerialResults::Bytes& results) const;

 private:
  void search(KernelMachine& machine, Place system_call_entry, Inputs inputs);
  double count_orders() const;

  SerialResults results_;
  bool complete_ = false;
  std::string why_not_ = "not looked for";
  uint64_t orders_ = 0;
  std::map<Place, uint64_t> leftovers_;
};

}  // namespace slalom::vm
