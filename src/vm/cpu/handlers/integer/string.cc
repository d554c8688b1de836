// String instructions, single and repeated.
//
// A repeated one runs in steps of at most kStep iterations. Each step counts as one instruction and leaves
// the registers as if it had been interrupted there. If all elements of a step lie in pages of the TLB, the
// step is one memmove or fill.
#include <algorithm>

#include "vm/cpu/handler.h"
#include "vm/cpu/handlers/forms.h"
#include "vm/cpu/instruction.h"
#include "vm/cpu/memory/record.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kStep = 1024;

// Registers have the width of the address size.
uint64_t address_mask(const Op* op) {
  if (op->bits & Op::kAddress16) return 0xffff;
  if (op->bits & Op::kAddress32) return 0xffffffff;
  return ~uint64_t{0};
}
void add_to(Cpu& cpu, unsigned reg, uint64_t mask, uint64_t amount) {
  const uint64_t value = (cpu.gpr(reg) + amount) & mask;
  cpu.gpr(reg) = mask == 0xffff ? (cpu.gpr(reg) & ~mask) | value : value;
}

bool source_address(Cpu& cpu, const Op* op, unsigned size, uint64_t& address) {
  const uint64_t offset = cpu.gpr(kRsi) & address_mask(op);
  if (op->segment < kLegacySegments) {
    address = offset + cpu.segment_base[op->segment];
    return true;
  }
  if (!legacy_address(cpu, op, size, AccessKind::Read, offset)) return false;
  address = cpu.linear;
  return true;
}

bool destination_address(Cpu& cpu, const Op* op, unsigned size, AccessKind kind, uint64_t& address) {
  const uint64_t offset = cpu.gpr(kRdi) & address_mask(op);
  if (cpu.mode.is_long()) {
    address = offset;
    return true;
  }
  return segment_address(cpu, kEs, offset, size, kind, address);
}

enum class String : uint8_t { Movs, Stos, Lods, Cmps, Scas };

template <class T, String string>
bool one(Cpu& cpu, const Op* op) {
  const uint64_t mask = address_mask(op);
  const uint64_t step = (cpu.regs.rflags & flag::kDirection) ? -uint64_t{sizeof(T)} : sizeof(T);
  constexpr bool uses_source = string == String::Movs || string == String::Lods || string == String::Cmps;
  constexpr bool uses_destination = string != String::Lods;
  constexpr bool writes = string == String::Movs || string == String::Stos;
  T a = get<T>(cpu, kRax), b;
  uint64_t from, to;
  if constexpr (string == String::Cmps)  // the destination is read first
    if (!destination_address(cpu, op, sizeof(T), AccessKind::Read, to) || !load(cpu, op, to, b)) return false;
  if constexpr (uses_source)
    if (!source_address(cpu, op, sizeof(T), from) || !load(cpu, op, from, a)) return false;
  if constexpr (writes)
    if (!destination_address(cpu, op, sizeof(T), AccessKind::Write, to) || !store(cpu, op, to, a))
      return false;
  if constexpr (string == String::Scas)
    if (!destination_address(cpu, op, sizeof(T), AccessKind::Read, to) || !load(cpu, op, to, b)) return false;
  if constexpr (string == String::Cmps || string == String::Scas) cpu.flags.subtract(a, b);
  if constexpr (string == String::Lods) set<T>(cpu, kRax, a);
  if constexpr (uses_source) add_to(cpu, kRsi, mask, step);
  if constexpr (uses_destination) add_to(cpu, kRdi, mask, step);
  return true;
}

// A repeated instruction stops before all of its accesses or before none. Otherwise partial steps would be
// counted differently from whole ones.
template <class T, String string>
bool stops_before_any(Cpu& cpu, const Op* op, uint64_t count) {
  if (!cpu.recording || cpu.tap->watches.empty()) return false;
  const uint64_t size = std::min(count, kStep) * sizeof(T);
  const bool down = (cpu.regs.rflags & flag::kDirection) != 0;
  const auto start = [&](uint64_t address) { return down ? address + sizeof(T) - size : address; };
  uint64_t address;
  if constexpr (string != String::Stos && string != String::Scas)
    if (source_address(cpu, op, sizeof(T), address) && watch(cpu, op, start(address), size, false))
      return true;
  if constexpr (string != String::Lods) {
    constexpr bool writes = string == String::Movs || string == String::Stos;
    if (destination_address(cpu, op, sizeof(T), writes ? AccessKind::Write : AccessKind::Read, address) &&
        watch(cpu, op, start(address), size, writes))
      return true;
  }
  return false;
}

