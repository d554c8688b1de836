// Condition codes of conditional mnemonics, as x86 numbers them.
#pragma once

#include <Zydis/Zydis.h>

#include <type_traits>
#include <utility>

#include "vm/cpu/op.h"

namespace slalom::vm {

// These return -1 if the mnemonic is no such instruction.
int jump_condition(ZydisMnemonic mnemonic);
int cmov_condition(ZydisMnemonic mnemonic);
int set_condition(ZydisMnemonic mnemonic);

template <class Pick>
Handler by_condition(unsigned code, Pick pick) {
  Handler handler = nullptr;
  [&]<unsigned... codes>(std::integer_sequence<unsigned, codes...>) {
    ((code == codes ? void(handler = pick(std::integral_constant<unsigned, codes>{})) : void()), ...);
  }
  (std::make_integer_sequence<unsigned, 16>{});
  return handler;
}

}  // namespace slalom::vm
