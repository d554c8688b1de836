#include "vm/cpu/task.h"

#include <array>
#include <cstring>

#include "vm/cpu/handlers/integer/stack.h"
#include "vm/cpu/memory/mmu.h"

namespace slalom::vm {
namespace {

// The layout of a task state segment in memory, 32-bit or 16-bit.
struct Layout {
  unsigned width;  // of registers and of the instruction pointer
  unsigned size;   // of the whole segment
  unsigned ip, flags, registers, segments, segment_count, segment_step, ldt;
};
constexpr Layout kWide{4, 104, 0x20, 0x24, 0x28, 0x48, 6, 4, 0x60};
constexpr Layout kNarrow{2, 44, 0x0e, 0x10, 0x12, 0x22, 4, 2, 0x2a};
constexpr unsigned kPageDirectory = 0x1c, kDebugTrap = 0x64;
// Segment registers and general registers are stored in the order of their numbers.

const Layout& layout_of(const Segment& task) {
  return (task.type() & 8) != 0 ? kWide : kNarrow;
}

struct Image {
  std::array<uint8_t, 104> bytes{};

  uint32_t get(unsigned offset, unsigned width) const {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + offset, width);
    return value;
  }
  void set(unsigned offset, unsigned width, uint64_t value) {
    std::memcpy(bytes.data() + offset, &value, width);
  }
};

void save(Cpu& cpu, const Layout& layout, uint64_t rip, uint64_t flags, Image& image) {
  image.set(layout.ip, layout.width, rip);
  image.set(layout.flags, layout.width, flags);
  for (unsigned i = 0; i < 8; ++i) image.set(layout.registers + i * layout.width, layout.width, cpu.gpr(i));
  for (unsigned i = 0; i < layout.segment_count; ++i)
    image.set(layout.segments + i * layout.segment_step, 2, cpu.regs.segments[i].selector);
}

bool set_busy(Cpu& cpu, uint16_t selector, bool busy) {
  const uint64_t address = cpu.regs.gdtr.base + (selector & 0xfff8u) + 5;
  uint8_t byte;
  if (!load_system(cpu, address, 1, &byte)) return false;
  byte = static_cast<uint8_t>(busy ? byte | 2 : byte & ~2);
  return store_system(cpu, address, 1, &byte);
}

// --- the new task's segments; faults belong to the new task ---

bool load_task_ldt(Cpu& cpu, uint16_t selector) {
  cpu.regs.ldtr = Segment{.selector = selector};
  if ((selector & 0xfffc) == 0) return true;
  Descriptor descriptor;
  if (selector & 4) return cpu.raise(kInvalidTss, selector & 0xfffc);
  if (!read_descriptor(cpu, selector, kInvalidTss, descriptor)) return false;
  if (!descriptor.is_system() || descriptor.type() != 2 || !descriptor.present())
    return cpu.raise(kInvalidTss, selector & 0xfffc);
  cpu.regs.ldtr = descriptor.segment(selector);
  return true;
}

bool load_task_code(Cpu& cpu, uint16_t selector) {
  const uint16_t code = selector & 0xfffc;
  if (code == 0) return cpu.raise(kInvalidTss, 0);
  Descriptor descriptor;
  if (!read_descriptor(cpu, selector, kInvalidTss, descriptor)) return false;
  Segment segment = descriptor.segment(selector);
  const unsigned privilege = selector & 3;
  if (!segment.is_code() || (segment.conforming() ? segment.dpl() > privilege : segment.dpl() != privilege))
    return cpu.raise(kInvalidTss, code);
  if (!segment.present()) return cpu.raise(kNotPresent, code);
  if (!mark_accessed(cpu, descriptor)) return false;
  segment.attributes |= 1;
  set_code_segment(cpu, segment, privilege);
  return true;
}

bool load_task_data(Cpu& cpu, SegmentName name, uint16_t selector) {
  const uint16_t code = selector & 0xfffc;
  if (code == 0) return true;
  Descriptor descriptor;
  if (!read_descriptor(cpu, selector, kInvalidTss, descriptor)) return false;
  Segment segment = descriptor.segment(selector);
  if (segment.is_system() || !segment.readable() ||
      (!segment.conforming() && (segment.dpl() < cpu.cpl || segment.dpl() < (selector & 3u))))
    return cpu.raise(kInvalidTss, code);
  if (!segment.present()) return cpu.raise(kNotPresent, code);
  if (!mark_accessed(cpu, descriptor)) return false;
  segment.attributes |= 1;
  set_segment(cpu, name, segment);
  return true;
}

bool load_segments(Cpu& cpu, const std::array<uint16_t, 6>& selectors, uint16_t ldt) {
  // Until a segment is loaded, only its selector is set.
  for (unsigned i = 0; i < 6; ++i)
    set_segment(cpu, static_cast<SegmentName>(i), Segment{.selector = selectors[i]});
  cpu.set_cpl(selectors[kCs] & 3);
  if (!load_task_ldt(cpu, ldt)) return false;
  if (cpu.vm86()) {
    cpu.set_cpl(3);
    for (unsigned i = 0; i < 6; ++i) {
      Segment segment = real_segment(selectors[i], false);
      segment.attributes = 0xf3;
      set_segment(cpu, static_cast<SegmentName>(i), segment);
    }
    return true;
  }
  if (!load_task_code(cpu, selectors[kCs])) return false;
  Segment stack;
  if (!load_stack_segment(cpu, selectors[kSs], cpu.cpl, kInvalidTss, stack)) return false;
  set_segment(cpu, kSs, stack);
  for (SegmentName name : {kEs, kDs, kFs, kGs})
    if (!load_task_data(cpu, name, selectors[name])) return false;
  return true;
}

bool push_error_code(Cpu& cpu, unsigned width, uint32_t code) {
  static const Op none{.handler = nullptr, .base = kZero, .index = kZero};
  Stack stack(cpu);
  if (!stack.push(&none, width, code)) return false;
  stack.commit();
  return true;
}

// Switches from the running task to the one of `target`, which is known to be present and correctly busy or
// not.
bool switch_task(Cpu& cpu, const Descriptor& target, uint16_t selector, TaskEntry entry, bool has_code,
                 uint32_t code, uint64_t return_rip) {
  Segment task = target.segment(selector);
  const Layout& to = layout_of(task);
  if (task.limit < to.size - 1) return cpu.raise(kInvalidTss, selector & 0xfffc);
  const Segment old = cpu.regs.tr;
  const Layout& from = layout_of(old);
  Image saved, loaded;
  if (!load_system(cpu, task.base, to.size, loaded.bytes.data())) return false;
  if (!load_system(cpu, old.base, from.size, saved.bytes.data())) return false;
  if (to.width == 4 && (loaded.get(kDebugTrap, 2) & 1)) {
    cpu.unknown = "a task whose state asks for a debug trap";
    cpu.leave = Leave::Unknown;
    return false;
  }
  const bool nests = entry == TaskEntry::Call || entry == TaskEntry::Interrupt;
  const uint64_t flags = cpu.rflags() & ~(entry == TaskEntry::Return ? flag::kNested : 0);
  save(cpu, from, return_rip, flags, saved);
  if (!store_system(cpu, old.base, from.size, saved.bytes.data())) return false;
  if (nests && !store_system(cpu, task.base, 2, &old.selector)) return false;
  if (!nests && !set_busy(cpu, old.selector, false)) return false;
  if (entry != TaskEntry::Return && !set_busy(cpu, selector, true)) return false;

  // From here on the new task runs.
  cpu.switched_task = true;
  task.attributes |= 2;
  cpu.regs.tr = task;
  cpu.regs.cr0 |= cr0::kTs;
  uint64_t new_flags = loaded.get(to.flags, to.width) & 0x3f7fd5;
  if (to.width == 2) new_flags &= 0xffff;
  if (nests) new_flags |= flag::kNested;
  for (unsigned i = 0; i < 8; ++i) cpu.gpr(i) = loaded.get(to.registers + i * to.width, to.width);
  const uint64_t rip = loaded.get(to.ip, to.width);
  cpu.gpr(kRip) = rip;
  cpu.set_rflags(new_flags);
  if (to.width == 4 && (cpu.regs.cr0 & cr0::kPg) && !write_cr(cpu, 3, loaded.get(kPageDirectory, 4)))
    return false;
  std::array<uint16_t, 6> selectors{};
  for (unsigned i = 0; i < to.segment_count; ++i)
    selectors[i] = static_cast<uint16_t>(loaded.get(to.segments + i * to.segment_step, 2));
  if (!load_segments(cpu, selectors, static_cast<uint16_t>(loaded.get(to.ldt, 2)))) return false;
  if (has_code && !push_error_code(cpu, to.width, code)) return false;
  return rip <= cpu.regs.segments[kCs].limit || cpu.raise(kProtection, 0);
}

// Finds the task state segment of a task gate's selector.
bool find_task(Cpu& cpu, uint16_t selector, unsigned external, Descriptor& out) {
  const uint32_t code = (selector & 0xfffcu) | external;
  if ((selector & 4) || (selector & 0xfffc) == 0) return cpu.raise(kProtection, code);
  if (!read_descriptor(cpu, selector, kProtection, out)) {
    if (cpu.fault.vector == kProtection) cpu.fault.code |= external;
    return false;
  }
  if (!out.is_system() || (out.type() != 1 && out.type() != 9)) return cpu.raise(kProtection, code);
  return out.present() || cpu.raise(kNotPresent, code);
}

}  // namespace

