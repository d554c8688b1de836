// SystemPorts: power off, reset, and the ports that emulators offer to kernels under development.
//
// | port      | written                                   | effect                                        |
// |-----------|-------------------------------------------|-----------------------------------------------|
// | 80, ed    | anything                                  | none: POST codes and delays                   |
// | 92        | bit 0 set; bit 1 must stay set            | reset; address line 20                        |
// | e9        | a character                               | console output (Bochs)                        |
// | f4        | a code                                    | exit with code * 2 + 1 (isa-debug-exit)       |
// | 600       | sleep type 5 with bit 5 (ACPI S5)         | power off; see devices/acpi.h                 |
// | 601       | read: bit 7 says a sleep ended            | never                                         |
// | 602       | 1                                         | reset (ACPI reset register)                   |
// | 604, b004 | 2000 in 16 bits                           | power off (QEMU; Bochs and older QEMU)        |
// | 4004      | 3400 in 16 bits                           | power off (VirtualBox)                        |
// | 8900      | "Shutdown", letter by letter              | power off (Bochs)                             |
// | cf9       | bit 2 set                                 | reset                                         |
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace slalom::vm {

struct PowerEvent {
  enum class Kind : uint8_t { PowerOff, Reset, Exit };
  Kind kind = Kind::PowerOff;
  uint32_t code = 0;  // for Exit
  bool operator==(const PowerEvent&) const = default;
};

inline constexpr uint16_t kSleepControlPort = 0x600;
inline constexpr uint16_t kSleepStatusPort = 0x601;
inline constexpr uint16_t kResetPort = 0x602;
inline constexpr uint8_t kResetValue = 1;
inline constexpr uint8_t kSleepTypeOff = 5;

class SystemPorts {
 public:
  struct State {
    uint8_t reset_control = 0;  // port cf9
    uint8_t sleep_control = 0;
    uint8_t shutdown_letters = 0;  // number of letters of "Shutdown" seen so far
    bool operator==(const State&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.reset_control, s.sleep_control, s.shutdown_letters);
    }
  };

  const State& state() const { return state_; }
  static bool valid(const State& state) { return state.shutdown_letters < 8; }
  void set_state(const State& state) { state_ = state; }

  static bool owns(uint16_t port);
  bool read(uint16_t port, unsigned size, uint32_t& value) const;
  bool write(uint16_t port, unsigned size, uint32_t value, std::string& console);
  std::optional<PowerEvent> take_event();

 private:
  State state_;
  std::optional<PowerEvent> event_;
};

}  // namespace slalom::vm
