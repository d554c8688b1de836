#include "vm/devices/interrupts/local_apic.h"

#include <bit>

namespace slalom::vm {

namespace {

enum ApicRegister : unsigned {
  kId = 0x020,
  kVersion = 0x030,
  kTaskPriority = 0x080,
  kArbitrationPriority = 0x090,
  kProcessorPriority = 0x0a0,
  kEndOfInterrupt = 0x0b0,
  kRemoteRead = 0x0c0,
  kLogicalDestination = 0x0d0,
  kDestinationFormat = 0x0e0,
  kSpurious = 0x0f0,
  kInService = 0x100,
  kTriggerMode = 0x180,
  kRequest = 0x200,
  kErrorStatus = 0x280,
  kCommandLow = 0x300,
  kCommandHigh = 0x310,
  kLocalVectors = 0x320,
  kTimerInitial = 0x380,
  kTimerCurrent = 0x390,
  kTimerDivide = 0x3e0,
};

constexpr uint32_t kVersionValue = 0x00050014;  // an integrated APIC with six local vectors
constexpr uint32_t kSendIllegalVector = 1 << 5;
constexpr uint32_t kReceiveIllegalVector = 1 << 6;
constexpr uint32_t kIllegalRegister = 1 << 7;

// The bits of each local vector that a guest may set. Bit 18 of the timer's vector would select TSC deadline
// mode.
constexpr uint32_t kLvtWritable[LocalApic::kLvtCount] = {0x300ff, 0x107ff, 0x107ff,
                                                         0x1a7ff, 0x1a7ff, 0x100ff};
constexpr uint32_t kTimerTscDeadline = 1 << 18;

int highest(const LocalApic::Bits& bits) {
  for (int word = 7; word >= 0; --word)
    if (const uint32_t value = bits[static_cast<size_t>(word)]; value != 0)
      return word * 32 + 31 - std::countl_zero(value);
  return -1;
}
void set_bit(LocalApic::Bits& bits, unsigned vector) {
  bits[vector / 32] |= 1u << (vector % 32);
}
void clear_bit(LocalApic::Bits& bits, unsigned vector) {
  bits[vector / 32] &= ~(1u << (vector % 32));
}
bool has_bit(const LocalApic::Bits& bits, unsigned vector) {
  return (bits[vector / 32] >> (vector % 32)) & 1;
}

Delivery delivery_of(uint32_t value) {
  return static_cast<Delivery>((value >> 8) & 7);
}

}  // namespace

LocalApic::LocalApic(unsigned cpu) {
  state_.id = static_cast<uint8_t>(cpu);
  state_.lvt.fill(kMasked);
  if (cpu == 0) {
    state_.spurious = 0xff | kSoftwareEnable;
    state_.lvt[kLint0] = static_cast<uint32_t>(Delivery::ExtInt) << 8;
    state_.lvt[kLint1] = static_cast<uint32_t>(Delivery::Nmi) << 8;
  }
  refresh();
}

bool LocalApic::valid(const State& state) {
  for (unsigned entry = 0; entry < kLvtCount; ++entry)
    if (state.lvt[entry] & ~kLvtWritable[entry]) return false;
  return state.timer_end == kNever || state.timer_initial != 0;
}

void LocalApic::set_state(const State& state) {
  state_ = state;
  refresh();
}

void LocalApic::set_enabled(bool enabled) {
  state_.enabled = enabled;
  refresh();
}

void LocalApic::set_task_priority(uint8_t value) {
  state_.task_priority = value;
  refresh();
}

uint8_t LocalApic::processor_priority() const {
  const int serving = highest(state_.in_service);
  const uint8_t service = serving < 0 ? 0 : static_cast<uint8_t>(serving & 0xf0);
  return (state_.task_priority & 0xf0) >= service ? state_.task_priority : service;
}

void LocalApic::refresh() {
  const int best = state_.enabled ? highest(state_.request) : -1;
  ready_ = best >= 0 && outranks(static_cast<uint8_t>(best)) ? best : -1;
  external_ = !state_.enabled || (!masked(kLint0) && delivery_of(state_.lvt[kLint0]) == Delivery::ExtInt);
}

bool LocalApic::read(Time now, unsigned offset, uint32_t& value) {
  const auto word = [&](const Bits& bits, unsigned base) { return bits[(offset - base) >> 4]; };
  value = 0;
  if (offset % 16 != 0) return false;
  if (offset >= kInService && offset < kTriggerMode) return value = word(state_.in_service, kInService), true;
  if (offset >= kTriggerMode && offset < kRequest)
    return value = word(state_.trigger_mode, kTriggerMode), true;
  if (offset >= kRequest && offset < kErrorStatus) return value = word(state_.request, kRequest), true;
  if (offset >= kLocalVectors && offset < kTimerInitial)
    return value = state_.lvt[(offset - kLocalVectors) >> 4], true;
  switch (offset) {
    case kId:
      value = uint32_t{state_.id} << 24;
      break;
    case kVersion:
      value = kVersionValue;
      break;
    case kTaskPriority:
      value = state_.task_priority;
      break;
    case kProcessorPriority:
      value = processor_priority();
      break;
    case kArbitrationPriority:
    case kRemoteRead:
    case kEndOfInterrupt:
      break;  // write-only, or removed in the Pentium 4: reads as zero
    case kLogicalDestination:
      value = state_.logical_destination;
      break;
    case kDestinationFormat:
      value = state_.destination_format;
      break;
    case kSpurious:
      value = state_.spurious;
      break;
    case kErrorStatus:
      value = state_.errors;
      break;
    case kCommandLow:
      value = state_.command_low;
      break;
    case kCommandHigh:
      value = state_.command_high;
      break;
    case kTimerInitial:
      value = state_.timer_initial;
      break;
    case kTimerCurrent:
      value = current_count(now);
      break;
    case kTimerDivide:
      value = state_.timer_divide;
      break;
    default:
      report_error(kIllegalRegister);
  }
  return true;
}

LocalApic::Effect LocalApic::write(Time now, unsigned offset, uint32_t value) {
  if (offset % 16 != 0) return {.known = false};
  Effect effect;
  if (offset >= kLocalVectors && offset < kTimerInitial) {
    effect.known = write_lvt(now, static_cast<Lvt>((offset - kLocalVectors) >> 4), value);
    return effect;
  }
  switch (offset) {
    case kId:
    case kVersion:
    case kProcessorPriority:
      break;  // read-only
    case kTaskPriority:
      state_.task_priority = static_cast<uint8_t>(value);
      break;
    case kEndOfInterrupt:
      if (const int vector = highest(state_.in_service); vector >= 0) {
        clear_bit(state_.in_service, static_cast<unsigned>(vector));
        if (has_bit(state_.trigger_mode, static_cast<unsigned>(vector)))
          effect.end_of_level_vector = static_cast<uint8_t>(vector);
      }
      break;
    case kLogicalDestination:
      state_.logical_destination = value & 0xff000000;
      break;
    case kDestinationFormat:
      state_.destination_format = value | 0x0fffffff;
      break;
    case kSpurious:
      settle(now);
      state_.spurious = value & 0x3ff;
      if (!accepts_interrupts())
        for (uint32_t& entry : state_.lvt) entry |= kMasked;
      break;
    case kErrorStatus:
      state_.errors = state_.errors_so_far;
      state_.errors_so_far = 0;
      break;
    case kCommandLow:
      state_.command_low = value & 0xccfff;
      effect = send();
      break;
    case kCommandHigh:
      state_.command_high = value & 0xff000000;
      break;
    case kTimerInitial:
      state_.timer_initial = value;
      state_.timer_end = value == 0 ? kNever : later(now, period());
      break;
    case kTimerDivide: {
      const uint32_t left = current_count(now);
      state_.timer_divide = value & 0xb;
      if (state_.timer_end != kNever) state_.timer_end = later(now, left * divisor());
      break;
    }
    default:
      report_error(kIllegalRegister);
  }
  refresh();
  return effect;
}

bool LocalApic::write_lvt(Time now, Lvt entry, uint32_t value) {
  if (entry == kTimer && (value & kTimerTscDeadline) != 0) return false;
  settle(now);
  state_.lvt[entry] = value & kLvtWritable[entry];
  if (!accepts_interrupts()) state_.lvt[entry] |= kMasked;
  refresh();
  return true;
}

LocalApic::Effect LocalApic::send() {
  const uint32_t low = state_.command_low;
  const Delivery delivery = delivery_of(low);
  const bool deassert = (low & (1 << 14)) == 0 && (low & (1 << 15)) != 0;
  if (delivery == Delivery::Smi || delivery == Delivery::Reserved || delivery == Delivery::ExtInt)
    return {.known = false};
  // The de-assertion of INIT only affected the bus of the first APICs.
  if (delivery == Delivery::Init && deassert) return {};
  if ((delivery == Delivery::Fixed || delivery == Delivery::LowestPriority) && (low & 0xff) < 16) {
    report_error(kSendIllegalVector);
    return {};
  }
  Effect effect;
  effect.message = ApicMessage{.delivery = delivery,
                               .vector = static_cast<uint8_t>(low),
                               .logical = (low & (1 << 11)) != 0,
                               .destination = static_cast<uint8_t>(state_.command_high >> 24),
                               .shorthand = static_cast<Shorthand>((low >> 18) & 3)};
  return effect;
}

bool LocalApic::is_target(bool logical, uint8_t destination) const {
  if (!state_.enabled) return false;
  if (!logical) return destination == 0xff || destination == state_.id;
  const uint8_t mine = static_cast<uint8_t>(state_.logical_destination >> 24);
  if ((state_.destination_format >> 28) == 0xf) return (mine & destination) != 0;
  // Clusters of four. The high nibble selects the cluster (15: all), the low one its members.
  const bool cluster = (destination >> 4) == 0xf || (destination >> 4) == (mine >> 4);
  return cluster && (mine & destination & 0xf) != 0;
}

void LocalApic::request(uint8_t vector, bool level) {
  if (!accepts_interrupts()) return;
  if (vector < 16) {
    report_error(kReceiveIllegalVector);
    return;
  }
  set_bit(state_.request, vector);
  level ? set_bit(state_.trigger_mode, vector) : clear_bit(state_.trigger_mode, vector);
  refresh();
}

void LocalApic::report_error(uint32_t bit) {
  state_.errors_so_far |= bit;
  const uint8_t vector = lvt_vector(kError);
  // An illegal vector for the error interrupt would report errors forever.
  if (!masked(kError) && accepts_interrupts() && vector >= 16) {
    set_bit(state_.request, vector);
    clear_bit(state_.trigger_mode, vector);
    refresh();
  }
}

void LocalApic::lint0_rose() {
  if (!state_.enabled || masked(kLint0)) return;
  if (delivery_of(state_.lvt[kLint0]) == Delivery::Fixed) request(lvt_vector(kLint0), false);
  if (delivery_of(state_.lvt[kLint0]) == Delivery::Nmi) state_.nmi = true;
}

void LocalApic::nmi_button() {
  if (!state_.enabled || (!masked(kLint1) && delivery_of(state_.lvt[kLint1]) == Delivery::Nmi))
    state_.nmi = true;
}

void LocalApic::request_init() {
  state_.init = true;
  state_.startup = false;
}

// The first one starts the CPU. Later ones would be ignored, because the CPU is running then.
void LocalApic::request_startup(uint8_t vector) {
  if (state_.startup) return;
  state_.startup = true;
  state_.startup_vector = vector;
}

uint64_t LocalApic::divisor() const {
  const unsigned code = (state_.timer_divide & 3u) | ((state_.timer_divide & 8u) >> 1);
  return code == 7 ? 1 : uint64_t{2} << code;
}

Time LocalApic::deadline() const {
  return masked(kTimer) ? kNever : state_.timer_end;
}

void LocalApic::settle(Time now) {
  if (state_.timer_end > now) return;
  if ((state_.lvt[kTimer] & kPeriodic) == 0 || state_.timer_initial == 0) {
    state_.timer_end = kNever;
    return;
  }
  const uint64_t passed = (now - state_.timer_end) / period() + 1;
  state_.timer_end = later(state_.timer_end, passed * period());
}

void LocalApic::fire(Time now) {
  if (state_.timer_end > now) return;
  settle(now);
  if (!masked(kTimer)) request(lvt_vector(kTimer), false);
}

uint32_t LocalApic::current_count(Time now) {
  settle(now);
  if (state_.timer_end == kNever) return 0;
  return static_cast<uint32_t>((state_.timer_end - now + divisor() - 1) / divisor());
}

uint8_t LocalApic::acknowledge() {
  if (ready_ < 0) return static_cast<uint8_t>(state_.spurious);
  const auto vector = static_cast<uint8_t>(ready_);
  clear_bit(state_.request, vector);
  set_bit(state_.in_service, vector);
  refresh();
  return vector;
}

bool LocalApic::acknowledge(uint8_t vector) {
  if (!accepts_interrupts() || !is_requested(vector) || !outranks(vector)) return false;
  clear_bit(state_.request, vector);
  set_bit(state_.in_service, vector);
  refresh();
  return true;
}

bool LocalApic::take_nmi() {
  const bool was = state_.nmi;
  state_.nmi = false;
  return was;
}

CpuSignal LocalApic::take_signal() {
  if (state_.init) {
    State fresh;
    fresh.id = state_.id;
    fresh.enabled = state_.enabled;
    fresh.lvt.fill(kMasked);
    fresh.startup = state_.startup;
    fresh.startup_vector = state_.startup_vector;
    set_state(fresh);
    return {CpuSignal::Kind::Init, 0};
  }
  if (!state_.startup) return {};
  const uint8_t vector = state_.startup_vector;
  state_.startup = false;
  state_.startup_vector = 0;
  return {CpuSignal::Kind::Startup, vector};
}

}  // namespace slalom::vm
