// IoApic: 24 interrupt lines, each routed by its redirection entry (Intel 82093AA datasheet).
//
// Lines are asserted or not. The polarity bit of an entry is kept for the guest but has no effect. Messages
// that a line causes are returned; the owner of the local APICs delivers them
// (devices/interrupts/interrupts.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "vm/devices/interrupts/apic_message.h"

namespace slalom::vm {

class IoApic {
 public:
  static constexpr unsigned kPins = 24;

  struct State {
    uint8_t id = 0;
    uint8_t index = 0;
    uint32_t lines = 0;  // one bit for each asserted line
    std::array<uint64_t, kPins> entries{};
    bool operator==(const State&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.id, s.index, s.lines, s.entries);
    }
  };

  IoApic();
  const State& state() const { return state_; }
  static bool valid(const State& state) { return state.lines >> kPins == 0; }
  void set_state(const State& state) { state_ = state; }

  // Offsets 0x00 (index) and 0x10 (data). false or !known: no such register.
  bool read(unsigned offset, uint32_t& value) const;
  struct Effect {
    bool known = true;
    std::optional<ApicMessage> message = std::nullopt;
  };
  Effect write(unsigned offset, uint32_t value);

  std::optional<ApicMessage> set_line(unsigned pin, bool asserted);
  // A level-triggered interrupt with this vector has ended. Lines that are still asserted interrupt again.
  std::vector<ApicMessage> end_of_interrupt(uint8_t vector);
  // The pin whose unmasked entry sends this vector; -1 if there is none.
  int pin_of(uint8_t vector) const;

 private:
  std::optional<ApicMessage> service(unsigned pin);
  State state_;
};

}  // namespace slalom::vm
