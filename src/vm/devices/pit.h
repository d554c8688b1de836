// Pit: the 8254 timer chip (ports 40 to 43) and the gate and speaker bits of port 61.
//
// Nothing ticks. Counters are computed from virtual time when they are read, with the exact 1193182 Hz. Only
// channel 0 causes events: each rise of its output is a pulse on interrupt line 0. Bit 0 of port 61 is the
// gate of channel 2. The gates of the other channels are always on.
#pragma once

#include <array>
#include <cstdint>

#include "vm/devices/virtual_time.h"

namespace slalom::vm {

class Pit {
 public:
  static constexpr Clock kClock{1193182};
  static int64_t tick_at(Time time) { return static_cast<int64_t>(kClock.tick_at(time)); }

  struct Channel {
    uint8_t control = 0x30;     // as programmed: access (bits 4, 5), mode (1 to 3), BCD (0)
    uint32_t reload = 0x10000;  // the count starts from this value
    uint32_t next_reload = 0;   // modes 2 and 3: replaces `reload` at switch_tick; 0: none
    int64_t switch_tick = 0;
    // A count was written since the control word, and a trigger occurred if the mode needs one.
    bool loaded = false;
    bool armed = false;    // modes 1 and 5: a count was written, so the gate may trigger
    bool running = false;  // false: the count stands still at `elapsed`
    int64_t start = 0;     // if running: the tick at which it began to count
    int64_t elapsed = 0;   // if not running: the ticks counted so far
    bool gate = true;
    bool write_high = false;  // the next write is to the high byte
    bool read_high = false;
    uint8_t write_low = 0;
    bool count_latched = false;
    uint16_t latched_count = 0;
    bool status_latched = false;
    uint8_t latched_status = 0;
    bool operator==(const Channel&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.control, s.reload, s.next_reload, s.switch_tick, s.loaded, s.armed, s.running, s.start, s.elapsed,
        s.gate, s.write_high, s.read_high, s.write_low, s.count_latched, s.latched_count, s.status_latched,
        s.latched_status);
    }
  };
  struct State {
    std::array<Channel, 3> channels{};
    uint8_t speaker = 0;      // bits 0 to 3 of port 61
    Time next_rise = kNever;  // of channel 0's output
    bool operator==(const State&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.channels, s.speaker, s.next_rise);
    }
  };

  Pit();
  const State& state() const { return state_; }
  static bool valid(const State& state);
  void set_state(const State& state) { state_ = state; }

  bool read(Time now, uint16_t port, uint8_t& value);
  // Line 0 follows line(): low after mode 0 was programmed, high when the count has reached zero.
  bool write(Time now, uint16_t port, uint8_t value);
  bool line(Time now) const;

  Time deadline() const { return state_.next_rise; }
  void fire(Time now);  // handles the rise of channel 0's output at deadline(), and further rises up to now

 private:
  void write_control(int64_t tick, uint8_t value);
  void plan(int64_t tick);  // sets next_rise to the first rise after tick

  State state_;
};

}  // namespace slalom::vm
