// Descriptors: reads descriptor tables and loads segment registers from them.
#pragma once

#include "vm/cpu/cpu.h"

namespace slalom::vm {

struct Descriptor {
  uint64_t address = 0;  // linear, of its first byte
  uint64_t low = 0;      // the eight bytes that every descriptor has
  uint64_t high = 0;     // eight more bytes of system descriptors in long mode

  Segment segment(uint16_t selector) const;
  unsigned type() const { return (low >> 40) & 15; }
  bool is_system() const { return ((low >> 44) & 1) == 0; }
  unsigned dpl() const { return (low >> 45) & 3; }
  bool present() const { return (low >> 47) & 1; }
  // For gates.
  uint16_t gate_selector() const { return static_cast<uint16_t>(low >> 16); }
  uint64_t gate_offset() const { return (low & 0xffff) | ((low >> 32) & 0xffff0000) | (high << 32); }
  unsigned gate_ist() const { return (low >> 32) & 7; }
  unsigned gate_parameters() const { return (low >> 32) & 31; }
};

// If these return false, cpu.fault is set to `vector`. Its code is the selector if the selector is to blame.
bool read_descriptor(Cpu& cpu, uint16_t selector, Vector vector, Descriptor& out);
bool read_system_descriptor(Cpu& cpu, uint16_t selector, Vector vector,
                            Descriptor& out);  // 16 bytes in long mode
bool mark_accessed(Cpu& cpu, Descriptor& descriptor);

// Loads a segment register other than CS, with all checks of the current mode.
bool load_segment(Cpu& cpu, SegmentName name, uint16_t selector);
// Loads SS for a new privilege level, as a gate or a return does.
bool load_stack_segment(Cpu& cpu, uint16_t selector, unsigned privilege, Vector vector, Segment& out);
// Sets a segment register and updates what depends on it.
void set_segment(Cpu& cpu, SegmentName name, const Segment& value);
void set_code_segment(Cpu& cpu, const Segment& value, unsigned privilege);
bool load_ldt(Cpu& cpu, uint16_t selector);
bool load_task(Cpu& cpu, uint16_t selector);

Segment real_segment(uint16_t selector, bool code);

}  // namespace slalom::vm
