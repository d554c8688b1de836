// EntryState: the state in which a loader wants the first CPU to start, as plain values.
//
// Registers that are not listed are zero, interrupts are off, and the other CPUs wait for a startup IPI.
#pragma once

#include <cstdint>

#include "vm/memory/ram.h"

namespace slalom::vm {

struct EntryState {
  enum class Mode {
    Long64,       // paging on with cr3, CR4.PAE, EFER.LME and LMA
    Protected32,  // paging off
  };
  Mode mode = Mode::Long64;
  uint64_t rip = 0;
  uint64_t rsp = 0;
  uint64_t rax = 0;
  uint64_t rbx = 0;
  uint64_t rsi = 0;
  Physical cr3 = 0;
  Physical gdt_base = 0;
  uint16_t gdt_limit = 0;
  // GDT selectors of flat segments. The code segment is 64-bit in long mode, otherwise 32-bit.
  uint16_t code_selector = 0;
  uint16_t data_selector = 0;  // for DS, ES, FS, GS and SS
  bool operator==(const EntryState&) const = default;
};

}  // namespace slalom::vm
