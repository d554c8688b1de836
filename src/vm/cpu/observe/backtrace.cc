#include "vm/cpu/observe/backtrace.h"

#include <Zydis/Zydis.h>

#include "vm/cpu/memory/guest_memory.h"
#include "vm/cpu/memory/mmu.h"

namespace slalom::vm {
namespace {

std::string_view mode_name(const Cpu& cpu) {
  if (cpu.mode.is_long()) return "64-bit code";
  if (!cpu.protected_mode()) return "real mode";
  if (cpu.vm86()) return "virtual 8086 mode";
  return cpu.mode.width() == CodeMode::k32 ? "32-bit code" : "16-bit code";
}

std::string instruction_text(const Cpu& cpu, uint64_t rip, std::span<const uint8_t> bytes) {
  const ZydisMachineMode mode = cpu.mode.is_long()                  ? ZYDIS_MACHINE_MODE_LONG_64
                                : cpu.mode.width() == CodeMode::k32 ? ZYDIS_MACHINE_MODE_LEGACY_32
                                                                    : ZYDIS_MACHINE_MODE_LEGACY_16;
  ZydisDisassembledInstruction text;
  if (!ZYAN_SUCCESS(ZydisDisassembleIntel(mode, rip, bytes.data(), bytes.size(), &text)))
    return "(no instruction)";
  return text.text;
}

}  // namespace

std::string exception_name(uint8_t vector) {
  static constexpr const char* kExceptions[] = {"#DE", "#DB", "NMI", "#BP", "#OF", "#BR", "#UD",
                                                "#NM", "#DF", "",    "#TS", "#NP", "#SS", "#GP",
                                                "#PF", "",    "#MF", "#AC", "#MC", "#XM"};
  const bool known = vector < std::size(kExceptions) && *kExceptions[vector] != 0;
  return known ? kExceptions[vector] : fmt::format("exception {:#x}", vector);
}

std::string describe_shutdown(const Cpu& cpu) {
  std::string out = fmt::format("CPU {} gave up after a triple fault\n", cpu.id);
  for (const RaisedFault& raised : cpu.last_faults) {
    const bool first = &raised == &cpu.last_faults.front();
    out +=
        fmt::format("  {}{}", first ? "" : "while that was delivered: ", exception_name(raised.fault.vector));
    if (raised.fault.has_code) out += fmt::format(" with error code {:#x}", raised.fault.code);
    out += fmt::format(" at rip {:#x}, cr2 {:#x}\n", raised.rip, raised.cr2);
  }
  return out;
}

std::string describe_place(const Cpu& cpu) {
  const Registers& r = cpu.regs;
  const uint64_t rip = r.gpr[kRip];
  const uint64_t linear = cpu.mode.is_long() ? rip : static_cast<uint32_t>(r.segments[kCs].base + rip);
  std::string out = fmt::format("  at {:#x} ({}, ring {}", rip, mode_name(cpu), cpu.cpl);
  std::array<uint8_t, 15> bytes{};
  if (const size_t size = read_memory(cpu, linear, bytes); size != 0) {
    out += fmt::format("): {}\n  bytes", instruction_text(cpu, rip, std::span(bytes).first(size)));
    for (uint8_t byte : std::span(bytes).first(size)) out += fmt::format(" {:02x}", byte);
    out += '\n';
  } else {
    out += "), which cannot be read\n";
  }
  static constexpr const char* kNames[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                           "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  for (unsigned i = 0; i < 16; ++i)
    out += fmt::format("{}{:>3} {:016x}{}", i % 4 == 0 ? "  " : "  ", kNames[i], r.gpr[i],
                       i % 4 == 3 ? "\n" : "");
  out += fmt::format("  cr0 {:x} cr2 {:x} cr3 {:x} cr4 {:x} efer {:x} flags {:x}\n", r.cr0, r.cr2, r.cr3,
                     r.cr4, r.efer, r.rflags);
  // Follows frame pointers, if the code keeps them. Otherwise lists the words on the stack that look like
  // code.
  out += "  stack:";
  uint64_t at = r.gpr[kRsp];
  unsigned shown = 0;
  for (unsigned i = 0; i < 256 && shown < 12; ++i, at += 8) {
    const std::optional<uint64_t> value = read_word(cpu, at);
    if (!value) break;
    Physical physical;
    const bool same_half = (*value >> 47) == (rip >> 47) && *value > 0x1000;
    if (!same_half || !translate_quietly(cpu, *value, physical)) continue;
    if ((*value >> 24) != (rip >> 24)) continue;
    out += fmt::format(" {:#x}", *value);
    ++shown;
  }
  out += '\n';
  return out;
}

}  // namespace slalom::vm
