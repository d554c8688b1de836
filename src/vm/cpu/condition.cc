#include "vm/cpu/condition.h"

namespace slalom::vm {

int jump_condition(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_JO:
      return 0;
    case ZYDIS_MNEMONIC_JNO:
      return 1;
    case ZYDIS_MNEMONIC_JB:
      return 2;
    case ZYDIS_MNEMONIC_JNB:
      return 3;
    case ZYDIS_MNEMONIC_JZ:
      return 4;
    case ZYDIS_MNEMONIC_JNZ:
      return 5;
    case ZYDIS_MNEMONIC_JBE:
      return 6;
    case ZYDIS_MNEMONIC_JNBE:
      return 7;
    case ZYDIS_MNEMONIC_JS:
      return 8;
    case ZYDIS_MNEMONIC_JNS:
      return 9;
    case ZYDIS_MNEMONIC_JP:
      return 10;
    case ZYDIS_MNEMONIC_JNP:
      return 11;
    case ZYDIS_MNEMONIC_JL:
      return 12;
    case ZYDIS_MNEMONIC_JNL:
      return 13;
    case ZYDIS_MNEMONIC_JLE:
      return 14;
    case ZYDIS_MNEMONIC_JNLE:
      return 15;
    default:
      return -1;
  }
}

int cmov_condition(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_CMOVO:
      return 0;
    case ZYDIS_MNEMONIC_CMOVNO:
      return 1;
    case ZYDIS_MNEMONIC_CMOVB:
      return 2;
    case ZYDIS_MNEMONIC_CMOVNB:
      return 3;
    case ZYDIS_MNEMONIC_CMOVZ:
      return 4;
    case ZYDIS_MNEMONIC_CMOVNZ:
      return 5;
    case ZYDIS_MNEMONIC_CMOVBE:
      return 6;
    case ZYDIS_MNEMONIC_CMOVNBE:
      return 7;
    case ZYDIS_MNEMONIC_CMOVS:
      return 8;
    case ZYDIS_MNEMONIC_CMOVNS:
      return 9;
    case ZYDIS_MNEMONIC_CMOVP:
      return 10;
    case ZYDIS_MNEMONIC_CMOVNP:
      return 11;
    case ZYDIS_MNEMONIC_CMOVL:
      return 12;
    case ZYDIS_MNEMONIC_CMOVNL:
      return 13;
    case ZYDIS_MNEMONIC_CMOVLE:
      return 14;
    case ZYDIS_MNEMONIC_CMOVNLE:
      return 15;
    default:
      return -1;
  }
}

int set_condition(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_SETO:
      return 0;
    case ZYDIS_MNEMONIC_SETNO:
      return 1;
    case ZYDIS_MNEMONIC_SETB:
      return 2;
    case ZYDIS_MNEMONIC_SETNB:
      return 3;
    case ZYDIS_MNEMONIC_SETZ:
      return 4;
    case ZYDIS_MNEMONIC_SETNZ:
      return 5;
    case ZYDIS_MNEMONIC_SETBE:
      return 6;
    case ZYDIS_MNEMONIC_SETNBE:
      return 7;
    case ZYDIS_MNEMONIC_SETS:
      return 8;
    case ZYDIS_MNEMONIC_SETNS:
      return 9;
    case ZYDIS_MNEMONIC_SETP:
      return 10;
    case ZYDIS_MNEMONIC_SETNP:
      return 11;
    case ZYDIS_MNEMONIC_SETL:
      return 12;
    case ZYDIS_MNEMONIC_SETNL:
      return 13;
    case ZYDIS_MNEMONIC_SETLE:
      return 14;
    case ZYDIS_MNEMONIC_SETNLE:
      return 15;
    default:
      return -1;
  }
}

}  // namespace slalom::vm
