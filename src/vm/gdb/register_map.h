// RegisterMap: the registers of a CPU in gdb's numbering, and the XML that describes them.
//
// It always has the 64-bit registers, whatever mode the guest is in, because gdb cannot change the set while
// it is attached. Segment selectors, control registers and the x87 control words are read-only: writing them
// would require other changes that only the guest can make.
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

  // Numbers are those of the XML. Values are little endian.
  std::vector<uint8_t> read(Pc& pc, unsigned cpu, unsigned number) const;
  enum class WriteResult : uint8_t { Changed, Same, Refused };
  // Refused: wrong size, read-only, or a value that no CPU can hold.
  WriteResult write(Pc& pc, unsigned cpu, unsigned number, std::span<const uint8_t> value) const;
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
  struct Register {
    Kind kind;
    unsigned index;
    unsigned bytes;
  };
  void begin_feature(const std::string& name);
  void add(Kind kind, unsigned index, unsigned bytes, const std::string& name, const std::string& type);
  void end_feature();

  std::vector<Register> registers_;
  std::string xml_;
};

}  // namespace slalom::vm
