// The run loop: finds the block at rip, runs it, and handles the reason why it stopped.
#include <algorithm>
#include <cstring>

#include "vm/cpu/blocks.h"
#include "vm/cpu/cpu.h"
#include "vm/cpu/handler.h"
#include "vm/cpu/memory/mmu.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kNoStack = ~uint64_t{0} / 2;  // no address is near it, so that every block checks again

}  // namespace

System::System(Ram& memory, Bus& outside)
    : ram(memory), bus(outside), blocks(std::make_unique<Blocks>(memory.pages())), tables(memory.pages()) {}
System::~System() = default;

void System::forget_jumps() {
  for (const auto& cpu : cpus) {
    for (JumpCache& cache : cpu->jump_caches) cache.forget();
    cpu->link = nullptr;
  }
}

void System::forget_low_jumps() {
  for (const auto& cpu : cpus) {
    for (JumpCache& cache : cpu->jump_caches) cache.forget_low();
    cpu->link = nullptr;
  }
}

Cpu::Cpu(System& all, unsigned number)
    : system(all),
      id(number),
      scratch(
          new std::byte[sizeof(Block) + Block::kRoom * sizeof(Op) + sizeof(Block::Edge) + Block::kMaxOps]) {
  set_cpl(0);
}

void Cpu::set_cpl(unsigned value) {
  cpl = static_cast<uint8_t>(value);
  jumps = &jump_caches[value == 3];
  choose_tlb();
}

void Cpu::choose_tlb() {
  aligned_only = cpl == 3 && (regs.rflags & flag::kAlignment) && (regs.cr0 & cr0::kAm);
  mode.bits &= static_cast<uint8_t>(~CodeMode::kObserved);
  recording = false;
  quiet = 0;
  if (tap != nullptr && tap->filter.observes(cpl)) {
    mode.bits |= CodeMode::kObserved;
    const uint64_t space = tap->filter.address_space;
    recording = (tap->filter.accesses || !tap->watches.empty()) &&
                (space == 0 || space == (regs.cr3 & ~uint64_t{0xfff}));
    if (cpl == 0 && !tap->filter.own_stack) quiet = tap->filter.stacks.size;
  }
  tlb = (aligned_only || recording ? empty_tlb : tlbs[cpl == 3]).entries.data();
  // The next block checks the stack pointer.
  const bool has_quiet = quiet != 0 && recording && tap->watches.empty();
  quiet_first = kNoStack;
  quiet_room = has_quiet ? quiet - 2 * kStackMargin : ~uint64_t{0};
}

void Cpu::change_stack() {
  if (quiet == 0) return;
  const uint64_t stack = gpr(kRsp) & ~(quiet - 1);
  if (stack != quiet_stack) tlbs[kQuietTlb].flush_low();
  quiet_stack = stack;
  const bool is_inside = gpr(kRsp) - stack - kStackMargin < quiet_room;
  quiet_first = is_inside ? stack + kStackMargin : kNoStack;
  tlb = (is_inside ? tlbs[kQuietTlb] : empty_tlb).entries.data();
}

void Cpu::add_quiet(uint64_t address, const TlbEntry& entry) {
  if (quiet_first == kNoStack) return;
  Tlb& quiet_tlb = tlbs[kQuietTlb];
  if (quiet_tlb.low_count == Tlb::kEntries) quiet_tlb.flush_low();
  quiet_tlb.low[quiet_tlb.low_count++] = static_cast<uint16_t>(Tlb::index(address));
  quiet_tlb.any = true;
  quiet_tlb.at(address) = entry;
}

void Cpu::attach(Tap* observer) {
  tap = observer;
  transfer = 0;
  came_from = last_stack = 0;
  at_place = false;
  for (JumpCache& cache : jump_caches) cache.forget();
  choose_tlb();
}

