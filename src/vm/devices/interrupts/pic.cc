#include "vm/devices/interrupts/pic.h"

namespace slalom::vm {

namespace {

constexpr uint16_t kMasterCommand = 0x20, kMasterData = 0x21, kSlaveCommand = 0xa0, kSlaveData = 0xa1;
constexpr uint16_t kMasterLevel = 0x4d0, kSlaveLevel = 0x4d1;
constexpr unsigned kCascade = 2;
constexpr uint8_t kMasterLevelWritable = 0xf8,
                  kSlaveLevelWritable = 0xde;  // all but timer, keyboard, cascade, RTC, FPU

uint8_t bit(unsigned line) {
  return static_cast<uint8_t>(1u << line);
}

// 0 is the highest priority.
unsigned rank(uint8_t lowest, unsigned line) {
  return (line - lowest - 1u) & 7;
}

int best_line(uint8_t lowest, uint8_t lines) {
  for (unsigned i = 1; i <= 8; ++i)
    if (const unsigned line = (lowest + i) & 7; (lines >> line & 1) != 0) return static_cast<int>(line);
  return -1;
}

}  // namespace

Pic::Pic() {
  state_.chips[kMaster].vector_base = 0x08;
  state_.chips[kMaster].lines = bit(0);  // the timer's output is high at rest
  state_.chips[kSlave].vector_base = 0x70;
}

bool Pic::valid(const State& state) {
  for (const Chip& chip : state.chips)
    if (chip.lowest > 7 || chip.init_step > 4 || chip.init_step == 1) return false;
  return true;
}

void Pic::set_state(const State& state) {
  state_ = state;
  refresh();
}

int Pic::ready_line(const Chip& chip, bool is_master) {
  const int request = best_line(chip.lowest, chip.request & static_cast<uint8_t>(~chip.mask));
  if (request < 0) return -1;
  uint8_t blocking = chip.in_service;
  // In special mask mode, only the masks block interrupts. A fully nested master allows further interrupts of
  // its slave.
  if (chip.special_mask) blocking &= static_cast<uint8_t>(~chip.mask);
  if (chip.special_nested && is_master) blocking &= static_cast<uint8_t>(~bit(kCascade));
  const int serving = best_line(chip.lowest, blocking);
  if (serving < 0) return request;
  const bool first =
      rank(chip.lowest, static_cast<unsigned>(request)) < rank(chip.lowest, static_cast<unsigned>(serving));
  return first ? request : -1;
}

void Pic::set_chip_line(Chip& chip, unsigned line, bool asserted) {
  const uint8_t mask = bit(line);
  const bool rose = asserted && (chip.lines & mask) == 0;
  chip.lines = static_cast<uint8_t>(asserted ? chip.lines | mask : chip.lines & ~mask);
  if (is_level(chip, line))
    chip.request = static_cast<uint8_t>(asserted ? chip.request | mask : chip.request & ~mask);
  else if (rose)
    chip.request |= mask;
}

// The slave's output is line 2 of the master. Called after every change, so that no other code must keep them
// consistent.
void Pic::refresh() {
  Chip& master = state_.chips[kMaster];
  const bool slave_ready = ready_line(state_.chips[kSlave], false) >= 0;
  master.lines =
      static_cast<uint8_t>(slave_ready ? master.lines | bit(kCascade) : master.lines & ~bit(kCascade));
  master.request =
      static_cast<uint8_t>(slave_ready ? master.request | bit(kCascade) : master.request & ~bit(kCascade));
  output_ = ready_line(master, true) >= 0;
}

void Pic::set_line(unsigned irq, bool asserted) {
  if (irq > 15 || irq == kCascade) return;
  set_chip_line(state_.chips[irq / 8], irq % 8, asserted);
  refresh();
}

void Pic::enter_service(Chip& chip, unsigned line) {
  if (!is_level(chip, line)) chip.request &= static_cast<uint8_t>(~bit(line));
  if (!chip.auto_end)
    chip.in_service |= bit(line);
  else if (chip.rotate_on_auto_end)
    chip.lowest = static_cast<uint8_t>(line);
}

uint8_t Pic::next_vector() const {
  const Chip& master = state_.chips[kMaster];
  const Chip& slave = state_.chips[kSlave];
  const int line = ready_line(master, true);
  if (line != static_cast<int>(kCascade))
    return static_cast<uint8_t>(master.vector_base + (line < 0 ? 7 : line));
  const int behind = ready_line(slave, false);
  return static_cast<uint8_t>(slave.vector_base + (behind < 0 ? 7 : behind));
}

uint8_t Pic::acknowledge() {
  const uint8_t vector = next_vector();  // the spurious vector if there is no request
  Chip& master = state_.chips[kMaster];
  if (const int line = ready_line(master, true); line >= 0) {
    const int behind = ready_line(state_.chips[kSlave], false);
    enter_service(master, static_cast<unsigned>(line));
    if (line == static_cast<int>(kCascade) && behind >= 0)
      enter_service(state_.chips[kSlave], static_cast<unsigned>(behind));
  }
  refresh();
  return vector;
}

bool Pic::read(uint16_t port, uint8_t& value) const {
  const auto command = [](const Chip& chip) {
    return chip.reads_in_service ? chip.in_service : chip.request;
  };
  switch (port) {
    case kMasterCommand:
      value = command(state_.chips[kMaster]);
      return true;
    case kSlaveCommand:
      value = command(state_.chips[kSlave]);
      return true;
    case kMasterData:
      value = state_.chips[kMaster].mask;
      return true;
    case kSlaveData:
      value = state_.chips[kSlave].mask;
      return true;
    case kMasterLevel:
      value = state_.chips[kMaster].level;
      return true;
    case kSlaveLevel:
      value = state_.chips[kSlave].level;
      return true;
    default:
      return false;
  }
}

bool Pic::write(uint16_t port, uint8_t value) {
  bool known = true;
  switch (port) {
    case kMasterCommand:
      known = write_command(state_.chips[kMaster], value);
      break;
    case kSlaveCommand:
      known = write_command(state_.chips[kSlave], value);
      break;
    case kMasterData:
      known = write_data(state_.chips[kMaster], value);
      break;
    case kSlaveData:
      known = write_data(state_.chips[kSlave], value);
      break;
    case kMasterLevel:
      state_.chips[kMaster].level = value & kMasterLevelWritable;
      break;
    case kSlaveLevel:
      state_.chips[kSlave].level = value & kSlaveLevelWritable;
      break;
    default:
      return false;
  }
  refresh();
  return known;
}

bool Pic::write_command(Chip& chip, uint8_t value) {
  if ((value & 0x10) != 0) {  // initialisation word 1
    Chip fresh;
    fresh.lines = chip.lines;
    fresh.level = chip.level;
    fresh.vector_base = chip.vector_base;
    fresh.mask = 0;
    fresh.init_step = 2;
    fresh.wants_word4 = (value & 0x01) != 0;
    fresh.single = (value & 0x02) != 0;
    fresh.all_level = (value & 0x08) != 0;
    for (unsigned line = 0; line < 8; ++line)
      if (is_level(fresh, line)) fresh.request |= fresh.lines & bit(line);
    chip = fresh;
    return fresh.wants_word4;  // without word 4 the chip would use 8080 mode
  }
  if ((value & 0x08) != 0) {                // operation command word 3
    if ((value & 0x04) != 0) return false;  // polling
    if ((value & 0x02) != 0) chip.reads_in_service = (value & 0x01) != 0;
    if ((value & 0x40) != 0) chip.special_mask = (value & 0x20) != 0;
    return true;
  }
  const auto named = static_cast<uint8_t>(value & 7);  // operation command word 2
  const int serving = best_line(chip.lowest, chip.in_service);
  const auto finish = [&](int line) {
    if (line >= 0) chip.in_service &= static_cast<uint8_t>(~bit(static_cast<unsigned>(line)));
  };
  switch (value >> 5) {
    case 0:
      chip.rotate_on_auto_end = false;
      break;
    case 1:
      finish(serving);
      break;
    case 2:
      break;
    case 3:
      finish(named);
      break;
    case 4:
      chip.rotate_on_auto_end = true;
      break;
    case 5:
      finish(serving);
      if (serving >= 0) chip.lowest = static_cast<uint8_t>(serving);
      break;
    case 6:
      chip.lowest = named;
      break;
    default:
      finish(named);
      chip.lowest = named;
  }
  return true;
}

bool Pic::write_data(Chip& chip, uint8_t value) {
  switch (chip.init_step) {
    case 2:
      chip.vector_base = value & 0xf8;
      chip.init_step = chip.single ? 4 : 3;
      return true;
    case 3:  // the wiring of the chips, which is that of a PC
      chip.init_step = 4;
      return true;
    case 4:
      chip.auto_end = (value & 0x02) != 0;
      chip.special_nested = (value & 0x10) != 0;
      chip.init_step = 0;
      return (value & 0x01) != 0;  // 8086 mode
    default:
      chip.mask = value;
      return true;
  }
}

}  // namespace slalom::vm
