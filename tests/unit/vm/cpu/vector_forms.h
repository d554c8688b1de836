// Every form of SSE, SSE2 and MMX that the decoder knows, found by trying all opcodes.
#pragma once

#include <set>

#include "unit/vm/cpu/host_cpu.h"
#include "unit/vm/cpu/values.h"

namespace slalom::vm {

enum class VectorSet : uint8_t { Sse, Mmx };

inline bool belongs(ZydisISASet set, VectorSet wanted) {
  const bool mmx = set == ZYDIS_ISA_SET_PENTIUMMMX || set == ZYDIS_ISA_SET_SSE2MMX;
  if (wanted == VectorSet::Mmx) return mmx;
  return set == ZYDIS_ISA_SET_SSE || set == ZYDIS_ISA_SET_SSE2 || set == ZYDIS_ISA_SET_SSEMXCSR ||
         set == ZYDIS_ISA_SET_SSE_PREFETCH || set == ZYDIS_ISA_SET_FXSAVE || set == ZYDIS_ISA_SET_FXSAVE64;
}

// All opcodes from 0F 00 to 0F FF, with each mandatory prefix, with and without REX.W, on registers 1 and 2
// and on [rdi], with all extensions of groups and some immediates.
inline std::vector<Form> vector_forms(VectorSet wanted) {
  std::vector<Form> forms;
  std::set<std::vector<uint8_t>> seen;
  constexpr int kNone = -1;
  for (const int prefix : {kNone, 0x66, 0xf3, 0xf2})
    for (const bool wide : {false, true})
      for (unsigned opcode = 0; opcode < 256; ++opcode)
        for (unsigned modrm = 0; modrm < 256; ++modrm) {
          const bool group = (opcode >= 0x71 && opcode <= 0x73) || opcode == 0x18 || opcode == 0xae;
          if (modrm != 0xca && modrm != 0x0f && !(group && ((modrm & 0xc7) == 0xc2 || (modrm & 0xc7) == 7)))
            continue;
          for (const int immediate : {kNone, 0x00, 0x01, 0x1b, 0xe4, 0x0f, 0x10, 0x3f, 0xff, 0x07}) {
            std::vector<uint8_t> bytes;
            if (prefix != kNone) bytes.push_back(static_cast<uint8_t>(prefix));
            if (wide) bytes.push_back(0x48);
            bytes.push_back(0x0f);
            bytes.push_back(static_cast<uint8_t>(opcode));
            if (opcode != 0x77) bytes.push_back(static_cast<uint8_t>(modrm));
            if (immediate != kNone) bytes.push_back(static_cast<uint8_t>(immediate));
            Form form;
            ZydisISASet set;
            if (seen.insert(bytes).second && make_form(bytes, form, set) && belongs(set, wanted))
              forms.push_back(std::move(form));
          }
        }
  return forms;
}

inline CpuCase vector_case(Values& values, bool unmasked) {
  CpuCase start;
  for (unsigned i = 0; i < 3; ++i) start.gpr[i] = values.integer();
  start.rflags = values.flags();
  start.fx = values.x87(unmasked && values.below(4) == 0);
  start.fx.mxcsr = values.mxcsr(unmasked);
  for (FxImage::Slot& xmm : start.fx.xmm) xmm = values.vector();
  if (values.below(8) == 0) start.offset = static_cast<unsigned>(values.below(16));
  start.set_operand(values.vector());
  return start;
}

}  // namespace slalom::vm