bool can_do_many(const Cpu& cpu, const Op* op) {
  return cpu.mode.is_long() && !(op->bits & Op::kAddress32) && !(cpu.regs.rflags & flag::kDirection) &&
         !cpu.aligned_only;
}

// Executes as many iterations at once as both pages allow. Returns 0 if one must be executed the slow way.
template <class T, String string>
uint64_t many(Cpu& cpu, const Op* op, uint64_t count) {
  if (!can_do_many(cpu, op)) return 0;
  Tlb& tlb = cpu.tlbs[cpu.cpl == 3];
  const uint64_t to = cpu.gpr(kRdi);
  count = std::min(count, ((to | ~kPageMask) + 1 - to) / sizeof(T));
  const TlbEntry& target = tlb.at(to);
  if (target.write != (to & kPageMask)) return 0;
  uint8_t* out = reinterpret_cast<uint8_t*>(to + target.addend);
  if constexpr (string == String::Stos) {
    const T value = get<T>(cpu, kRax);
    for (uint64_t i = 0; i < count; ++i) std::memcpy(out + i * sizeof(T), &value, sizeof(T));
  } else {
    const uint64_t from = cpu.gpr(kRsi) + cpu.segment_base[op->segment];
    count = std::min(count, ((from | ~kPageMask) + 1 - from) / sizeof(T));
    const TlbEntry& source = tlb.at(from);
    if (source.read != (from & kPageMask)) return 0;
    const uint8_t* in = reinterpret_cast<const uint8_t*>(from + source.addend);
    // An overlapping forward copy repeats a pattern, so copy element by element.
    if (in < out && out < in + count * sizeof(T))
      for (uint64_t i = 0; i < count; ++i) std::memmove(out + i * sizeof(T), in + i * sizeof(T), sizeof(T));
    else
      std::memmove(out, in, count * sizeof(T));
    cpu.gpr(kRsi) += count * sizeof(T);
  }
  cpu.gpr(kRdi) += count * sizeof(T);
  return count;
}

template <class T, String string>
const Op* once(Cpu& cpu, const Op* op) {
  if (!one<T, string>(cpu, op)) return stop(cpu, op);
  return leave(cpu, next_rip(cpu, op));
}

template <class T, String string>
const Op* repeat_step(Cpu& cpu, const Op* op) {
  const uint64_t mask = address_mask(op);
  constexpr bool compares = string == String::Cmps || string == String::Scas;
  const LazyFlags before = cpu.flags;  // comparisons set no flags before the end
  uint64_t budget = (cpu.regs.rflags & flag::kTrap) ? 1 : kStep;
  while (true) {
    const uint64_t count = cpu.gpr(kRcx) & mask;
    if (count == 0) return leave(cpu, next_rip(cpu, op));
    if (budget == 0) {
      if constexpr (compares) cpu.flags = before;
      return leave(cpu, cpu.gpr(kRip) + op->offset);  // the same instruction again
    }
    if constexpr (string == String::Movs || string == String::Stos) {
      if (const uint64_t did = many<T, string>(cpu, op, std::min(count, budget)); did != 0) {
        add_to(cpu, kRcx, mask, -did);
        budget -= did;
        continue;
      }
    }
    if (!one<T, string>(cpu, op)) {
      if constexpr (compares) cpu.flags = before;
      return stop(cpu, op);
    }
    add_to(cpu, kRcx, mask, ~uint64_t{0});
    --budget;
    if constexpr (compares)
      if (cpu.flags.zero() != ((op->bits & Op::kRep) != 0)) return leave(cpu, next_rip(cpu, op));
  }
}

