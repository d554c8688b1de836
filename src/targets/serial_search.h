// SerialSearch: the preliminary search of a kernel test. Runs the flows' system calls one after the other, in
// every order, and collects their results for SerialOrders.
#pragma once

#include <memory>
#include <optional>

#include "campaign/preliminary.h"
#include "targets/machine_pool.h"
#include "vm/scenario/serial_orders.h"

namespace slalom {

class SerialSearch final : public Preliminary {
 public:
  struct Options {
    Place entry;                // where the kernel's system calls begin
    std::optional<Place> exit;  // where they return to the program; empty if unknown
    unsigned flows = 2;         // flow i runs on CPU i
    unsigned cpus = 2;
    unsigned first_ipi = 0x100;  // CPUs send each other this vector and those above; 0x100: none
    uint64_t max_steps = 0;
  };
  SerialSearch(std::shared_ptr<MachinePool> pool, std::shared_ptr<vm::SerialOrders> orders, Options options)
      : pool_(std::move(pool)), orders_(std::move(orders)), options_(options) {}

  std::unique_ptr<Strategy> begin() override;
  Inputs inputs() const override;
  Result<Worker> make_worker() override;
  void end(const ExploreResult& result) override;

 private:
  std::shared_ptr<MachinePool> pool_;
  std::shared_ptr<vm::SerialOrders> orders_;
  Options options_;
  bool begun_ = false;
};

}  // namespace slalom
