// Building blocks of handlers: the register file, memory operands, continuing, and stopping.
//
// A handler is a free function that executes one instruction and continues with NEXT. In optimised builds
// NEXT is a jump to the next handler, without returning to a loop. In builds without optimisation, handlers
// return the next op to a loop, so that the stack does not grow.
#pragma once

#include <cstring>

#include "vm/cpu/cpu.h"
#include "vm/cpu/memory/mmu.h"

#if defined(__OPTIMIZE__) && !defined(SLALOM_SANITIZED) && !defined(SLALOM_NO_CHAINING)
#define SLALOM_CHAINING 1
#else
#define SLALOM_CHAINING 0
#endif

// g++ turns every call at the end of a handler into a jump. clang needs an attribute if the address of a
// local variable was taken.
#if SLALOM_CHAINING && defined(__clang__)
#define SLALOM_JUMP [[clang::musttail]]
#else
#define SLALOM_JUMP
#endif

namespace slalom::vm {

inline const Op* go_on(Cpu& cpu, const Op* op) {
#if SLALOM_CHAINING
  SLALOM_JUMP return op->handler(cpu, op);
#else
  (void)cpu;
  return op;
#endif
}
#define NEXT SLALOM_JUMP return ::slalom::vm::go_on(cpu, op + 1)

// The op could not be completed: it faults, or must run in another way.
inline const Op* stop(Cpu& cpu, const Op* op) {
  cpu.stopped_at = op;
  return nullptr;
}

inline const Op* raise(Cpu& cpu, const Op* op, Vector vector) {
  cpu.raise(vector);
  return stop(cpu, op);
}
inline const Op* raise(Cpu& cpu, const Op* op, Vector vector, uint32_t code) {
  cpu.raise(vector, code);
  return stop(cpu, op);
}

// The CPU's turn ends behind `op`, inside its block.
inline const Op* end_turn(Cpu& cpu, const Op* op) {
  cpu.leave = Leave::Turn;
  return stop(cpu, op + 1);
}

// Ends a block. Execution continues at rip.
inline const Op* leave(Cpu& cpu, uint64_t rip) {
  cpu.regs.gpr[kRip] = rip;
  cpu.leave = Leave::Block;
  cpu.link = nullptr;
  return nullptr;
}
// The same, after something that may have made an interrupt deliverable.
inline const Op* leave_for_interrupts(Cpu& cpu, uint64_t rip) {
  cpu.window = true;
  return leave(cpu, rip);
}

inline const Op* enter(Cpu& cpu, Block* block) {
  cpu.block = block;
  cpu.left -= block->count;
  return go_on(cpu, block->ops);
}

// Continues at rip, in whatever page that is.
inline const Op* jump_to(Cpu& cpu, uint64_t rip) {
  const JumpCache::Entry& entry = cpu.jumps->at(rip);
  if (__builtin_expect(entry.tag == (rip ^ cpu.jumps->salt) && cpu.left >= entry.block->count, 1)) {
    cpu.regs.gpr[kRip] = rip;
    return enter(cpu, entry.block);
  }
  return leave(cpu, rip);
}

// The same for a block `from` whose `link` does not lead to rip yet. Sets the link if possible.
[[gnu::noinline]] const Op* jump_and_link(Cpu& cpu, uint64_t rip, Block& from, Block*& link,
                                          uint64_t& link_rip);

// The last op of the running block continues at rip, which may be in another page.
inline const Op* jump_far(Cpu& cpu, uint64_t rip) {
  Block& from = *cpu.block;
  if (__builtin_expect(
          from.taken_rip == rip && from.generation == cpu.jumps->generation && cpu.left >= from.taken->count,
          1)) {
    cpu.regs.gpr[kRip] = rip;
    return enter(cpu, from.taken);
  }
  SLALOM_JUMP return jump_and_link(cpu, rip, from, from.taken, from.taken_rip);
}

// The running block calls a function that will return to `rip`.
inline void expect_return(Cpu& cpu, uint64_t rip) {
  Block& from = *cpu.block;
  if (from.fallthrough_rip != rip) {
    from.fallthrough_rip = rip;
    from.fallthrough = nullptr;
  }
  cpu.returns[cpu.return_count++ % Cpu::kReturns] = &from;
}

inline const Op* return_to(Cpu& cpu, uint64_t rip) {
  Block* const caller = cpu.returns[--cpu.return_count % Cpu::kReturns];
  if (__builtin_expect(caller == nullptr || caller->fallthrough_rip != rip, 0)) return jump_to(cpu, rip);
  if (__builtin_expect(caller->generation == cpu.jumps->generation && caller->fallthrough != nullptr &&
                           cpu.left >= caller->fallthrough->count,
                       1)) {
    cpu.regs.gpr[kRip] = rip;
    return enter(cpu, caller->fallthrough);
  }
  SLALOM_JUMP return jump_and_link(cpu, rip, *caller, caller->fallthrough, caller->fallthrough_rip);
}

// Continues within the same page, through `link` if it is set.
inline const Op* jump_near(Cpu& cpu, uint64_t rip, Block*& link) {
  Block* block = link;
  cpu.regs.gpr[kRip] = rip;
  if (__builtin_expect(block != nullptr && cpu.left >= block->count, 1)) return enter(cpu, block);
  cpu.leave = Leave::Block;
  cpu.link = &link;
  return nullptr;
}

inline uint64_t next_rip(const Cpu& cpu, const Op* op) {
  return cpu.regs.gpr[kRip] + op->end();
}

// --- registers ---

template <class T>
inline T get(const Cpu& cpu, unsigned reg) {
  if constexpr (sizeof(T) == 1)
    return reinterpret_cast<const uint8_t*>(cpu.regs.gpr.data())[reg];
  else
    return static_cast<T>(cpu.regs.gpr[reg]);
}

template <class T>
inline void set(Cpu& cpu, unsigned reg, T value) {
  if constexpr (sizeof(T) == 1)
    reinterpret_cast<uint8_t*>(cpu.regs.gpr.data())[reg] = value;
  else if constexpr (sizeof(T) == 2)
    std::memcpy(&cpu.regs.gpr[reg], &value, 2);
  else
    cpu.regs.gpr[reg] = value;  // 32-bit results clear the upper half
}

// --- memory ---

inline uint64_t offset_of(const Cpu& cpu, const Op* op) {
  return cpu.regs.gpr[op->base] + (cpu.regs.gpr[op->index] << op->scale) +
         static_cast<uint64_t>(int64_t{op->displacement});
}

// Computes the linear address of an op's memory operand. If it returns false, the handler must stop().
template <AccessKind kind>
inline bool address_of(Cpu& cpu, const Op* op, unsigned size, uint64_t& address) {
  const uint64_t offset = offset_of(cpu, op);
  if (__builtin_expect(op->segment < kLegacySegments, 1)) {
    address = offset + cpu.segment_base[op->segment];
    return true;
  }
  if (!legacy_address(cpu, op, size, kind, offset)) return false;
  address = cpu.linear;
  return true;
}

static_assert(sizeof(Cpu::buffer) == 16);

template <class T>
inline bool load(Cpu& cpu, const Op* op, uint64_t address, T& value) {
  const TlbEntry& entry = cpu.tlb[Tlb::index(address)];
  if (__builtin_expect(((address + sizeof(T) - 1) & kPageMask) == entry.read, 1)) {
    std::memcpy(&value, reinterpret_cast<const void*>(address + entry.addend), sizeof(T));
    return true;
  }
  if (!load_missed<sizeof(T)>(cpu, op, address)) return false;
  std::memcpy(&value, cpu.buffer.data(), sizeof(T));
  return true;
}

template <class T>
inline bool store(Cpu& cpu, const Op* op, uint64_t address, T value) {
  const TlbEntry& entry = cpu.tlb[Tlb::index(address)];
  if (__builtin_expect(((address + sizeof(T) - 1) & kPageMask) == entry.write, 1)) {
    std::memcpy(reinterpret_cast<void*>(address + entry.addend), &value, sizeof(T));
    return true;
  }
  std::memcpy(cpu.buffer.data(), &value, sizeof(T));
  return store_missed<sizeof(T)>(cpu, op, address);
}

// The first half of a read-modify-write. It faults as a write would, so the store() afterwards cannot fail.
template <class T>
inline bool load_for_write(Cpu& cpu, const Op* op, uint64_t address, T& value) {
  const TlbEntry& entry = cpu.tlb[Tlb::index(address)];
  if (__builtin_expect(((address + sizeof(T) - 1) & kPageMask) == entry.write, 1)) {
    std::memcpy(&value, reinterpret_cast<const void*>(address + entry.addend), sizeof(T));
    return true;
  }
  if (!load_for_write_missed<sizeof(T)>(cpu, op, address)) return false;
  std::memcpy(&value, cpu.buffer.data(), sizeof(T));
  return true;
}

// Accesses to an op's memory operand.
template <class T>
inline bool load_operand(Cpu& cpu, const Op* op, T& value) {
  uint64_t address;
  return address_of<AccessKind::Read>(cpu, op, sizeof(T), address) && load(cpu, op, address, value);
}
template <class T>
inline bool store_operand(Cpu& cpu, const Op* op, T value) {
  uint64_t address;
  return address_of<AccessKind::Write>(cpu, op, sizeof(T), address) && store(cpu, op, address, value);
}

// The kind of the second operand.
enum class Source : uint8_t { Register, Memory, Immediate };

template <class T, Source source>
inline bool load_source(Cpu& cpu, const Op* op, T& value) {
  if constexpr (source == Source::Register) value = get<T>(cpu, op->src);
  if constexpr (source == Source::Immediate) value = static_cast<T>(op->immediate);
  if constexpr (source == Source::Memory) return load_operand(cpu, op, value);
  return true;
}

}  // namespace slalom::vm
