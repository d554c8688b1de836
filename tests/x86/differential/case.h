// A case: one instruction and the state it starts from; an outcome: what became of both.
//
// The same case runs on the host CPU (native.h) and in the interpreter (guest.h). Both see the same
// addresses:
//
//   code   two pages, read and execute, filled with INT3 around the instruction, so that whatever it leads to
//          within them ends with a breakpoint
//   data   two pages that may be written and one that may only be read, none of them executable
//
// with nothing mapped around either. A case ends with the first exception, which is the breakpoint when the
// instruction itself raises none. Cases are plain bytes: they lie in memory shared with a child process.
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
inline constexpr uint8_t kZeros = kBackgrounds - 1;  // the one that holds nothing: for cases that are kept
inline constexpr uint8_t kBreakpointByte = 0xcc;

// What FXSAVE stores: bytes 0-159 hold control and x87 registers, 160-415 XMM registers.
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
  std::array<uint16_t, 6> selectors{};  // es cs ss ds fs gs: an outcome's; a case's follow from its mode
};

struct Patch {
  uint16_t offset = 0;  // from kData
  uint16_t size = 0;
  std::array<uint8_t, 512> bytes{};
};

struct Case {
  CpuState state;
  Mode mode = Mode::k64;
  uint8_t background = 0;  // which contents the data pages have, before the patches
  uint8_t length = 0;
  std::array<uint8_t, 16>
      bytes{};  // of the instruction, at state.rip; those behind the code pages are not there
  uint8_t patches = 0;
  std::array<Patch, 3> patch;
};

struct Outcome {
  CpuState state;
  bool ended = false;    // false: it never did, or nobody knows how
  bool unknown = false;  // the interpreter does not know this instruction
  bool loops = false;    // it leads to itself: not for the host
  uint8_t vector = 0;
  uint32_t error = 0;
  uint64_t address = 0;  // of a page fault
  std::array<uint8_t, kWritable> data;
};

using Background = std::array<uint8_t, kDataSize>;
using Backgrounds = std::array<Background, kBackgrounds>;

// What the data pages hold when a case starts. The page that cannot be written is the same for all.
void fill_data(const Case& one, const Backgrounds& backgrounds, uint8_t* writable);

}  // namespace slalom::vm::diff
