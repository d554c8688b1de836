// The form in which a CallProgram enters the guest, and its results leave it (guest/flow.c).
//
// It is one piece of memory on which the guest works in place, so the guest copies nothing. Numbers are
// little-endian:
//   header    magic, steps, calls, where results begin, where the data begins, size of all, objects, where
//             they are; calls and size of the data of the two prepared lists: 32 bits each
//   steps     kind, list: 8 bits; size: 16 bits; number: 32 bits; six operands: kind, size, signed, list: 8
//             bits each; addend: 32 bits; value: 64 bits
//   objects   offset, size: 32 bits each; the guest has no use for them
//   results   64 bits for each call, zero at first
//   data      as it is at the start
// At the end, results and data are the flow's output.
#pragma once

#include "inputs/call_program.h"

namespace slalom {

inline constexpr uint32_t kMaxImage = 512 * 1024;  // ROOM in guest/flow.c
inline constexpr uint32_t kMaxCallSteps = 512;
inline constexpr uint32_t kMaxCallData = 256 * 1024;

std::vector<uint8_t> encode_image(const CallProgram& program);
// Trusts nothing. Sources are lost.
Result<CallProgram> decode_image(std::span<const uint8_t> image);

struct CallResults {
  std::vector<int64_t> values;  // the return value of each call
  std::vector<uint8_t> data;
  bool operator==(const CallResults&) const = default;
};
Result<CallResults> decode_results(const CallProgram& program, std::span<const uint8_t> bytes);

}  // namespace slalom
