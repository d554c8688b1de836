#include "vm/devices/devices.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "vm/devices/absent_ports.h"

namespace slalom::vm {

namespace {

constexpr unsigned kTimerLine = 0, kKeyboardLine = 1, kUartLine = 4, kRtcLine = 8;

constexpr uint64_t kApicBaseBoot = 1 << 8;
constexpr uint64_t kApicBaseEnable = 1 << 11;

bool is_uart(uint16_t port) {
  return port >= Uart::kFirstPort && port < Uart::kFirstPort + Uart::kPorts;
}
bool is_pit(uint16_t port) {
  return (port >= 0x40 && port <= 0x43) || port == 0x61;
}
bool is_rtc(uint16_t port) {
  return port == 0x70 || port == 0x71;
}
bool is_keyboard(uint16_t port) {
  return port == 0x60 || port == 0x64;
}
bool is_pic(uint16_t port) {
  return port == 0x20 || port == 0x21 || port == 0xa0 || port == 0xa1 || port == 0x4d0 || port == 0x4d1;
}

uint32_t ones(unsigned size) {
  return size >= 4 ? ~uint32_t{0} : (1u << 8 * size) - 1;
}

}  // namespace

Devices::Devices(const Options& options)
    : options_(options),
      interrupts_(options.cpus),
      rtc_(options.rtc_start_unix_seconds, options.memory_size) {}

Devices::State Devices::state() const {
  return {interrupts_.state(), pit_.state(), rtc_.state(),   uart_.state(),
          keyboard_.state(),   vga_.state(), system_.state()};
}

bool Devices::set_state(const State& state) {
  if (!Pit::valid(state.pit) || !Rtc::valid(state.rtc) || !Uart::valid(state.uart) ||
      !Keyboard::valid(state.keyboard) || !Vga::valid(state.vga) || !SystemPorts::valid(state.system) ||
      !interrupts_.set_state(state.interrupts))
    return false;
  pit_.set_state(state.pit);
  rtc_.set_state(state.rtc);
  uart_.set_state(state.uart);
  keyboard_.set_state(state.keyboard);
  vga_.set_state(state.vga);
  system_.set_state(state.system);
  console_.clear();
  problem_.clear();
  system_.take_event();
  plan();
  return true;
}

void Devices::plan() {
  next_deadline_ = std::min({interrupts_.deadline(), pit_.deadline(), rtc_.deadline()});
}

void Devices::advance(Time now) {
  while (next_deadline_ <= now) {
    const Time due = next_deadline_;
    if (interrupts_.deadline() == due) {
      interrupts_.fire(now);
    } else if (pit_.deadline() == due) {
      pit_.fire(now);
      interrupts_.pulse_line(kTimerLine);
    } else {
      rtc_.fire(due);
      interrupts_.set_line(kRtcLine, rtc_.line());
    }
    plan();
  }
  if (!interrupts_.problem().empty()) note_problem(interrupts_.problem());
}

void Devices::note_problem(std::string text) {
  if (problem_.empty()) problem_ = std::move(text);
}

void Devices::update_uart() {
  if (uart_.take_edge()) interrupts_.set_line(kUartLine, false);
  interrupts_.set_line(kUartLine, uart_.line());
}

void Devices::update_keyboard() {
  if (keyboard_.take_edge()) interrupts_.set_line(kKeyboardLine, false);
  interrupts_.set_line(kKeyboardLine, keyboard_.line());
}

bool Devices::in(Time now, unsigned cpu, uint16_t port, unsigned size, uint32_t& value) {
  CHECK(cpu < options_.cpus && (size == 1 || size == 2 || size == 4), "port read of {} bytes by CPU {}", size,
        cpu);
  advance(now);
  value = ones(size);
  if (SystemPorts::owns(port)) return system_.read(port, size, value);
  if (find_absent(port)) {
    ++statistics_.absent_port_accesses;
    return true;
  }
  // All other devices have 8-bit registers. A wider access is several accesses.
  uint32_t whole = 0;
  for (unsigned i = 0; i < size; ++i) {
    uint8_t byte = 0xff;
    if (!in_byte(now, static_cast<uint16_t>(port + i), byte)) return false;
    whole |= uint32_t{byte} << 8 * i;
  }
  value = whole;
  return true;
}

bool Devices::out(Time now, unsigned cpu, uint16_t port, unsigned size, uint32_t value) {
  CHECK(cpu < options_.cpus && (size == 1 || size == 2 || size == 4), "port write of {} bytes by CPU {}",
        size, cpu);
  advance(now);
  value &= ones(size);
  if (SystemPorts::owns(port)) return system_.write(port, size, value, console_);
  if (find_absent(port)) {
    ++statistics_.absent_port_accesses;
    return true;
  }
  for (unsigned i = 0; i < size; ++i)
    if (!out_byte(now, static_cast<uint16_t>(port + i), static_cast<uint8_t>(value >> 8 * i))) return false;
  if (!interrupts_.problem().empty()) note_problem(interrupts_.problem());
  return problem_.empty();
}

bool Devices::in_byte(Time now, uint16_t port, uint8_t& value) {
  if (is_uart(port)) {
    value = uart_.read(port - Uart::kFirstPort);
    update_uart();
    return true;
  }
  if (is_pit(port)) return pit_.read(now, port, value);
  if (is_pic(port)) return interrupts_.pic_read(port, value);
  if (is_rtc(port)) {
    const bool known = rtc_.read(now, port, value);
    interrupts_.set_line(kRtcLine, rtc_.line());
    plan();
    return known;
  }
  if (is_keyboard(port)) {
    const bool known = keyboard_.read(port, value);
    update_keyboard();
    return known;
  }
  return Vga::owns(port) && vga_.read(now, port, value);
}

bool Devices::out_byte(Time now, uint16_t port, uint8_t value) {
  if (is_uart(port)) {
    uart_.write(port - Uart::kFirstPort, value, console_);
    update_uart();
    return true;
  }
  if (is_pit(port)) {
    const bool known = pit_.write(now, port, value);
    interrupts_.set_line(kTimerLine, pit_.line(now));
    plan();
    return known;
  }
  if (is_pic(port)) return interrupts_.pic_write(port, value);
  if (is_rtc(port)) {
    const bool known = rtc_.write(now, port, value);
    interrupts_.set_line(kRtcLine, rtc_.line());
    plan();
    return known;
  }
  if (is_keyboard(port)) {
    const bool known = keyboard_.write(port, value);
    update_keyboard();
    return known;
  }
  return Vga::owns(port) && vga_.write(port, value);
}

bool Devices::mmio_read(Time now, unsigned cpu, Physical address, unsigned size, uint64_t& value) {
  CHECK(cpu < options_.cpus, "memory read by CPU {}", cpu);
  value = size >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * size) - 1;
  if (!is_mmio(address) || (address >= kLocalApicBase && !interrupts_.local_enabled(cpu))) {
    ++statistics_.unmapped_reads;
    return true;
  }
  advance(now);
  if (size != 4) return false;  // both APICs only have 32-bit registers
  const auto offset = static_cast<unsigned>(address % kPageSize);
  uint32_t word = 0;
  const bool known = address >= kLocalApicBase ? interrupts_.local_read(now, cpu, offset, word)
                                               : interrupts_.io_apic_read(offset, word);
  value = word;
  return known;
}

