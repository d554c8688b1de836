// Selects the x87 family of an instruction.
#include "vm/cpu/handlers/x87/x87.h"

namespace slalom::vm {

Handler select_x87(Instruction& in, Op& op) {
  // FISTTP, which SSE3 introduced, is in no family.
  if (in.mnemonic() == ZYDIS_MNEMONIC_FWAIT) return select_fwait();
  if (in.info.opcode_map != ZYDIS_OPCODE_MAP_DEFAULT || in.info.opcode < 0xd8 || in.info.opcode > 0xdf)
    return nullptr;
  const auto& modrm = in.info.raw.modrm;
  const X87Opcode code{static_cast<uint8_t>(in.info.opcode - 0xd8), modrm.mod != 3, modrm.reg, modrm.rm};
  // The opcode of the last instruction, as FSTENV stores it.
  op.immediate = code.number << 8 | modrm.mod << 6 | modrm.reg << 3 | modrm.rm;
  if (const Handler handler = select_x87_arithmetic(code, op)) return handler;
  if (const Handler handler = select_x87_compare(code, op)) return handler;
  if (const Handler handler = select_x87_move(code, op)) return handler;
  if (const Handler handler = select_x87_control(code, in, op)) return handler;
  if (const Handler handler = select_x87_remainder(code, op)) return handler;
  return select_x87_transcendental(code, op);
}

}  // namespace slalom::vm
