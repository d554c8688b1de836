// Control registers, model-specific registers, CPUID, reset.
#include <cstring>

#include "vm/cpu/cpu.h"
#include "vm/cpu/descriptor.h"
#include "vm/cpu/memory/mmu.h"
#include "vm/cpu/transfer.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kCr4Known = cr4::kTsd | cr4::kDe | cr4::kPse | cr4::kPae | cr4::kPge | cr4::kPce |
                               cr4::kOsfxsr | cr4::kOsxmmexcpt | cr4::kMce;
constexpr uint64_t kApicEnabled = 1 << 11;  // of IA32_APIC_BASE
constexpr uint64_t kPhysicalMask = (uint64_t{1} << 40) - 1;

bool write_cr0(Cpu& cpu, uint64_t value) {
  if ((value >> 32) != 0) return cpu.raise(kProtection, 0);
  if ((value & cr0::kPg) && !(value & cr0::kPe)) return cpu.raise(kProtection, 0);
  if ((value & cr0::kNw) && !(value & cr0::kCd)) return cpu.raise(kProtection, 0);
  value |= cr0::kEt;
  const uint64_t old = cpu.regs.cr0;
  const bool paging = (value & cr0::kPg) != 0;
  const bool changes_paging = ((old ^ value) & (cr0::kPg | cr0::kWp | cr0::kPe)) != 0;
  if (changes_paging && paging && !(cpu.regs.efer & efer::kLme) && (cpu.regs.cr4 & cr4::kPae) &&
      !load_pdptes(cpu, cpu.regs.cr3))
    return false;
  if (paging && !(old & cr0::kPg) && (cpu.regs.efer & efer::kLme)) {
    if (!(cpu.regs.cr4 & cr4::kPae) || cpu.regs.segments[kCs].is_long()) return cpu.raise(kProtection, 0);
    cpu.regs.efer |= efer::kLma;
  } else if (!paging && (old & cr0::kPg) && cpu.long_mode()) {
    if (cpu.mode.is_long()) return cpu.raise(kProtection, 0);
    cpu.regs.efer &= ~efer::kLma;
  }
  cpu.regs.cr0 = value;
  if (changes_paging) cpu.forget_translations();
  cpu.registers_changed();
  return true;
}

bool write_cr4(Cpu& cpu, uint64_t value) {
  if (value & ~kCr4Known) return cpu.raise(kProtection, 0);
  if (cpu.long_mode() && !(value & cr4::kPae)) return cpu.raise(kProtection, 0);
  const bool changes_paging = ((cpu.regs.cr4 ^ value) & (cr4::kPae | cr4::kPse | cr4::kPge)) != 0;
  const bool three_levels = (value & cr4::kPae) && !cpu.long_mode() && (cpu.regs.cr0 & cr0::kPg);
  if (changes_paging && three_levels && !load_pdptes(cpu, cpu.regs.cr3)) return false;
  cpu.regs.cr4 = value;
  if (changes_paging) cpu.forget_translations();
  return true;
}

bool write_efer(Cpu& cpu, uint64_t value) {
  if (value & ~(efer::kSce | efer::kLme | efer::kLma | efer::kNxe)) return cpu.raise(kProtection, 0);
  const uint64_t old = cpu.regs.efer;
  if (((old ^ value) & efer::kLme) && (cpu.regs.cr0 & cr0::kPg)) return cpu.raise(kProtection, 0);
  cpu.regs.efer = (value & ~efer::kLma) | (old & efer::kLma);
  if ((old ^ value) & efer::kNxe) cpu.forget_translations();
  return true;
}

bool write_canonical(Cpu& cpu, uint64_t& target, uint64_t value) {
  if (!is_canonical(value)) return cpu.raise(kProtection, 0);
  target = value;
  return true;
}

bool write_segment_base(Cpu& cpu, SegmentName name, uint64_t value) {
  if (!is_canonical(value)) return cpu.raise(kProtection, 0);
  cpu.regs.segments[name].base = value;
  cpu.segment_base[name == kFs ? kWithFs : kWithGs] = value;
  return true;
}

