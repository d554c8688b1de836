// The form in which a CallProgram goes into the guest, and its results come out (guest/flow.c).
//
// One piece of memory that the guest works on in place, so that nothing is copied there. Little-endian:
//   header    magic, steps, calls, where results begin, where the data begins, size of all, objects, where
//             they are: 32 bits each
//   steps     kind, size: 16 bits; number: 32 bits; six operands: kind, size: 8 bits; signed: 16 bits;
//             addend: 32 bits; value: 64 bits
//   objects   offset, size: 32 bits each; the guest has no use for them
//   results   64 bits for each call, zero at first
//   data      as it is at the start
// Results and data, as they are at the end, are what the flow gives back.
#pragma once

#include "inputs/call_program.h"

namespace slalom {

inline constexpr uint32_t kMaxImage = 512 * 1024;  // ROOM in guest/flow.c
inline constexpr uint32_t kMaxCallSteps = 512;
inline constexpr uint32_t kMaxCallData = 256 * 1024;

std::vector<uint8_t> encode_image(const CallProgram& program);
// Trusts nothing; sources are lost.
Result<CallProgram> decode_image(std::span<const uint8_t> image);

struct CallResults {
  std::vector<int64_t> values;  // of each call
  std::vector<uint8_t> data;
  bool operator==(const CallResults&) const = default;
};
Result<CallResults> decode_results(const CallProgram& program, std::span<const uint8_t> bytes);

}  // namespace slalom
