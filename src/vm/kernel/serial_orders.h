// SerialOrders: what flows of system calls give when whole calls run one after the other, in every order. A
// result that none of these gives is a bug, whatever the kernel says about itself.
//
// A call that waits for another flow is left where it waits, so calls that block overlap there. Data that
// calls wrote is compared, too, unless some call tells the time: that is another one in every execution.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "inputs/call_program.h"
#include "vm/kernel/kernel_machine.h"

namespace slalom::vm {

class SerialOrders {
 public:
  static constexpr uint64_t kMost = 2'000;  // orders; where there are more, nothing is judged

  SerialOrders(std::vector<CallProgram> flows, std::vector<std::string> names);

  // `system_call_entry`: the kernel's first instruction for one.
  void find(KernelMachine& machine, Place system_call_entry, uint64_t max_steps);
  bool complete() const { return complete_; }
  uint64_t orders() const { return orders_; }

  // How many objects at most stay allocated, by where that was.
  const std::map<Place, uint64_t>& stays() const { return stays_; }

  // Empty: some serial order gives these results, or nobody knows.
  std::string judge(const std::vector<std::vector<uint8_t>>& results) const;

 private:
  using Values = std::vector<std::vector<int64_t>>;  // by flow and call
  void search(KernelMachine& machine, Place system_call_entry, uint64_t max_steps);
  uint64_t fingerprint(const std::vector<std::vector<uint8_t>>& results, Values& values) const;

  std::vector<CallProgram> flows_;
  std::vector<std::string> names_;
  bool tells_time_ = false;
  bool complete_ = false;
  uint64_t orders_ = 0;
  std::set<uint64_t> fingerprints_;
  std::set<Values> values_;
  std::map<Place, uint64_t> stays_;
};

}  // namespace slalom::vm