bool transfer_to_task(Cpu& cpu, Descriptor& target, uint16_t selector, TaskEntry entry, uint64_t return_rip) {
  const uint16_t code = selector & 0xfffc;
  if (target.dpl() < cpu.cpl || target.dpl() < (selector & 3u)) return cpu.raise(kProtection, code);
  if (target.type() == 5) {
    if (!target.present()) return cpu.raise(kNotPresent, code);
    const uint16_t task = target.gate_selector();
    Descriptor descriptor;
    return find_task(cpu, task, 0, descriptor) &&
           switch_task(cpu, descriptor, task, entry, false, 0, return_rip);
  }
  if (selector & 4) return cpu.raise(kProtection, code);
  if (!target.present()) return cpu.raise(kNotPresent, code);
  return switch_task(cpu, target, selector, entry, false, 0, return_rip);
}

bool interrupt_to_task(Cpu& cpu, uint16_t selector, unsigned external, bool has_code, uint32_t code,
                       uint64_t return_rip) {
  Descriptor descriptor;
  return find_task(cpu, selector, external, descriptor) &&
         switch_task(cpu, descriptor, selector, TaskEntry::Interrupt, has_code, code, return_rip);
}

bool return_to_task(Cpu& cpu, uint64_t return_rip) {
  uint16_t selector;
  if (!load_system(cpu, cpu.regs.tr.base, 2, &selector)) return false;
  const uint16_t code = selector & 0xfffc;
  if ((selector & 4) || code == 0) return cpu.raise(kInvalidTss, code);
  Descriptor descriptor;
  if (!read_descriptor(cpu, selector, kInvalidTss, descriptor)) return false;
  if (!descriptor.is_system() || (descriptor.type() != 3 && descriptor.type() != 11))
    return cpu.raise(kInvalidTss, code);
  if (!descriptor.present()) return cpu.raise(kNotPresent, code);
  return switch_task(cpu, descriptor, selector, TaskEntry::Return, false, 0, return_rip);
}

}  // namespace slalom::vm