// For an observed CPU. Moves and fills are recorded as runs of bytes, however they were executed: the bytes
// of one page are one access. Every element is stored once, so the bytes that were read equal those at the
// destination.
template <class T, String string>
const Op* observed_step(Cpu& cpu, const Op* op) {
  const uint64_t mask = address_mask(op), count = cpu.gpr(kRcx) & mask;
  if (count != 0 && stops_before_any<T, string>(cpu, op, count)) return stop(cpu, op);
  constexpr bool in_runs = string == String::Movs || string == String::Stos;
  cpu.watches_off = true;
  const Op* result = nullptr;
  if (in_runs && can_do_many(cpu, op)) {
    const uint64_t to = cpu.gpr(kRdi), from = cpu.gpr(kRsi) + cpu.segment_base[op->segment];
    const uint64_t start = cpu.gpr(kRip);  // start of the block, from which records compute their pc
    cpu.recording = false;
    result = repeat_step<T, string>(cpu, op);
    cpu.recording = true;
    const uint64_t size = (count - (cpu.gpr(kRcx) & mask)) * sizeof(T);
    const uint64_t end = std::exchange(cpu.gpr(kRip), start);
    if (string == String::Movs) record_run(cpu, op, from, to, size, false);
    record_run(cpu, op, to, to, size, true);
    cpu.gpr(kRip) = end;
  } else {
    result = repeat_step<T, string>(cpu, op);
  }
  cpu.watches_off = false;
  return result;
}

template <class T, String string>
const Op* repeated(Cpu& cpu, const Op* op) {
  const uint64_t mask = address_mask(op);
  if (mask == 0xffffffff && cpu.mode.is_long()) {
    // Upper halves are cleared even if nothing else happens.
    cpu.gpr(kRcx) &= mask;
    if constexpr (string == String::Movs || string == String::Stos) cpu.gpr(kRdi) &= mask;
    if constexpr (string == String::Movs) cpu.gpr(kRsi) &= mask;
  }
  return cpu.recording ? observed_step<T, string>(cpu, op) : repeat_step<T, string>(cpu, op);
}

template <String string>
Handler select_one(Instruction& in, unsigned size) {
  const bool repeats = in.has_rep() || in.has_repne();
  in.ends_block = true;
  in.stands_alone = repeats;  // the length of a step must not depend on what ran before it
  return by_size(size,
                 [&]<class T>(T) -> Handler { return repeats ? repeated<T, string> : once<T, string>; });
}

}  // namespace

Handler select_string(Instruction& in, Op&) {
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_MOVSB:
      return select_one<String::Movs>(in, 1);
    case ZYDIS_MNEMONIC_MOVSW:
      return select_one<String::Movs>(in, 2);
    case ZYDIS_MNEMONIC_MOVSD:
      return in.info.opcode == 0xa5 && in.info.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT
                 ? select_one<String::Movs>(in, 4)
                 : nullptr;
    case ZYDIS_MNEMONIC_MOVSQ:
      return select_one<String::Movs>(in, 8);
    case ZYDIS_MNEMONIC_STOSB:
      return select_one<String::Stos>(in, 1);
    case ZYDIS_MNEMONIC_STOSW:
      return select_one<String::Stos>(in, 2);
    case ZYDIS_MNEMONIC_STOSD:
      return select_one<String::Stos>(in, 4);
    case ZYDIS_MNEMONIC_STOSQ:
      return select_one<String::Stos>(in, 8);
    case ZYDIS_MNEMONIC_LODSB:
      return select_one<String::Lods>(in, 1);
    case ZYDIS_MNEMONIC_LODSW:
      return select_one<String::Lods>(in, 2);
    case ZYDIS_MNEMONIC_LODSD:
      return select_one<String::Lods>(in, 4);
    case ZYDIS_MNEMONIC_LODSQ:
      return select_one<String::Lods>(in, 8);
    case ZYDIS_MNEMONIC_CMPSB:
      return select_one<String::Cmps>(in, 1);
    case ZYDIS_MNEMONIC_CMPSW:
      return select_one<String::Cmps>(in, 2);
    case ZYDIS_MNEMONIC_CMPSD:
      return in.info.opcode == 0xa7 && in.info.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT
                 ? select_one<String::Cmps>(in, 4)
                 : nullptr;
    case ZYDIS_MNEMONIC_CMPSQ:
      return select_one<String::Cmps>(in, 8);
    case ZYDIS_MNEMONIC_SCASB:
      return select_one<String::Scas>(in, 1);
    case ZYDIS_MNEMONIC_SCASW:
      return select_one<String::Scas>(in, 2);
    case ZYDIS_MNEMONIC_SCASD:
      return select_one<String::Scas>(in, 4);
    case ZYDIS_MNEMONIC_SCASQ:
      return select_one<String::Scas>(in, 8);
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
