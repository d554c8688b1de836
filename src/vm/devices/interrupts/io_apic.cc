#include "vm/devices/interrupts/io_apic.h"

namespace slalom::vm {

namespace {

constexpr uint64_t kDeliveryStatus = 1 << 12;
constexpr uint64_t kRemoteIrr = 1 << 14;
constexpr uint64_t kLevel = 1 << 15;
constexpr uint64_t kMasked = 1 << 16;
constexpr uint64_t kWritable = 0xff0000000001ffff & ~(kDeliveryStatus | kRemoteIrr);

constexpr unsigned kIndexOffset = 0x00;
constexpr unsigned kDataOffset = 0x10;
constexpr uint8_t kIdRegister = 0, kVersionRegister = 1, kArbitrationRegister = 2, kFirstEntry = 0x10;
constexpr uint32_t kIoApicVersion = 0x11 | (IoApic::kPins - 1) << 16;

}  // namespace

IoApic::IoApic() {
  state_.entries.fill(kMasked);
}

bool IoApic::read(unsigned offset, uint32_t& value) const {
  value = 0;
  if (offset == kIndexOffset) return value = state_.index, true;
  if (offset != kDataOffset) return false;
  const unsigned index = state_.index;
  if (index == kIdRegister || index == kArbitrationRegister)
    value = uint32_t{state_.id} << 24;
  else if (index == kVersionRegister)
    value = kIoApicVersion;
  else if (index >= kFirstEntry && index < kFirstEntry + 2 * kPins)
    value = static_cast<uint32_t>(state_.entries[(index - kFirstEntry) / 2] >> (index % 2 == 0 ? 0 : 32));
  return true;  // reserved registers read as zero
}

IoApic::Effect IoApic::write(unsigned offset, uint32_t value) {
  if (offset == kIndexOffset) {
    state_.index = static_cast<uint8_t>(value);
    return {};
  }
  if (offset != kDataOffset) return {.known = false};
  const unsigned index = state_.index;
  if (index == kIdRegister) state_.id = (value >> 24) & 0xf;
  if (index < kFirstEntry || index >= kFirstEntry + 2 * kPins) return {};
  const unsigned pin = (index - kFirstEntry) / 2;
  uint64_t& entry = state_.entries[pin];
  const uint64_t written =
      index % 2 == 0 ? (entry & ~uint64_t{0xffffffff}) | value : (entry & 0xffffffff) | uint64_t{value} << 32;
  entry = (entry & ~kWritable) | (written & kWritable);
  // Kernels switch an entry to edge and back to clear a stuck remote IRR.
  if ((entry & kLevel) == 0) entry &= ~kRemoteIrr;
  // An asserted level-triggered line interrupts as soon as it is unmasked. Edges on a masked line are lost.
  if ((entry & kLevel) != 0) return {.message = service(pin)};
  return {};
}

std::optional<ApicMessage> IoApic::set_line(unsigned pin, bool asserted) {
  const uint32_t bit = 1u << pin;
  const bool rose = asserted && (state_.lines & bit) == 0;
  state_.lines = asserted ? state_.lines | bit : state_.lines & ~bit;
  return rose ? service(pin) : std::nullopt;
}

std::optional<ApicMessage> IoApic::service(unsigned pin) {
  uint64_t& entry = state_.entries[pin];
  if ((entry & kMasked) != 0) return std::nullopt;
  const bool level = (entry & kLevel) != 0;
  if (level && ((state_.lines >> pin & 1) == 0 || (entry & kRemoteIrr) != 0)) return std::nullopt;
  if (level) entry |= kRemoteIrr;
  return ApicMessage{.delivery = static_cast<Delivery>((entry >> 8) & 7),
                     .vector = static_cast<uint8_t>(entry),
                     .level = level,
                     .logical = (entry & (1 << 11)) != 0,
                     .destination = static_cast<uint8_t>(entry >> 56)};
}

std::vector<ApicMessage> IoApic::end_of_interrupt(uint8_t vector) {
  std::vector<ApicMessage> again;
  for (unsigned pin = 0; pin < kPins; ++pin) {
    uint64_t& entry = state_.entries[pin];
    if (static_cast<uint8_t>(entry) != vector || (entry & kRemoteIrr) == 0) continue;
    entry &= ~kRemoteIrr;
    if (const auto message = service(pin)) again.push_back(*message);
  }
  return again;
}

int IoApic::pin_of(uint8_t vector) const {
  for (unsigned pin = 0; pin < kPins; ++pin)
    if (static_cast<uint8_t>(state_.entries[pin]) == vector && (state_.entries[pin] & kMasked) == 0)
      return static_cast<int>(pin);
  return -1;
}

}  // namespace slalom::vm