bool valid_pat(uint64_t value) {
  for (int i = 0; i < 8; ++i) {
    const unsigned type = (value >> (8 * i)) & 0xff;
    if (type > 7 || type == 2 || type == 3) return false;
  }
  return true;
}

}  // namespace

bool write_cr(Cpu& cpu, unsigned number, uint64_t value) {
  switch (number) {
    case 0:
      return write_cr0(cpu, value);
    case 2:
      cpu.regs.cr2 = value;
      return true;
    case 3: {
      if (cpu.long_mode() && (value & ~kPhysicalMask) != 0) return cpu.raise(kProtection, 0);
      const uint64_t old = cpu.regs.cr3;
      const bool three_levels =
          (cpu.regs.cr0 & cr0::kPg) && !cpu.long_mode() && (cpu.regs.cr4 & cr4::kPae) != 0;
      if (three_levels && !load_pdptes(cpu, value)) return false;
      cpu.regs.cr3 = value;
      if (old != value || !cpu.long_mode()) address_space_changed(cpu, old);
      if (cpu.tap != nullptr) {
        cpu.choose_tlb();
        cpu.tell({.kind = CpuEvent::Kind::AddressSpace, .pc = cpu.gpr(kRip), .value = value});
      }
      return true;
    }
    case 4:
      return write_cr4(cpu, value);
    case 8:
      if (value > 15) return cpu.raise(kProtection, 0);
      cpu.system.bus.set_task_priority(cpu.id, static_cast<uint8_t>(value << 4));
      return true;
    default:
      return cpu.raise(kInvalidOpcode);
  }
}

bool read_msr(Cpu& cpu, uint32_t number, uint64_t& value) {
  const Registers& r = cpu.regs;
  switch (number) {
    case 0x10:
      value = cpu.system.bus.now() + r.tsc_offset;
      return true;
    case 0x1b:
      value = cpu.system.bus.apic_base(cpu.id);
      return true;
    case 0x174:
      value = r.sysenter_cs;
      return true;
    case 0x175:
      value = r.sysenter_esp;
      return true;
    case 0x176:
      value = r.sysenter_eip;
      return true;
    case 0x277:
      value = r.pat;
      return true;
    case 0xc0000080:
      value = r.efer;
      return true;
    case 0xc0000081:
      value = r.star;
      return true;
    case 0xc0000082:
      value = r.lstar;
      return true;
    case 0xc0000083:
      value = r.cstar;
      return true;
    case 0xc0000084:
      value = r.sfmask;
      return true;
    case 0xc0000100:
      value = r.segments[kFs].base;
      return true;
    case 0xc0000101:
      value = r.segments[kGs].base;
      return true;
    case 0xc0000102:
      value = r.kernel_gs_base;
      return true;
    case 0xc0000103:
      value = r.tsc_aux;
      return true;
    default:
      return cpu.raise(kProtection, 0);  // CPUID does not advertise it
  }
}

bool write_msr(Cpu& cpu, uint32_t number, uint64_t value) {
  Registers& r = cpu.regs;
  switch (number) {
    case 0x10:
      r.tsc_offset = value - cpu.system.bus.now();
      return true;
    case 0x1b:
      return cpu.system.bus.set_apic_base(cpu.id, value) || cpu.raise(kProtection, 0);
    case 0x174:
      r.sysenter_cs = value;
      return true;
    case 0x175:
      return write_canonical(cpu, r.sysenter_esp, value);
    case 0x176:
      return write_canonical(cpu, r.sysenter_eip, value);
    case 0x277:
      if (!valid_pat(value)) return cpu.raise(kProtection, 0);
      r.pat = value;
      return true;
    case 0xc0000080:
      return write_efer(cpu, value);
    case 0xc0000081:
      r.star = value;
      return true;
    case 0xc0000082:
      return write_canonical(cpu, r.lstar, value);
    case 0xc0000083:
      return write_canonical(cpu, r.cstar, value);
    case 0xc0000084:
      r.sfmask = static_cast<uint32_t>(value);
      return true;
    case 0xc0000100:
      return write_segment_base(cpu, kFs, value);
    case 0xc0000101:
      return write_segment_base(cpu, kGs, value);
    case 0xc0000102:
      return write_canonical(cpu, r.kernel_gs_base, value);
    case 0xc0000103:
      r.tsc_aux = static_cast<uint32_t>(value);
      return true;
    default:
      return cpu.raise(kProtection, 0);
  }
}

