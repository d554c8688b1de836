// Devices: everything of the PC except CPUs and RAM. The rest of the machine includes only this header.
//
// The CPU loop calls in, out, mmio_read and mmio_write with the exact virtual time of the access, and
// advance() when next_deadline() is reached. Devices do nothing by themselves, and their state does not
// depend on when or how often the loop calls: two runs with the same accesses at the same times have equal
// states. docs/howto-device.md explains how to add a device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vm/devices/interrupts/interrupts.h"
#include "vm/devices/keyboard.h"
#include "vm/devices/pit.h"
#include "vm/devices/rtc.h"
#include "vm/devices/system_ports.h"
#include "vm/devices/uart.h"
#include "vm/devices/vga.h"
#include "vm/devices/virtual_time.h"
#include "vm/memory/ram.h"

namespace slalom::vm {

inline constexpr Physical kLocalApicBase = 0xfee00000;
inline constexpr Physical kIoApicBase = 0xfec00000;

class Devices {
 public:
  struct Options {
    unsigned cpus = 1;                                // 1 to 8
    uint64_t rtc_start_unix_seconds = 1'577'836'800;  // 1 January 2020
    uint64_t memory_size = 0;                         // for the CMOS
  };
  struct State {
    Interrupts::State interrupts;
    Pit::State pit;
    Rtc::State rtc;
    Uart::State uart;
    Keyboard::State keyboard;
    Vga::State vga;
    SystemPorts::State system;
    bool operator==(const State&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.interrupts, s.pit, s.rtc, s.uart, s.keyboard, s.vga, s.system);
    }
  };
  // Not part of the State. For people only.
  struct Statistics {
    uint64_t absent_port_accesses = 0;
    uint64_t unmapped_reads = 0;  // of addresses without RAM or device
    uint64_t unmapped_writes = 0;
  };

  explicit Devices(const Options& options);
  State state() const;
  bool set_state(const State& state);  // false, without a change, if this machine cannot be in that state
  const Statistics& statistics() const { return statistics_; }

  // Port accesses. `size` is 1, 2 or 4. They return false if the port is unknown or its function is not
  // implemented. Then the machine stops, and problem() may give the reason.
  bool in(Time now, unsigned cpu, uint16_t port, unsigned size, uint32_t& value);
  bool out(Time now, unsigned cpu, uint16_t port, unsigned size, uint32_t value);
  // Accesses to memory that is not RAM. Addresses without a device read as ones and ignore writes, as on
  // hardware, because kernels probe.
  static bool is_mmio(Physical address) {
    const Physical page = address & ~(kPageSize - 1);
    return page == kLocalApicBase || page == kIoApicBase;
  }
  bool mmio_read(Time now, unsigned cpu, Physical address, unsigned size, uint64_t& value);
  bool mmio_write(Time now, unsigned cpu, Physical address, unsigned size, uint64_t value);
  // The APIC base register (MSR 1b). write_apic_base returns false for a base or mode that is not
  // implemented.
  uint64_t read_apic_base(unsigned cpu) const;
  bool write_apic_base(unsigned cpu, uint64_t value);
  // From CR8.
  void set_task_priority(unsigned cpu, uint8_t value) { interrupts_.set_task_priority(cpu, value); }

  Time next_deadline() const { return next_deadline_; }
  const LocalApic& local_apic(unsigned cpu) const { return interrupts_.local(cpu); }
  void advance(Time now);

  // Pending interrupts of a CPU. The CPU also checks its own IF, and blocks NMIs while it handles one.
  bool interrupt_pending(unsigned cpu) const {
    return (interrupts_.attention(cpu) & Interrupts::kVector) != 0;
  }
  bool nmi_pending(unsigned cpu) const { return (interrupts_.attention(cpu) & Interrupts::kNmi) != 0; }
  bool signal_pending(unsigned cpu) const { return (interrupts_.attention(cpu) & Interrupts::kSignal) != 0; }
  bool needs_attention(unsigned cpu) const { return interrupts_.attention(cpu) != 0; }
  std::optional<uint8_t> acknowledge(unsigned cpu) { return interrupts_.acknowledge(cpu); }
  // Acknowledges this interrupt instead of the first one, as if those of higher priority had not arrived yet.
  // Returns false if the processor priority blocks it.
  bool acknowledge(unsigned cpu, uint8_t vector) { return interrupts_.acknowledge(cpu, vector); }
  bool take_nmi(unsigned cpu) { return interrupts_.take_nmi(cpu); }
  CpuSignal take_signal(unsigned cpu);
  std::optional<PendingInterrupt> next_interrupt(unsigned cpu) const { return interrupts_.next(cpu); }
  std::vector<PendingInterrupt> pending_interrupts(unsigned cpu) const { return interrupts_.pending(cpu); }
  void press_nmi_button() { interrupts_.press_nmi_button(); }

  // For the host.
  std::string take_console_output();
  bool has_console_output() const { return !console_.empty(); }
  void push_console_input(std::string_view bytes);
  void push_keys(std::span<const uint8_t> scan_codes);  // scan code set 1
  std::optional<PowerEvent> take_power_event();
  std::string text_screen(const Ram& ram) const { return vga_.text_screen(ram); }
  // What the guest requested that is not implemented; empty if nothing.
  const std::string& problem() const { return problem_; }

 private:
  bool in_byte(Time now, uint16_t port, uint8_t& value);
  bool out_byte(Time now, uint16_t port, uint8_t value);
  void update_uart();
  void update_keyboard();
  void plan();
  void note_problem(std::string text);

  Options options_;
  Interrupts interrupts_;
  Pit pit_;
  Rtc rtc_;
  Uart uart_;
  Keyboard keyboard_;
  Vga vga_;
  SystemPorts system_;
  Time next_deadline_ = kNever;
  std::string console_;
  std::string problem_;
  Statistics statistics_;
};

}  // namespace slalom::vm
