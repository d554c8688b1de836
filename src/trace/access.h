// Access: one memory access, packed into 32 bytes and delivered in batches.
//
// Addresses are 48-bit canonical ones, stored without their sign extension. `retired` places the access: it
// is made by the operation with that number, counted from the batch's first step (an operation may make
// several accesses). A read-modify-write of a CPU is two: what it read, then what it wrote (`wrote`), with
// the same operation; a compare-exchange that fails writes back what it found on real CPUs, but not here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/strong.h"
#include "trace/agent.h"
#include "trace/op.h"

namespace slalom {

// What a CPU's instruction does with memory beyond loading and storing.
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
std::string_view name(Modify modify);  // "add", "cmpxchg", ...; of None ""

struct Access {
  uint64_t pc_bits : 48;
  uint64_t op_bits : 8;      // OpKind: Load .. CompareExchange
  uint64_t modify_bits : 8;  // Modify
  uint64_t address_bits : 48;
  uint64_t retired : 16;  // step minus the batch's first step
  uint64_t value;         // read or written (of a compare-exchange: the value read); see fold_value()
  uint64_t physical : 40;
  uint64_t size : 16;  // in bytes
  uint64_t ring : 2;
  uint64_t wrote : 1;  // a compare-exchange that failed did not
  uint64_t aside : 1;  // outside of what a search was told to order: detectors see it, the search does not
  uint64_t alone : 1;  // known to touch what no other context writes, nor touches if it is a write
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

// Access::value of a whole access: its bytes, or a hash of them if they are more than eight.
uint64_t fold_value(const void* bytes, size_t size);

struct BatchHeader {
  AgentId agent;        // who made all accesses of the batch
  uint64_t thread = 0;  // the guest thread, where it differs from the agent
  Step first_step;
};

}  // namespace slalom
