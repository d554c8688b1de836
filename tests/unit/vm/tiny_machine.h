// A machine with a small program, for tests of the whole PC that need no kernel.
#pragma once

#include <memory>

#include "vm/boot/boot.h"

namespace slalom::vm {

inline constexpr uint64_t kTinyMemory = uint64_t{2} << 20;
inline constexpr Physical kTinyCode = 0x10000;

// 32-bit code that runs forever: a random walk that adds to the 512 KiB of memory from 1 MiB on, patches one
// of its own instructions in every round, and sometimes prints a character.
//
//         mov eax, 0x12345
//   1:    imul eax, 1103515245;  add eax, 12345
//         mov ebx, eax;  shr ebx, 8;  and ebx, 0x7fffc
//         add [ebx + 0x100000], eax
//         mov [2f + 1], eax
//   2:    mov edx, 0
//         add esi, edx
//         test eax, 0x3ff000;  jnz 1b
//         out 0xe9, al;  jmp 1b
inline constexpr uint8_t kWalker[] = {0xb8, 0x45, 0x23, 0x01, 0x00, 0x69, 0xc0, 0x6d, 0x4e, 0xc6, 0x41, 0x05,
                                      0x39, 0x30, 0x00, 0x00, 0x89, 0xc3, 0xc1, 0xeb, 0x08, 0x81, 0xe3, 0xfc,
                                      0xff, 0x07, 0x00, 0x01, 0x83, 0x00, 0x00, 0x10, 0x00, 0xa3, 0x27, 0x00,
                                      0x01, 0x00, 0xba, 0x00, 0x00, 0x00, 0x00, 0x01, 0xd6, 0xa9, 0x00, 0xf0,
                                      0x3f, 0x00, 0x75, 0xd1, 0xe6, 0xe9, 0xeb, 0xcd};

inline std::unique_ptr<Pc> make_tiny(std::span<const uint8_t> code = kWalker, unsigned cpus = 2) {
  std::unique_ptr<Pc> pc = std::move(Pc::make({.cpus = cpus, .memory = kTinyMemory}).value());
  pc->ram().write(kTinyCode, code);
  pc->enter({.mode = EntryState::Mode::Protected32,
             .rip = kTinyCode,
             .rsp = 0x9000,
             .code_selector = 8,
             .data_selector = 16});
  return pc;
}

}  // namespace slalom::vm
