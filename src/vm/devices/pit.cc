#include "vm/devices/pit.h"

namespace slalom::vm {

namespace {

constexpr uint16_t kFirstCounter = 0x40, kControl = 0x43, kSpeaker = 0x61;
constexpr Time kRefreshPeriod = 15085;  // of bit 4 of port 61, which old kernels use for delays

// Modes 1 and 5: a new count starts at a trigger, not at a time.
constexpr int64_t kOnTrigger = int64_t{1} << 56;

using Channel = Pit::Channel;

unsigned mode(const Channel& channel) {
  const unsigned bits = (channel.control >> 1) & 7;
  return bits >= 6 ? bits - 4 : bits;  // in modes 2 and 3 the highest bit is ignored
}
unsigned access(const Channel& channel) {
  return (channel.control >> 4) & 3;
}
bool is_bcd(const Channel& channel) {
  return (channel.control & 1) != 0;
}
bool repeats(const Channel& channel) {
  return mode(channel) == 2 || mode(channel) == 3;
}
bool needs_trigger(const Channel& channel) {
  return mode(channel) == 1 || mode(channel) == 5;
}
int64_t modulus(const Channel& channel) {
  return is_bcd(channel) ? 10000 : 0x10000;
}
int64_t high_half(uint32_t reload) {
  return (int64_t{reload} + 1) / 2;
}

uint32_t from_register(const Channel& channel, unsigned value) {
  int64_t count = value & 0xffff;
  if (is_bcd(channel))
    count = (value >> 12 & 15) * 1000 + (value >> 8 & 15) * 100 + (value >> 4 & 15) * 10 + (value & 15);
  count %= modulus(channel);
  return static_cast<uint32_t>(count == 0 ? modulus(channel) : count);
}

uint16_t to_register(const Channel& channel, int64_t count) {
  const auto value = static_cast<unsigned>(count % modulus(channel));
  if (!is_bcd(channel)) return static_cast<uint16_t>(value);
  return static_cast<uint16_t>(value / 1000 << 12 | value / 100 % 10 << 8 | value / 10 % 10 << 4 |
                               value % 10);
}

// Ticks counted since the count was loaded. A load takes effect one tick after the write.
int64_t elapsed(const Channel& channel, int64_t tick) {
  if (!channel.running) return channel.elapsed;
  return tick >= channel.start ? tick - channel.start : 0;
}

// Modes 2 and 3: a new count takes effect at the end of the period (mode 3: of the half period).
void settle(Channel& channel, int64_t tick) {
  if (channel.next_reload == 0 || tick < channel.switch_tick) return;
  const bool half = elapsed(channel, channel.switch_tick) % channel.reload != 0;
  channel.start = channel.switch_tick;
  channel.reload = channel.next_reload;
  channel.next_reload = 0;
  if (half)
    channel.start -= high_half(channel.reload);  // the low half comes next, as if the high half were over
}

bool output(const Channel& channel, int64_t tick) {
  const unsigned how = mode(channel);
  if (!channel.loaded) return how != 0;
  const int64_t counted = elapsed(channel, tick);
  switch (how) {
    case 0:
    case 1:
      return counted >= channel.reload;
    case 2:
      return !channel.gate || counted % channel.reload != channel.reload - 1;
    case 3:
      return !channel.gate || counted % channel.reload < high_half(channel.reload);
    default:
      return counted != channel.reload;
  }
}

uint16_t count(const Channel& channel, int64_t tick) {
  const int64_t counted = elapsed(channel, tick);
  const int64_t reload = channel.reload;
  if (mode(channel) == 2) return to_register(channel, reload - counted % reload);
  if (mode(channel) == 3) {  // counts down by two from an even number, once for each half
    const int64_t high = high_half(channel.reload);
    const int64_t position = counted % reload;
    return to_register(channel, (reload & ~int64_t{1}) - 2 * (position < high ? position : position - high));
  }
  // The other modes continue below zero.
  return to_register(channel, modulus(channel) + reload - counted % modulus(channel));
}

uint8_t status(const Channel& channel, int64_t tick) {
  const bool waiting =
      !channel.loaded || channel.next_reload != 0 || (channel.running && tick < channel.start);
  return static_cast<uint8_t>((output(channel, tick) ? 0x80 : 0) | (waiting ? 0x40 : 0) | channel.control);
}

void latch_count(Channel& channel, int64_t tick) {
  if (channel.count_latched) return;  // keep the latched count until it is read
  channel.count_latched = true;
  channel.latched_count = count(channel, tick);
}

void latch_status(Channel& channel, int64_t tick) {
  if (channel.status_latched) return;
  channel.status_latched = true;
  channel.latched_status = status(channel, tick);
}

uint8_t read_count(Channel& channel, int64_t tick) {
  if (channel.status_latched) {
    channel.status_latched = false;
    return channel.latched_status;
  }
  const uint16_t value = channel.count_latched ? channel.latched_count : count(channel, tick);
  const unsigned how = access(channel);
  const bool high = how == 2 || (how == 3 && channel.read_high);
  if (how == 3) channel.read_high = !channel.read_high;
  if (how != 3 || high) channel.count_latched = false;
  return static_cast<uint8_t>(high ? value >> 8 : value);
}

void load(Channel& channel, int64_t tick, uint32_t count) {
  if (needs_trigger(channel)) {
    channel.armed = true;
    if (!channel.loaded) {
      channel.reload = count;
    } else {  // the current one-shot is not affected
      channel.next_reload = count;
      channel.switch_tick = kOnTrigger;
    }
    return;
  }
  if (repeats(channel) && channel.loaded && channel.running) {
    const int64_t counted = elapsed(channel, tick) % channel.reload;
    const int64_t high = high_half(channel.reload);
    const int64_t end = mode(channel) == 3 && counted < high ? high : channel.reload;
    channel.next_reload = count;
    channel.switch_tick = (tick > channel.start ? tick : channel.start) + end - counted;
    return;
  }
  channel.reload = count;
  channel.loaded = true;
  channel.elapsed = 0;
  channel.running = channel.gate;
  channel.start = tick + 1;
}

void write_count(Channel& channel, int64_t tick, uint8_t value) {
  switch (access(channel)) {
    case 1:
      load(channel, tick, from_register(channel, value));
      break;
    case 2:
      load(channel, tick, from_register(channel, unsigned{value} << 8));
      break;
    default:
      channel.write_high = !channel.write_high;
      if (channel.write_high) {
        channel.write_low = value;
        // Stops until the second byte is written.
        if (mode(channel) == 0) channel.loaded = channel.running = false;
      } else {
        load(channel, tick, from_register(channel, unsigned{value} << 8 | channel.write_low));
      }
  }
}

void set_gate(Channel& channel, int64_t tick, bool gate) {
  if (channel.gate == gate) return;
  channel.gate = gate;
  if (!gate) {
    if (channel.running && !needs_trigger(channel)) {
      channel.elapsed = elapsed(channel, tick);
      channel.running = false;
    }
    return;
  }
  if (needs_trigger(channel) ? !channel.armed : !channel.loaded) return;
  const bool resumes = mode(channel) == 0 || mode(channel) == 4;  // continues; the other modes start again
  if (!resumes && channel.next_reload != 0) {
    channel.reload = channel.next_reload;
    channel.next_reload = 0;
  }
  channel.loaded = channel.running = true;
  channel.start = resumes ? tick - channel.elapsed : tick + 1;
}

// Returns the tick of the output's first rise after `tick`; a value <= tick if there is none.
int64_t next_rise(const Channel& channel, int64_t tick) {
  if (!channel.loaded || !channel.running) return tick;
  switch (mode(channel)) {
    case 0:
      return channel.start + channel.reload;
    case 2:
    case 3:
      if (channel.next_reload == 0)
        return channel.start + (elapsed(channel, tick) / channel.reload + 1) * channel.reload;
      if (elapsed(channel, channel.switch_tick) % channel.reload == 0) return channel.switch_tick;
      return channel.switch_tick + channel.next_reload / 2;  // after a low half of the new length
    case 4:
      return channel.start + channel.reload + 1;
    default:
      return tick;  // channel 0 is never triggered
  }
}

}  // namespace

Pit::Pit() {
  state_.channels[2].gate = false;
}

bool Pit::valid(const State& state) {
  for (const Channel& channel : state.channels) {
    if (channel.reload < 1 || channel.reload > 0x10000 || channel.next_reload > 0x10000) return false;
    for (const int64_t tick : {channel.start, channel.elapsed, channel.switch_tick})
      if (tick > kOnTrigger || tick < -kOnTrigger) return false;
    if (channel.elapsed < 0 || access(channel) == 0 || channel.control > 0x3f) return false;
  }
  return state.speaker <= 15;
}

bool Pit::line(Time now) const {
  return output(state_.channels[0], tick_at(now));
}

bool Pit::read(Time now, uint16_t port, uint8_t& value) {
  const int64_t tick = tick_at(now);
  for (Channel& channel : state_.channels) settle(channel, tick);
  if (port == kSpeaker) {
    value = state_.speaker;
    if (now / kRefreshPeriod % 2 != 0) value |= 0x10;
    if (output(state_.channels[2], tick)) value |= 0x20;
    return true;
  }
  if (port < kFirstCounter || port > kControl) return false;
  value = 0xff;  // the control word is write-only
  if (port != kControl) value = read_count(state_.channels[port - kFirstCounter], tick);
  return true;
}

bool Pit::write(Time now, uint16_t port, uint8_t value) {
  const int64_t tick = tick_at(now);
  for (Channel& channel : state_.channels) settle(channel, tick);
  if (port == kSpeaker) {
    state_.speaker = value & 15;
    set_gate(state_.channels[2], tick, (value & 1) != 0);
    return true;
  }
  if (port < kFirstCounter || port > kControl) return false;
  if (port == kControl) {
    write_control(tick, value);
  } else {
    write_count(state_.channels[port - kFirstCounter], tick, value);
    if (port == kFirstCounter) plan(tick);
  }
  return true;
}

void Pit::write_control(int64_t tick, uint8_t value) {
  const unsigned selected = value >> 6;
  if (selected == 3) {  // the read-back command
    for (unsigned i = 0; i < 3; ++i) {
      if ((value & (2u << i)) == 0) continue;
      if ((value & 0x20) == 0) latch_count(state_.channels[i], tick);
      if ((value & 0x10) == 0) latch_status(state_.channels[i], tick);
    }
  } else if ((value & 0x30) == 0) {
    latch_count(state_.channels[selected], tick);
  } else {
    Channel fresh;
    fresh.control = value & 0x3f;
    fresh.gate = state_.channels[selected].gate;
    state_.channels[selected] = fresh;
    if (selected == 0) plan(tick);
  }
}

void Pit::plan(int64_t tick) {
  const int64_t rise = next_rise(state_.channels[0], tick);
  state_.next_rise = rise > tick ? kClock.time_of(static_cast<uint64_t>(rise)) : kNever;
}

// While a new count is pending, handles the rises one by one, so that the result does not depend on when
// fire() is called. Afterwards it skips to the last rise.
void Pit::fire(Time now) {
  Channel& channel = state_.channels[0];
  while (state_.next_rise <= now) {
    const int64_t tick = tick_at(channel.next_reload != 0 ? state_.next_rise : now);
    settle(channel, tick);
    plan(tick);
  }
}

}  // namespace slalom::vm
