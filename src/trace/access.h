// Access: one memory access, packed into 32 bytes and delivered in batches.
//
// Addresses are 48-bit canonical ones, stored without their sign extension. `retired` places the access: it
// is made by the operation with that number, counted from the batch's first step (an operation may make
// several accesses).
#pragma once

#include <cstdint>

#include "base/strong.h"
#include "trace/agent.h"
#include "trace/op.h"

namespace slalom {

struct Access {
  uint64_t pc_bits : 48;
  uint64_t op_bits : 8;  // OpKind: Load .. CompareExchange
  uint64_t size : 8;     // in bytes
  uint64_t address_bits : 48;
  uint64_t retired : 16;  // step minus the batch's first step
  uint64_t value;         // read or written (of a compare-exchange: the value read)
  uint64_t physical : 56;
  uint64_t ring : 2;
  uint64_t wrote : 1;  // a compare-exchange that failed did not
  uint64_t unused : 5;

  OpKind op() const { return static_cast<OpKind>(op_bits); }
  Place pc() const { return Place{extend(pc_bits)}; }
  ObjectId address() const { return ObjectId{extend(address_bits)}; }

 private:
  static constexpr uint64_t extend(uint64_t bits) {
    return static_cast<uint64_t>(static_cast<int64_t>(bits << 16) >> 16);
  }
};
static_assert(sizeof(Access) == 32);

struct BatchHeader {
  AgentId agent;        // who made all accesses of the batch
  uint64_t thread = 0;  // the guest thread, where it differs from the agent
  Step first_step;
};

}  // namespace slalom
