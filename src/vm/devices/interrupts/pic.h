// Pic: the two cascaded 8259A interrupt controllers of a PC (ports 20, 21, a0, a1; edge/level control 4d0,
// 4d1).
//
// An edge stays latched until it is acknowledged, even if the line falls earlier. The chip would answer with
// a spurious interrupt then, but no modelled device relies on that. Not implemented: polling and 8080 mode;
// requests for them are reported as unknown.
#pragma once

#include <array>
#include <cstdint>

namespace slalom::vm {

class Pic {
 public:
  struct Chip {
    uint8_t lines = 0;
    uint8_t request = 0;
    uint8_t mask = 0xff;
    uint8_t in_service = 0;
    uint8_t vector_base = 0;
    uint8_t lowest = 7;     // the line with the lowest priority; the next line has the highest
    uint8_t init_step = 0;  // the next initialisation word on the odd port: 2, 3, 4; 0: none
    uint8_t level = 0;      // level-triggered lines, from the edge/level control register
    bool all_level = false;
    bool wants_word4 = false;
    bool single = false;
    bool auto_end = false;
    bool rotate_on_auto_end = false;
    bool special_mask = false;
    bool special_nested = false;
    bool reads_in_service = false;
    bool operator==(const Chip&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.lines, s.request, s.mask, s.in_service, s.vector_base, s.lowest, s.init_step, s.level, s.all_level,
        s.wants_word4, s.single, s.auto_end, s.rotate_on_auto_end, s.special_mask, s.special_nested,
        s.reads_in_service);
    }
  };
  struct State {
    std::array<Chip, 2> chips{};  // master, slave
    bool operator==(const State&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.chips);
    }
  };

  // The state after firmware has run, but with all lines masked.
  Pic();
  const State& state() const { return state_; }
  static bool valid(const State& state);
  void set_state(const State& state);

  bool read(uint16_t port, uint8_t& value) const;
  bool write(uint16_t port, uint8_t value);
  void set_line(unsigned irq, bool asserted);  // 0 to 15, not 2

  bool output() const { return output_; }  // the INTR pin
  uint8_t next_vector() const;             // what acknowledge() would return
  uint8_t acknowledge();

 private:
  enum Index : unsigned { kMaster, kSlave };
  static int ready_line(const Chip& chip, bool is_master);
  static bool is_level(const Chip& chip, unsigned line) {
    return chip.all_level || (chip.level >> line & 1) != 0;
  }
  static void set_chip_line(Chip& chip, unsigned line, bool asserted);
  static void enter_service(Chip& chip, unsigned line);
  bool write_command(Chip& chip, uint8_t value);
  bool write_data(Chip& chip, uint8_t value);
  void refresh();

  State state_;
  bool output_ = false;
};

}  // namespace slalom::vm
