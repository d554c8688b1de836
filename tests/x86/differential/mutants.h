// Mutants: interpreters in which one handler is broken deliberately, to check that the comparison with the
// host detects it.
//
// The interpreter has no hooks for this. A mutant either replaces the handler of a decoded instruction with
// another instruction's handler, or changes the outcome.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "forms.h"
#include "vm/cpu/op.h"

namespace slalom::vm::diff {

struct Mutant {
  std::string name;
  std::string what;  // the kind of fault: a flag, a width, a sign, an exception ...
  std::vector<ZydisMnemonic> victims;
  ZydisMnemonic donor = ZYDIS_MNEMONIC_INVALID;  // the instruction whose handler is used
  void (*spoil)(const Case&, const Decoded&, Outcome&) = nullptr;

  bool concerns(ZydisMnemonic mnemonic) const;
  void change_op(const Case& one, Op& op) const;
  void change_outcome(const Case& one, Outcome& outcome) const;
};

std::span<const Mutant> all_mutants();

}  // namespace slalom::vm::diff
