// Mutants: interpreters with one handler broken on purpose, to see that comparing with the host finds that.
//
// The interpreter has no hooks for this. A mutant either exchanges the handler that an instruction was
// decoded to for another instruction's, or changes what came out.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "forms.h"
#include "vm/cpu/op.h"

namespace slalom::vm::diff {

struct Mutant {
  std::string name;
  std::string what;  // is broken: a flag, a width, a sign, a fault ...
  std::vector<ZydisMnemonic> victims;
  ZydisMnemonic donor = ZYDIS_MNEMONIC_INVALID;  // whose handler it gets
  void (*spoil)(const Case&, const Decoded&, Outcome&) = nullptr;

  bool concerns(ZydisMnemonic mnemonic) const;
  void change_op(const Case& one, Op& op) const;
  void change_outcome(const Case& one, Outcome& outcome) const;
};

std::span<const Mutant> all_mutants();

}  // namespace slalom::vm::diff
