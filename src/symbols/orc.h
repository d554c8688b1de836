// ORC: the rules that lead from any instruction of a Linux kernel to its caller, read from the kernel's own
// tables.
//
// Kernels without frame pointers and debug information still keep these tables in memory, for their own
// backtraces (CONFIG_UNWINDER_ORC, x86-64). Guest memory is untrusted: entries that make no sense are left
// out. Modules have tables of their own, which are not read, because their files have better information.
#pragma once

#include <cstdint>
#include <vector>

#include "symbols/btf.h"
#include "symbols/guest_memory.h"
#include "symbols/symbol_table.h"

namespace slalom {

// A rule. It holds from its address up to that of the next row. "Frame" is the caller's stack pointer, or the
// place where its registers were saved.
struct UnwindRow {
  enum class Kind : uint8_t {
    Unknown,    // there is no caller, or it cannot be found
    Call,       // the return address lies just below the frame
    Registers,  // the frame is a struct pt_regs
    Return,     // the frame is what an IRET pops
  };
  // The register from which the frame is computed, by its DWARF number.
  enum class Base : uint8_t { Rax = 0, Rdx = 1, Rdi = 5, Rbp = 6, Rsp = 7, R10 = 10, R13 = 13 };
  // Before: the base is read from memory before the offset is added. After: the sum is read from memory.
  enum class Indirect : uint8_t { No, Before, After };

  uint64_t address = 0;
  Kind kind = Kind::Unknown;
  Base base = Base::Rsp;
  Indirect indirect = Indirect::No;
  int16_t offset = 0;
  int16_t rbp_offset = 0;  // from the frame to the caller's saved RBP; 0 if it was not saved

  bool same_rule(const UnwindRow& other) const {
    return kind == other.kind && base == other.base && indirect == other.indirect && offset == other.offset &&
           rbp_offset == other.rbp_offset;
  }
};

// Returns the rows sorted by address; empty if this kernel has no such tables, or they are not where its
// symbols say. `types` determines which of two forms (before and since 6.4) the entries have.
std::vector<UnwindRow> read_orc(GuestMemory& memory, const SymbolTable& kernel, const Btf& types);

}  // namespace slalom
