#include "vm/cpu/observe/hooks.h"

#include <utility>

#include "vm/cpu/handler.h"
#include "vm/cpu/memory/record.h"

namespace slalom::vm {
namespace {

// Runs after a call or return: adds an entry to the batch, and notices a change of stacks.
void arrive(Cpu& cpu, const Op* op) {
  Tap& tap = *cpu.tap;
  const uint64_t stack = cpu.gpr(kRsp);
  const uint8_t transfer = std::exchange(cpu.transfer, uint8_t{0});
  if (cpu.cpl == 0) {
    if (cpu.last_stack != 0 && !tap.filter.stacks.are_one(stack, cpu.last_stack))
      tap.event(
          cpu, {.kind = CpuEvent::Kind::Stack, .pc = cpu.gpr(kRip), .number = cpu.last_stack, .value = stack},
          cpu.executed_before(op));
    cpu.last_stack = stack;
  }
  if (!tap.filter.calls) return;
  const uint64_t step = tap.base_step + cpu.executed_before(op) - 1;  // the previous instruction made it
  if (tap.next == tap.end || tap.owner != &cpu || step - tap.first_step > 0xffff) tap.make_room(cpu, step);
  *tap.next++ = {.pc_bits = cpu.transfer_from,
                 .op_bits = transfer,
                 .modify_bits = 0,
                 .address_bits = cpu.gpr(kRip),
                 .retired = step - tap.first_step,
                 .value = cpu.gpr(kRsp),
                 .physical = 0,
                 .size = 0,
                 .ring = cpu.cpl,
                 .wrote = 0,
                 .unordered = 0,
                 .unused = 0};
}

[[gnu::noinline]] const Op* enter_block(Cpu& cpu, const Op* op) {
  Tap& tap = *cpu.tap;
  const uint64_t rip = cpu.gpr(kRip);
  if (tap.filter.edges) {
    const uint64_t from = std::exchange(cpu.came_from, rip);
    const Block::Edge edge{from, rip, tap.coverage.round()};
    if (from != 0 && cpu.block->edge() != edge) {
      cpu.block->edge() = edge;
      tap.coverage.add(from, rip);
    }
  }
  const uint8_t transfer = cpu.transfer;
  if (transfer != 0) arrive(cpu, op);
  const bool returned = transfer == static_cast<uint8_t>(OpKind::Return);
  if (tap.functions.may_begin(rip) || (returned && tap.functions.may_end(cpu.gpr(kRsp))))
    tap.functions.at_block(cpu, tap, rip, transfer, cpu.executed_before(op));
  NEXT;
}

// Most blocks are reached by a jump and begin no function.
const Op* at_block(Cpu& cpu, const Op* op) {
  const Tap& tap = *cpu.tap;
  // Prefetch the next block: the code is larger than the host's caches.
  const Block& block = *cpu.block;
  const auto fetch = [&](const Block* next) {
    // Prefetching a null pointer would be slow.
    if (next == nullptr) next = &block;
    __builtin_prefetch(next);
    __builtin_prefetch(next->ops);
  };
  fetch(block.taken);
  fetch(block.fallthrough);
  cpu.check_stack();
  if (tap.filter.edges || cpu.transfer != 0 || tap.functions.may_begin(cpu.gpr(kRip)))
    SLALOM_JUMP return enter_block(cpu, op);
  NEXT;
}

template <OpKind kind>
const Op* at_transfer(Cpu& cpu, const Op* op) {
  cpu.transfer = static_cast<uint8_t>(kind);
  cpu.transfer_from = cpu.gpr(kRip) + op->offset;
  NEXT;
}

// Returns true if the instruction conflicts with a pending access of another context, or if an interrupt may
// arrive here. Otherwise records the instruction's access in cpu.passed.
bool conflicts_with_pending(Cpu& cpu, const Op* op) {
  const PendingAccesses& pending = *cpu.pending;
  if (cpu.pending_changed || (pending.stop_if_interruptible && (cpu.regs.rflags & flag::kInterrupt) != 0))
    return true;
  const auto touch = static_cast<OperandUse>(op->extra);
  if (touch == OperandUse::Somewhere) return true;
  uint64_t address = offset_of(cpu, op);
  if (op->segment < kLegacySegments) {
    address += cpu.segment_base[op->segment];
  } else {
    const unsigned segment = op->segment - kLegacySegments;
    if (segment == kFs || segment == kGs) address += cpu.regs.segments[segment].base;
    address = static_cast<uint32_t>(address);
  }
  if (touch != OperandUse::Nothing)
    for (unsigned i = 0; i < pending.count; ++i)
      if (pending.all[i].address == address &&
          (touch == OperandUse::Writes || pending.all[i].touch == OperandUse::Writes))
        return true;
  cpu.passed = {address, touch};
  return false;
}

const Op* at_place(Cpu& cpu, const Op* op) {
  if (cpu.leaves_place && cpu.executed_before(op) == 0) NEXT;
  if (cpu.passes == 0 || (cpu.pending != nullptr && conflicts_with_pending(cpu, op))) {
    cpu.leave = Leave::Place;
    return stop(cpu, op);
  }
  --cpu.passes;
  NEXT;
}

Handler handler_of(Hook hook) {
  switch (hook) {
    case Hook::Block:
      return at_block;
    case Hook::Call:
      return at_transfer<OpKind::Call>;
    case Hook::Return:
      return at_transfer<OpKind::Return>;
    case Hook::Place:
      return at_place;
  }
  return nullptr;
}

}  // namespace

bool is_place(const Block& block, const Op* op) {
  // Hooks come before the op of their instruction, and have its number.
  for (const Op* before = op; before > block.ops && before[-1].number == op->number; --before)
    if (before[-1].handler == at_place) return true;
  return false;
}

Op make_hook(Hook hook, unsigned offset, unsigned number) {
  return {.handler = handler_of(hook),
          .base = kZero,
          .index = kZero,
          .number = static_cast<uint8_t>(number),
          .offset = static_cast<uint16_t>(offset)};
}

Op make_place_hook(const Decoded& one, unsigned offset, unsigned number) {
  Op op = make_hook(Hook::Place, offset, number);
  op.base = one.operand.base;
  op.index = one.operand.index;
  op.scale = one.operand.scale;
  op.segment = one.operand.segment;
  op.displacement = one.operand.displacement;
  op.extra = static_cast<uint8_t>(one.touch);
  return op;
}

}  // namespace slalom::vm
