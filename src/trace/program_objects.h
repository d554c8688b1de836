// Objects of programs that are neither memory nor locks, as far as observers of executions must recognise
// them. preload/protocol.h numbers the others.
#pragma once

#include <cstdint>

namespace slalom {

inline constexpr uint64_t kNoAddresses = uint64_t{1} << 48;  // addresses lie below all these objects
inline constexpr uint64_t kSignalObject = kNoAddresses;      // signals to the process
inline constexpr uint64_t kForkObject =
    kNoAddresses + (uint64_t{1} << 32) - 3;  // what a forked process inherits

}  // namespace slalom