bool Devices::mmio_write(Time now, unsigned cpu, Physical address, unsigned size, uint64_t value) {
  CHECK(cpu < options_.cpus, "memory write by CPU {}", cpu);
  if (!is_mmio(address) || (address >= kLocalApicBase && !interrupts_.local_enabled(cpu))) {
    ++statistics_.unmapped_writes;
    return true;
  }
  advance(now);
  if (size != 4) return false;
  const auto offset = static_cast<unsigned>(address % kPageSize);
  const auto word = static_cast<uint32_t>(value);
  const bool known = address >= kLocalApicBase ? interrupts_.local_write(now, cpu, offset, word)
                                               : interrupts_.io_apic_write(offset, word);
  if (!interrupts_.problem().empty()) note_problem(interrupts_.problem());
  plan();
  return known;
}

uint64_t Devices::read_apic_base(unsigned cpu) const {
  return kLocalApicBase | (cpu == 0 ? kApicBaseBoot : 0) |
         (interrupts_.local_enabled(cpu) ? kApicBaseEnable : 0);
}

bool Devices::write_apic_base(unsigned cpu, uint64_t value) {
  if ((value & ~(kApicBaseBoot | kApicBaseEnable)) != kLocalApicBase) return false;
  interrupts_.set_local_enabled(cpu, (value & kApicBaseEnable) != 0);
  plan();
  return true;
}

CpuSignal Devices::take_signal(unsigned cpu) {
  const CpuSignal signal = interrupts_.take_signal(cpu);
  plan();  // an INIT stops the timer
  return signal;
}

std::string Devices::take_console_output() {
  return std::exchange(console_, {});
}

void Devices::push_console_input(std::string_view bytes) {
  uart_.push_input(bytes);
  update_uart();
}

void Devices::push_keys(std::span<const uint8_t> scan_codes) {
  if (!keyboard_.push_keys(scan_codes))
    note_problem("keys for a guest that turned off the translation to scan code set 1");
  update_keyboard();
}

std::optional<PowerEvent> Devices::take_power_event() {
  if (keyboard_.take_reset()) return PowerEvent{PowerEvent::Kind::Reset, 0};
  return system_.take_event();
}

}  // namespace slalom::vm
