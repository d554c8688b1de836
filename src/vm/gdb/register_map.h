// RegisterMap: the registers of a CPU as gdb sees them, numbered, and the XML that describes them.
//
// Always the 64-bit ones, whatever mode the guest is in: gdb cannot change its mind while it is attached.
// Segment selectors, control registers and the x87 control words can be read only: what else would have to
// change with them is for the guest to decide.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vm/pc/pc.h"

namespace slalom::vm {

class RegisterMap {
 public:
  RegisterMap();

  unsigned count() const { return static_cast<unsigned>(registers_.size()); }
  const std::string& target_xml() const { return xml_; }

  // The numbers are those of the XML; little endian.
  std::vector<uint8_t> read(Pc& pc, unsigned cpu, unsigned number) const;
  enum class Written : uint8_t { Changed, Same, Refused };
  // Refused: of another size, not to be written, or a value that no CPU can hold.
  Written write(Pc& pc, unsigned cpu, unsigned number, std::span<const uint8_t> value) const;
  size_t size(unsigned number) const { return registers_[number].bytes; }

 private:
  enum class Kind : uint8_t {
    General,
    Flags,
    Selector,
    Stack,       // of the x87
    X87Control,  // fctrl to fop
    Vector,
    Mxcsr,
    SegmentBase,
    KernelGsBase,
    Control,
    Efer,
  };
  struct One {
    Kind kind;
    unsigned index;
    unsigned bytes;
  };
  void begin_feature(const std::string& name);
  void add(Kind kind, unsigned index, unsigned bytes, const std::string& name, const std::string& type);
  void end_feature();

  std::vector<One> registers_;
  std::string xml_;
};

}  // namespace slalom::vm