// Advertises exactly what is implemented: fpu de pse tsc msr pae cx8 apic pge cmov pat mmx fxsr sse sse2;
// syscall nx lm. The vendor is one for which kernels neither probe registers nor work around CPU bugs, but
// which the GNU C library knows. For an unknown vendor the library assumes that the CPU lacks the features it
// was built for.
void cpuid(const Cpu& cpu, uint32_t leaf, uint32_t, uint32_t out[4]) {
  out[0] = out[1] = out[2] = out[3] = 0;
  const auto text = [&](uint32_t& a, uint32_t& b, uint32_t& c, const char* s) {
    std::memcpy(&a, s, 4);
    std::memcpy(&b, s + 4, 4);
    std::memcpy(&c, s + 8, 4);
  };
  constexpr uint32_t kApic = 1 << 9;
  constexpr uint32_t kFeatures = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 8 | kApic |
                                 1 << 13 | 1 << 15 | 1 << 16 | 1 << 23 | 1 << 24 | 1 << 25 | 1 << 26;
  switch (leaf) {
    case 0:
      out[0] = 1;
      text(out[1], out[3], out[2], "  Shanghai  ");
      return;
    case 1:
      out[0] = 0x600;  // family 6
      out[1] = cpu.id << 24 | static_cast<uint32_t>(cpu.system.cpus.size()) << 16;
      out[3] = kFeatures | (cpu.system.cpus.size() > 1 ? 1u << 28 : 0);
      if (!(cpu.system.bus.apic_base(cpu.id) & kApicEnabled)) out[3] &= ~kApic;
      return;
    case 0x80000000:
      out[0] = 0x80000008;
      return;
    case 0x80000001:
      out[3] = 1u << 11 | 1u << 20 | 1u << 29;
      return;
    case 0x80000002:
      std::memcpy(out, "slalom virtual C", 16);
      return;
    case 0x80000003:
      std::memcpy(out, "PU\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
      return;
    case 0x80000008:
      out[0] = 0x3028;
      return;  // 48 bits of virtual addresses, 40 of physical ones
    default:
      return;
  }
}

void Cpu::reset(bool power_on) {
  const uint64_t retired = regs.retired, offset = regs.tsc_offset;
  const Fpu fpu = regs.fpu;
  const auto xmm = regs.xmm;
  const uint32_t mxcsr = regs.mxcsr;
  regs = Registers{};
  last_faults.clear();
  regs.retired = retired;
  regs.tsc_offset = offset;
  if (!power_on) {  // INIT keeps these
    regs.fpu = fpu;
    regs.xmm = xmm;
    regs.mxcsr = mxcsr;
  }
  for (Segment& segment : regs.segments) segment = real_segment(0, false);
  regs.segments[kCs] = {.selector = 0xf000, .attributes = 0x9b, .limit = 0xffff, .base = 0xffff0000};
  regs.ldtr = {.attributes = 0x82, .limit = 0xffff};
  regs.tr = {.attributes = 0x8b, .limit = 0xffff};
  regs.dr[6] = 0xffff0ff0;
  regs.dr[7] = 0x400;
  gpr(kRip) = 0xfff0;
  gpr(kRdx) = 0x600;
  regs.activity = id == 0 ? Activity::Running : Activity::WaitForSipi;
  set_rflags(flag::kFixed);
  set_cpl(0);
  forget_translations();
  registers_changed();
}

void Cpu::start_at(uint8_t page) {
  if (regs.activity != Activity::WaitForSipi) return;
  regs.segments[kCs] = real_segment(static_cast<uint16_t>(page << 8), true);
  gpr(kRip) = 0;
  regs.activity = Activity::Running;
  registers_changed();
}

}  // namespace slalom::vm
