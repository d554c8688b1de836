// SerialOrders: what flows of system calls give when whole calls run one after the other, in every order. A
// result that none of these gives is a bug, whatever the kernel says about itself.
//
// Threads of the kernel on a CPU without a flow do what they were woken for between two calls, or between
// later ones, or not at all: that is whole, too.
// A call that waits for another flow is left where it waits, so calls that block overlap there. Where there
// are too many orders, or time makes a difference, nothing is judged, and not_compared() says why.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vm/control/kernel_machine.h"
#include "vm/guests/linux/serial_results.h"

namespace slalom::vm {

class SerialOrders {
 public:
  static constexpr uint64_t kMost = 2'000;  // orders that are tried; where there are more, nothing is judged
  // Calls that wait for others leave less than the flows' lengths have one expect.
  static constexpr uint64_t kMostExpected = 4 * kMost;

  SerialOrders(std::vector<CallProgram> flows, std::vector<std::string> names)
      : results_(std::move(flows), std::move(names)) {}

  // `system_call_entry`: the kernel's first instruction for one. `stop` is asked now and then: true: that is
  // enough, and nothing is judged.
  void find(KernelMachine& machine, Place system_call_entry, uint64_t max_steps,
            const std::function<bool()>& stop = {});
  bool complete() const { return complete_; }
  uint64_t orders() const { return orders_; }
  // After find(): what judge() says nothing about, and why, for users.
  std::vector<std::string> not_compared() const;

  // How many objects at most stay allocated, by where that was.
  const std::map<Place, uint64_t>& leftovers() const { return leftovers_; }

  // Empty: some serial order gives these results, or nobody knows.
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