void Cpu::registers_changed() {
  const Segment& code = regs.segments[kCs];
  CodeMode now;
  if (long_mode() && code.is_long()) {
    now.bits = CodeMode::k64;
  } else {
    const bool limited = code.limit < (code.big() ? 0xffffffff : 0xffff);
    now.bits = static_cast<uint8_t>((code.big() ? CodeMode::k32 : CodeMode::k16) |
                                    (regs.segments[kSs].big() ? CodeMode::kBigStack : 0) |
                                    (limited ? CodeMode::kLimited : 0));
  }
  // Jump caches are indexed by offset only, so they must be emptied if the same bytes are decoded in another
  // way, or if offsets mean other bytes.
  const uint64_t base = now.is_long() ? 0 : code.base;
  // Each privilege has its own jump cache, and is observed or not as a whole.
  now.bits |= mode.bits & CodeMode::kObserved;
  if (now != mode || base != code_base) {
    for (JumpCache& cache : jump_caches) cache.forget();
    mode = now;
    code_base = base;
  }
  segment_base = {0, 0, regs.segments[kFs].base, regs.segments[kGs].base};
  choose_tlb();
}

void Cpu::set_rflags(uint64_t value) {
  regs.rflags = value | flag::kFixed;
  flags.set_arithmetic(value);
  choose_tlb();
}

void Cpu::forget_translations() {
  for (Tlb& one : tlbs) one.flush();
  for (JumpCache& cache : jump_caches) cache.forget();
}

bool Cpu::raise(Vector vector) {
  fault = {.vector = vector};
  leave = Leave::Fault;
  return false;
}
bool Cpu::raise(Vector vector, uint32_t code) {
  fault = {.vector = vector, .has_code = true, .code = code};
  leave = Leave::Fault;
  return false;
}
bool Cpu::raise_page_fault(uint64_t address, uint32_t code) {
  fault = {.vector = kPageFault, .has_code = true, .code = code, .address = address};
  leave = Leave::Fault;
  return false;
}

Block* Cpu::fresh_block() {
  forget_translations();
  const uint64_t rip = gpr(kRip);
  if (!mode.is_long() && rip > regs.segments[kCs].limit) {
    raise(kProtection, 0);
    return nullptr;
  }
  const uint64_t linear = mode.is_long() ? rip : static_cast<uint32_t>(regs.segments[kCs].base + rip);
  uint8_t bytes[15];
  Physical start = 0;
  unsigned available = 0;
  while (available < sizeof bytes) {
    uint64_t ram_page, at = linear + available;
    bool no_ram;
    if (!mode.is_long()) at = static_cast<uint32_t>(at);
    const uint8_t* page = fetch_page(*this, at, ram_page, no_ram);
    if (page == nullptr) {
      if (no_ram) {
        unknown = "code outside of RAM";
        leave = Leave::Unknown;
      }
      return nullptr;
    }
    const unsigned offset = at & (kPageSize - 1);
    if (available == 0) start = system.ram.address_of(ram_page) + offset;
    const auto size = std::min<unsigned>(sizeof bytes - available, static_cast<unsigned>(kPageSize) - offset);
    std::memcpy(bytes + available, page + offset, size);
    available += size;
    Block* block = Blocks::decode_one(system, scratch.get(), start, bytes, available, mode);
    if (block != nullptr) return mode.is_long() ? block : within_limit(block);
  }
  return nullptr;
}

