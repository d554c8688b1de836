// ORC: how to get from any instruction of a Linux kernel to its caller, read from the kernel's own tables.
//
// Kernels without frame pointers and without debug information still have these in memory, for their own
// backtraces (CONFIG_UNWINDER_ORC, x86-64). Guest memory is not trusted: what makes no sense is left out.
// Modules have tables of their own, which are not read: their files have better.
#pragma once

#include <cstdint>
#include <vector>

#include "symbols/btf.h"
#include "symbols/guest_memory.h"
#include "symbols/symbol_table.h"

namespace slalom {

// Holds from its address up to that of the next one. "Frame" is the stack pointer of the caller, or the place
// where its registers were saved.
struct UnwindRow {
  enum class Kind : uint8_t {
    Unknown,    // there is no caller, or none that can be found
    Call,       // its return address lies just below the frame
    Registers,  // the frame is a struct pt_regs
    Return,     // the frame is what an IRET returns to
  };
  // What the frame is computed from, by its number in DWARF.
  enum class Base : uint8_t { Rax = 0, Rdx = 1, Rdi = 5, Rbp = 6, Rsp = 7, R10 = 10, R13 = 13 };
  enum class Indirect : uint8_t { No, Before, After };  // the base is read from memory; the sum is

  uint64_t address = 0;
  Kind kind = Kind::Unknown;
  Base base = Base::Rsp;
  Indirect indirect = Indirect::No;
  int16_t offset = 0;
  int16_t rbp_offset = 0;  // from the frame, where the caller's RBP was saved; 0: it was not

  bool same_rule(const UnwindRow& other) const {
    return kind == other.kind && base == other.base && indirect == other.indirect && offset == other.offset &&
           rbp_offset == other.rbp_offset;
  }
};

// Sorted by address. Empty: this kernel has no such tables, or not where its symbols say. `types` tells which
// of two forms (before and since 6.4) their entries have.
std::vector<UnwindRow> read_orc(GuestMemory& memory, const SymbolTable& kernel, const Btf& types);

}  // namespace slalom
