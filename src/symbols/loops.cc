#include "symbols/loops.h"

#include <Zydis/Zydis.h>

namespace slalom {

bool may_loop(std::span<const uint8_t> code) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisDecodedInstruction in;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  for (size_t at = 0; at < code.size(); at += in.length) {
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code.data() + at, code.size() - at, &in, operands)))
      return true;
    if (in.meta.category != ZYDIS_CATEGORY_COND_BR && in.meta.category != ZYDIS_CATEGORY_UNCOND_BR) continue;
    if (operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return true;
    // A jump to a place before the piece leads out of it, and is no loop in it.
    const int64_t target = static_cast<int64_t>(at + in.length) + operands[0].imm.value.s;
    if (target >= 0 && target <= static_cast<int64_t>(at)) return true;
  }
  return false;
}

}  // namespace slalom