Block* Cpu::next_block() {
  if (!system.caching) return fresh_block();
  const uint64_t rip = gpr(kRip);
  const JumpCache::Entry& entry = jumps->at(rip);
  Block* found = entry.tag == (rip ^ jumps->salt) ? entry.block : nullptr;
  Block** const from = link;
  link = nullptr;
  if (found == nullptr) {
    const uint64_t linear = mode.is_long() ? rip : static_cast<uint32_t>(regs.segments[kCs].base + rip);
    if (!mode.is_long() && rip > regs.segments[kCs].limit) {
      raise(kProtection, 0);
      return nullptr;
    }
    uint64_t ram_page;
    bool no_ram;
    const unsigned offset = linear & (kPageSize - 1);
    const uint8_t* page = fetch_page(*this, linear, ram_page, no_ram);
    if (page == nullptr) {
      if (no_ram) {
        unknown = "code outside of RAM";
        leave = Leave::Unknown;
      }
      return nullptr;
    }
    // Code segments that do not start at a page boundary would break "same page, same block".
    found = system.blocks->find(ram_page, offset, mode);
    const Physical start = system.ram.address_of(ram_page) + offset;
    if (found == nullptr && !system.blocks->straddles(start, mode))
      found = system.blocks->decode(system, ram_page, page, offset, mode);
    if (found == nullptr) {
      uint8_t bytes[15];
      const unsigned first = static_cast<unsigned>(kPageSize - offset);
      std::memcpy(bytes, page + offset, first);
      uint64_t second_page;
      uint64_t second = linear + first;
      if (!mode.is_long()) second = static_cast<uint32_t>(second);
      const uint8_t* rest = fetch_page(*this, second, second_page, no_ram);
      if (rest == nullptr) {
        if (no_ram) {
          unknown = "code outside of RAM";
          leave = Leave::Unknown;
        }
        return nullptr;
      }
      std::memcpy(bytes + first, rest, 15 - first);
      // Not put into the jump cache, because its bytes must be compared every time.
      Block* both = system.blocks->straddling(system, start, bytes, 15, mode);
      return mode.is_long() ? both : within_limit(both);
    }
    if (!mode.is_long()) {
      Block* inside = within_limit(found);
      if (inside != found || (mode.bits & CodeMode::kLimited)) return inside;
    }
    jumps->put(rip, found);
  }
  if (from != nullptr) *from = found;
  return found;
}

// Returns the part of a block before the end of the code segment; the rest must fault when it is reached. The
// part is never linked to or kept, since other segments may be longer.
Block* Cpu::within_limit(Block* whole) {
  const uint64_t room = uint64_t{regs.segments[kCs].limit} - gpr(kRip) + 1;
  if (whole->bytes <= room) return whole;
  unsigned count = 0;
  for (const Op* op = whole->ops; count < whole->count && op->end() <= room; ++op)
    if (op->length > 0) ++count;
  if (count > 0) return shortened(*whole, count);
  raise(kProtection, 0);
  return nullptr;
}

Block* Cpu::shortened(const Block& whole, unsigned count) {
  Block* part = reinterpret_cast<Block*>(scratch.get());
  unsigned ops = 0;
  while (whole.ops[ops].number < count) ++ops;
  if (part != &whole) {
    new (part) Block;
    part->address = whole.address;
    part->mode = whole.mode;
    part->modifies = whole.modifies;
    std::memcpy(static_cast<void*>(part->ops), whole.ops, ops * sizeof(Op));
  }
  part->count = static_cast<uint8_t>(count);
  const Op& last = part->ops[ops - 1];
  part->ops[ops] = end_of_block(static_cast<unsigned>(last.end()), count, false);
  return part;
}

Block* Cpu::alone(const Op& op) {
  const Op copy = op;  // `op` may lie in scratch
  const uint8_t* modifies = block->modifies;
  Block* part = new (scratch.get()) Block;
  part->mode = mode;
  part->count = 1;
  if (modifies != nullptr) part->modifies = modifies + copy.number;
  part->ops[0] = copy;
  part->ops[0].number = 0;
  part->ops[1] = end_of_block(static_cast<unsigned>(copy.end()), 1, false);
  return part;
}

void Cpu::deliver_trap() {
  regs.dr[6] |= 0x4000;  // single step
  fault = {.vector = kDebug};
  deliver_fault();
}

bool Cpu::fails_again(uint64_t address) {
  constexpr uint32_t kEnough = 8;  // a lock that another CPU holds is not free after a few more attempts
  regs.failed_exchanges = regs.failed_exchange == address ? regs.failed_exchanges + 1 : 1;
  regs.failed_exchange = address;
  if (regs.failed_exchanges < kEnough) return false;
  regs.failed_exchanges = 0;
  return true;
}

