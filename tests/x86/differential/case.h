// A case: one instruction and its initial state. An outcome: the instruction's results.
//
// The same case runs on the host CPU (native.h) and in the interpreter (guest.h). Both use the same
// addresses:
//
//   code   two pages, read and execute, filled with INT3 around the instruction, so that execution that
//          continues within them ends with a breakpoint
//   data   two writable pages and one read-only page, none of them executable
//
// Nothing is mapped around them. A case ends with the first exception: the breakpoint, unless the instruction
// itself raises one. Cases are plain bytes, because they lie in memory that is shared with a child process.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace slalom::vm::diff {

inline constexpr uint64_t kPage = 4096;
inline constexpr uint64_t kCode = 0x10000000, kCodeSize = 2 * kPage;
inline constexpr uint64_t kData = 0x20000000, kWritable = 2 * kPage, kDataSize = 3 * kPage;
inline constexpr uint64_t kFsBase = kData + 0x840, kGsBase = kData + 0x1350;
inline constexpr unsigned kBackgrounds = 16;
inline constexpr uint8_t kZeros = kBackgrounds - 1;  // the background of zeros, for cases that are saved
inline constexpr uint8_t kBreakpointByte = 0xcc;

// The data of FXSAVE. Bytes 0-159 are control and x87 registers, 160-415 XMM registers.
struct alignas(16) FloatState {
  std::array<uint8_t, 512> bytes{};

  template <class T>
  T get(unsigned offset) const {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }
  template <class T>
  void set(unsigned offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof(T));
  }
  static constexpr unsigned kControl = 0, kStatus = 2, kTags = 4, kMxcsr = 24, kStack = 32, kXmm = 160;
};

enum class Mode : uint8_t { k64, k32 };

struct CpuState {
  std::array<uint64_t, 16> gpr{};
  uint64_t rip = 0;
  uint64_t flags = 0;
  FloatState floats;
  // In the order es cs ss ds fs gs; only in outcomes, since those of a case follow from its mode.
  std::array<uint16_t, 6> selectors{};
};

struct Patch {
  uint16_t offset = 0;  // relative to kData
  uint16_t size = 0;
  std::array<uint8_t, 512> bytes{};
};

struct Case {
  CpuState state;
  Mode mode = Mode::k64;
  uint8_t background = 0;  // the contents of the data pages before the patches
  uint8_t length = 0;
  // Of the instruction, at state.rip. Bytes beyond the code pages are not mapped.
  std::array<uint8_t, 16> bytes{};
  uint8_t patches = 0;
  std::array<Patch, 3> patch;
};

struct Outcome {
  CpuState state;
  bool ended = false;    // false: it never ended, or its end is unknown
  bool unknown = false;  // the interpreter does not know this instruction
  bool loops = false;    // it jumps to itself, so the host must not run it
  uint8_t vector = 0;
  uint32_t error = 0;
  uint64_t address = 0;  // for a page fault
  std::array<uint8_t, kWritable> data;
};

using Background = std::array<uint8_t, kDataSize>;
using Backgrounds = std::array<Background, kBackgrounds>;

// Writes the initial contents of the writable data pages. The contents of the read-only page are the same for
// all cases.
void fill_data(const Case& one, const Backgrounds& backgrounds, uint8_t* writable);

}  // namespace slalom::vm::diff
