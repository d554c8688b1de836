#include "vm/devices/system_ports.h"

#include <string_view>

namespace slalom::vm {

namespace {

constexpr std::string_view kShutdown = "Shutdown";

enum Port : uint16_t {
  kPost = 0x80,
  kFastReset = 0x92,
  kDebugConsole = 0xe9,
  kDelay = 0xed,
  kDebugExit = 0xf4,
  kQemuPower = 0x604,
  kBochsPower = 0xb004,
  kVirtualBoxPower = 0x4004,
  kBochsShutdown = 0x8900,
  kResetControl = 0xcf9,
};

}  // namespace

bool SystemPorts::owns(uint16_t port) {
  switch (port) {
    case kPost:
    case kFastReset:
    case kDebugConsole:
    case kDelay:
    case kDebugExit:
    case kSleepControlPort:
    case kSleepStatusPort:
    case kResetPort:
    case kQemuPower:
    case kBochsPower:
    case kVirtualBoxPower:
    case kBochsShutdown:
    case kResetControl:
      return true;
    default:
      return false;
  }
}

std::optional<PowerEvent> SystemPorts::take_event() {
  const auto event = event_;
  event_.reset();
  return event;
}

bool SystemPorts::read(uint16_t port, unsigned, uint32_t& value) const {
  switch (port) {
    case kDebugConsole:
      value = kDebugConsole;
      return true;  // kernels detect the port by this value
    case kFastReset:
      value = 0x02;
      return true;
    case kSleepControlPort:
      value = state_.sleep_control;
      return true;
    case kSleepStatusPort:
    case kResetPort:
    case kPost:
    case kDelay:
    case kDebugExit:
      value = 0;
      return true;
    case kResetControl:
      value = state_.reset_control;
      return true;
    default:
      return false;
  }
}

bool SystemPorts::write(uint16_t port, unsigned size, uint32_t value, std::string& console) {
  const auto power_off_if = [&](bool asked) {
    if (asked) event_ = PowerEvent{PowerEvent::Kind::PowerOff, 0};
    return asked;
  };
  switch (port) {
    case kPost:
    case kDelay:
    case kSleepStatusPort:
      return true;
    case kDebugConsole:
      console.push_back(static_cast<char>(value));
      return true;
    case kDebugExit:
      event_ = PowerEvent{PowerEvent::Kind::Exit, value << 1 | 1};
      return true;
    case kFastReset:
      if (value & 1) event_ = PowerEvent{PowerEvent::Kind::Reset, 0};
      return (value & 3) != 0;  // memory that wraps at 1 MiB is not implemented
    case kResetPort:
      if (value == kResetValue) event_ = PowerEvent{PowerEvent::Kind::Reset, 0};
      return true;
    case kResetControl:
      state_.reset_control = value & 0x0e;
      if (value & 4) event_ = PowerEvent{PowerEvent::Kind::Reset, 0};
      return true;
    case kSleepControlPort:
      state_.sleep_control = value & 0x1c;
      if ((value & 0x20) == 0) return true;
      return power_off_if((value >> 2 & 7) == kSleepTypeOff);  // ACPI does not announce other sleep states
    case kQemuPower:
    case kBochsPower:
      return power_off_if(size == 2 && value == 0x2000);
    case kVirtualBoxPower:
      return power_off_if(size == 2 && value == 0x3400);
    case kBochsShutdown: {
      const bool next =
          static_cast<uint8_t>(value) == static_cast<uint8_t>(kShutdown[state_.shutdown_letters]);
      state_.shutdown_letters = next ? static_cast<uint8_t>(state_.shutdown_letters + 1) : 0;
      if (state_.shutdown_letters < kShutdown.size()) return true;
      state_.shutdown_letters = 0;
      return power_off_if(true);
    }
    default:
      return false;
  }
}

}  // namespace slalom::vm