Exit Cpu::run(uint64_t instructions) {
  const bool steps = (regs.rflags & flag::kTrap) != 0, shadow = regs.interrupt_shadow;
  if (shadow || steps) {
    regs.interrupt_shadow = false;
    instructions = instructions == 0 ? 0 : 1;
  }
  slice = left = static_cast<int64_t>(instructions);
  window = paused = ends_turn = stop_behind = watches_off = false;
  happened = 0;
  watched_at = ~uint64_t{0};
  if (recording) choose_tlb();  // depends on the current watches
  // Pass the place or access of the last stop.
  if (instructions > 0) {
    leaves_place = at_place;
    watched_skip = resume_skip;
    moved();
  }
  link = nullptr;
  Exit exit = Exit::Budget;
  while (left > 0) {
    block = nullptr;
    system.free_dropped_blocks();
    leave = Leave::Block;
    Block* next = next_block();
    if (next != nullptr) {
      if (left < next->count) next = shortened(*next, static_cast<unsigned>(left));
    run_block:
      block = next;
      left -= next->count;
      leave = Leave::Block;
      interrupted = step_waits = steps_by_new_flag = switched_task = false;
      const Op* op = next->ops;
#if SLALOM_CHAINING
      op->handler(*this, op);
#else
      while (op != nullptr) op = op->handler(*this, op);
#endif
      if (withheld != 0) {
        left += withheld;
        slice += withheld;
        withheld = 0;
      }
      if (leave != Leave::Block) {
        left += block->count - stopped_at->number;
        if (leave >= Leave::Replay && tap != nullptr) tap->take_back(*this, tap->base_step + executed());
        if (leave == Leave::Replay) {
          watched_at = ~uint64_t{0};
          next = alone(*stopped_at);
          goto run_block;
        }
        if (!switched_task) gpr(kRip) += stopped_at->offset;
        if (leave == Leave::Turn) {
          ends_turn = true;
          leave = Leave::Block;
        }
      }
    }
    if (leave == Leave::Place || leave == Leave::Access) {
      at_place = leave == Leave::Place;
      if (!at_place) resume_skip = hit.ordinal + 1;
      exit = at_place ? Exit::Place : Exit::Access;
      if (executed() == 0) regs.interrupt_shadow = shadow;  // its instruction has not run yet
      break;
    }
    if (leave == Leave::Fault) {
      block = nullptr;
      happened |= kFault;
      deliver_fault();
      --left;  // so that a guest that only faults cannot run forever
      if (regs.activity == Activity::Shutdown) {
        exit = Exit::Shutdown;
        break;
      }
    }
    if (leave == Leave::Unknown) {
      exit = Exit::Unknown;
      break;
    }
    // INT n cancels the pending step.
    const bool traps = steps_by_new_flag ? (regs.rflags & flag::kTrap) != 0 : steps;
    if (traps && leave == Leave::Block && !interrupted && !step_waits) deliver_trap();
    if (stop_behind) {
      exit = Exit::Access;
      break;
    }
    if (regs.activity == Activity::Halted) {
      exit = Exit::Halted;
      break;
    }
    if (happened & stop_on) {
      exit = Exit::Event;
      break;
    }
    if (paused) {
      exit = Exit::Paused;
      break;
    }
    if (ends_turn) {
      exit = Exit::Turn;
      break;
    }
    if (window) {
      window = false;
      if (regs.interrupt_shadow || (regs.rflags & flag::kTrap) ||
          system.bus.attention(id, (regs.rflags & flag::kInterrupt) != 0)) {
        exit = Exit::Window;
        break;
      }
    }
  }
  block = nullptr;
  settle();
  regs.retired += executed();
  return exit;
}

}  // namespace slalom::vm
