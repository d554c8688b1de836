// Selects the SSE family of an instruction.
#include "vm/cpu/handlers/vector/vector.h"

namespace slalom::vm {

Handler select_sse(Instruction& in, Op& op) {
  // CPUID advertises SSE and SSE2. A later instruction with the same name (PEXTRW to memory) is not included.
  switch (in.info.meta.isa_set) {
    case ZYDIS_ISA_SET_SSE:
    case ZYDIS_ISA_SET_SSE2:
    case ZYDIS_ISA_SET_SSEMXCSR:
    case ZYDIS_ISA_SET_SSE_PREFETCH:
    case ZYDIS_ISA_SET_FXSAVE:
    case ZYDIS_ISA_SET_FXSAVE64:
      break;
    default:
      return nullptr;
  }
  if (in.info.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY) return nullptr;
  const Op untouched = op;
  if (const Handler handler = select_fxsave(in, op)) return handler;
  op = untouched;
  if (const Handler handler = select_sse_move(in, op)) return handler;
  if (in.visible() < 2) return nullptr;
  // All of these have a second operand and set the same fields.
  constexpr Handler (*kFamilies[])(Instruction&, Op&) = {
      select_sse_integer, select_sse_shuffle, select_sse_arithmetic,
      select_sse_compare, select_sse_convert, select_sse_approximate,
  };
  for (const auto family : kFamilies)
    if (const Handler handler = family(in, op)) return handler;
  op = untouched;
  return nullptr;
}

}  // namespace slalom::vm
