#include "vm/cpu/descriptor.h"

#include "vm/cpu/memory/mmu.h"
#include "vm/cpu/transfer.h"

namespace slalom::vm {

Segment Descriptor::segment(uint16_t selector) const {
  Segment segment;
  segment.selector = selector;
  segment.attributes = static_cast<uint16_t>(((low >> 40) & 0xff) | ((low >> 44) & 0xf00));
  segment.limit = static_cast<uint32_t>((low & 0xffff) | ((low >> 32) & 0xf0000));
  if (segment.attributes & 0x800) segment.limit = segment.limit << 12 | 0xfff;
  segment.base = ((low >> 16) & 0xffffff) | ((low >> 32) & 0xff000000) | (high << 32);
  return segment;
}

Segment real_segment(uint16_t selector, bool code) {
  return {.selector = selector,
          .attributes = static_cast<uint16_t>(code ? 0x9b : 0x93),
          .limit = 0xffff,
          .base = uint64_t{selector} << 4};
}

bool read_descriptor(Cpu& cpu, uint16_t selector, Vector vector, Descriptor& out) {
  uint64_t base = cpu.regs.gdtr.base;
  uint64_t limit = cpu.regs.gdtr.limit;
  if (selector & 4) {
    if ((cpu.regs.ldtr.selector & ~3) == 0 || !cpu.regs.ldtr.present())
      return cpu.raise(vector, selector & 0xfffc);
    base = cpu.regs.ldtr.base;
    limit = cpu.regs.ldtr.limit;
  }
  if ((selector | 7u) > limit) return cpu.raise(vector, selector & 0xfffc);
  out.address = base + (selector & 0xfff8);
  out.high = 0;
  return load_system(cpu, out.address, 8, &out.low);
}

bool read_system_descriptor(Cpu& cpu, uint16_t selector, Vector vector, Descriptor& out) {
  if (selector & 4) return cpu.raise(vector, selector & 0xfffc);
  if (!read_descriptor(cpu, selector, vector, out)) return false;
  if (!cpu.long_mode()) return true;
  if ((selector | 15u) > cpu.regs.gdtr.limit) return cpu.raise(vector, selector & 0xfffc);
  return load_system(cpu, out.address + 8, 8, &out.high);
}

bool mark_accessed(Cpu& cpu, Descriptor& descriptor) {
  constexpr uint64_t accessed = uint64_t{1} << 40;
  if (descriptor.low & accessed) return true;
  descriptor.low |= accessed;
  const uint8_t byte = static_cast<uint8_t>(descriptor.low >> 40);
  return store_system(cpu, descriptor.address + 5, 1, &byte);
}

void set_segment(Cpu& cpu, SegmentName name, const Segment& value) {
  cpu.regs.segments[name] = value;
  if (name == kFs) cpu.segment_base[kWithFs] = value.base;
  if (name == kGs) cpu.segment_base[kWithGs] = value.base;
  if (name == kSs || name == kCs) cpu.registers_changed();
}

void set_code_segment(Cpu& cpu, const Segment& value, unsigned privilege) {
  cpu.regs.segments[kCs] = value;
  cpu.regs.segments[kCs].selector = static_cast<uint16_t>((value.selector & ~3u) | privilege);
  cpu.set_cpl(privilege);
  cpu.registers_changed();
}

bool load_stack_segment(Cpu& cpu, uint16_t selector, unsigned privilege, Vector vector, Segment& out) {
  const uint16_t code = selector & 0xfffc;
  if (code == 0) return cpu.raise(vector, 0);
  Descriptor descriptor;
  if (!read_descriptor(cpu, selector, vector, descriptor)) return false;
  out = descriptor.segment(selector);
  if ((selector & 3) != privilege || out.dpl() != privilege || !out.writable() || out.is_code())
    return cpu.raise(vector, code);
  if (!out.present()) return cpu.raise(kStackFault, code);
  if (!mark_accessed(cpu, descriptor)) return false;
  out.attributes |= 1;
  return true;
}

bool load_segment(Cpu& cpu, SegmentName name, uint16_t selector) {
  if (!cpu.protected_mode() || cpu.vm86()) {
    // The limit keeps the value that protected mode set; V86 mode sets it.
    Segment segment = cpu.regs.segments[name];
    segment.selector = selector;
    segment.base = uint64_t{selector} << 4;
    if (cpu.vm86()) {
      segment.limit = 0xffff;
      segment.attributes = 0xf3;
    }
    set_segment(cpu, name, segment);
    return true;
  }
  const uint16_t code = selector & 0xfffc;
  if (name == kSs) {
    if (code == 0) {
      if (!cpu.mode.is_long() || cpu.cpl == 3 || (selector & 3) != cpu.cpl) return cpu.raise(kProtection, 0);
      set_segment(cpu, kSs, {.selector = selector, .attributes = static_cast<uint16_t>(cpu.cpl << 5)});
      return true;
    }
    Segment segment;
    if (!load_stack_segment(cpu, selector, cpu.cpl, kProtection, segment)) return false;
    set_segment(cpu, kSs, segment);
    return true;
  }
  if (code == 0) {
    Segment segment;
    segment.selector = selector;
    // In 64-bit code, Intel's and AMD's CPUs keep the base. In other code, both clear it.
    set_segment(cpu, name, segment);
    return true;
  }
  Descriptor descriptor;
  if (!read_descriptor(cpu, selector, kProtection, descriptor)) return false;
  Segment segment = descriptor.segment(selector);
  if (segment.is_system() || !segment.readable()) return cpu.raise(kProtection, code);
  if (!segment.conforming() && (segment.dpl() < cpu.cpl || segment.dpl() < (selector & 3u)))
    return cpu.raise(kProtection, code);
  if (!segment.present()) return cpu.raise(kNotPresent, code);
  if (!mark_accessed(cpu, descriptor)) return false;
  segment.attributes |= 1;
  set_segment(cpu, name, segment);
  return true;
}

namespace {

// In long mode, LDT and task descriptors have sixteen bytes: a 64-bit base, and a second type field that must
// be zero.
bool check_wide_base(Cpu& cpu, const Descriptor& descriptor, uint16_t selector) {
  if (!cpu.long_mode()) return true;
  const bool has_second_type = ((descriptor.high >> 40) & 31) != 0;
  if (has_second_type || !is_canonical(descriptor.segment(selector).base))
    return cpu.raise(kProtection, selector & 0xfffc);
  return true;
}

}  // namespace

bool load_ldt(Cpu& cpu, uint16_t selector) {
  const uint16_t code = selector & 0xfffc;
  if (code == 0) {
    cpu.regs.ldtr = Segment{.selector = selector};
    return true;
  }
  Descriptor descriptor;
  if (!read_system_descriptor(cpu, selector, kProtection, descriptor)) return false;
  if (!descriptor.is_system() || descriptor.type() != 2) return cpu.raise(kProtection, code);
  if (!descriptor.present()) return cpu.raise(kNotPresent, code);
  if (!check_wide_base(cpu, descriptor, selector)) return false;
  cpu.regs.ldtr = descriptor.segment(selector);
  return true;
}

bool load_task(Cpu& cpu, uint16_t selector) {
  const uint16_t code = selector & 0xfffc;
  if (code == 0) return cpu.raise(kProtection, 0);
  Descriptor descriptor;
  if (!read_system_descriptor(cpu, selector, kProtection, descriptor)) return false;
  const unsigned type = descriptor.type();
  if (!descriptor.is_system() || (type != 9 && (type != 1 || cpu.long_mode())))
    return cpu.raise(kProtection, code);
  if (!descriptor.present()) return cpu.raise(kNotPresent, code);
  if (!check_wide_base(cpu, descriptor, selector)) return false;
  descriptor.low |= uint64_t{2} << 40;  // busy
  const uint8_t byte = static_cast<uint8_t>(descriptor.low >> 40);
  if (!store_system(cpu, descriptor.address + 5, 1, &byte)) return false;
  cpu.regs.tr = descriptor.segment(selector);
  return true;
}

}  // namespace slalom::vm
