// Access: one memory access, packed into 32 bytes. Machines deliver accesses in batches.
//
// Addresses are canonical 48-bit addresses, stored without their sign extension. `retired` is the number of
// the operation that makes the access, counted from the batch's first step; one operation may make several
// accesses. A CPU's read-modify-write is two accesses of the same operation: the value that it read, then the
// value that it wrote (`wrote`). A real CPU writes the old value back when a compare-exchange fails; here, a
// failed compare-exchange writes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/strong.h"
#include "trace/agent.h"
#include "trace/op.h"

namespace slalom {

// What an instruction does with memory beyond loading and storing.
enum class Modify : uint8_t {
  None,  // a load or a store
  Add,
  Or,
  Adc,
  Sbb,
  And,
  Sub,
  Xor,
  Inc,
  Dec,
  Not,
  Neg,
  Exchange,
  ExchangeAdd,
  CompareExchange,
  BitSet,
  BitReset,
  BitComplement,
  Shift,
  Other,
};
std::string_view name(Modify modify);  // "add", "cmpxchg", ...; "" for None

struct Access {
  uint64_t pc_bits : 48;
  uint64_t op_bits : 8;      // OpKind, from Load to CompareExchange
  uint64_t modify_bits : 8;  // Modify
  uint64_t address_bits : 48;
  uint64_t retired : 16;  // step minus the batch's first step
  uint64_t value;         // value read or written (a compare-exchange: the value read); see fold_value()
  uint64_t physical : 40;
  uint64_t size : 16;  // in bytes
  uint64_t ring : 2;
  uint64_t wrote : 1;      // false for a compare-exchange that failed
  uint64_t unordered : 1;  // outside the code that the search orders: detectors see it, the search does not
  // Known to be private: no other context writes this memory; if this access is a write, no other context
  // touches it at all.
  uint64_t is_private : 1;
  uint64_t unused : 3;

  OpKind op() const { return static_cast<OpKind>(op_bits); }
  Modify modify() const { return static_cast<Modify>(modify_bits); }
  Place pc() const { return Place{extend(pc_bits)}; }
  ObjectId address() const { return ObjectId{extend(address_bits)}; }

 private:
  static constexpr uint64_t extend(uint64_t bits) {
    return static_cast<uint64_t>(static_cast<int64_t>(bits << 16) >> 16);
  }
};
static_assert(sizeof(Access) == 32);

// Returns the Access::value of a whole access: its bytes, or a hash of them if there are more than eight.
uint64_t fold_value(const void* bytes, size_t size);

struct BatchHeader {
  AgentId agent;        // made all accesses of the batch
  uint64_t thread = 0;  // the guest thread, if it differs from the agent
  Step first_step;
};

}  // namespace slalom
