// Hand-written ORC tables as kernels have them in memory: places and rules, each at its address.
#pragma once

#include <cstdint>
#include <vector>

#include "base/little_endian.h"
#include "symbols/btf.h"
#include "unit/symbols/btf_section.h"

namespace slalom {

struct OrcTables {
  static constexpr uint64_t kText = 0xffffffff81000000, kPlaces = 0xffffffff82000000,
                            kRules = 0xffffffff82001000;

  void add(uint64_t address, int16_t offset, int16_t rbp, unsigned bits) {
    append_le(places, static_cast<uint32_t>(address - (kPlaces + places.size())));
    append_le(rules, static_cast<uint16_t>(offset));
    append_le(rules, static_cast<uint16_t>(rbp));
    append_le(rules, static_cast<uint16_t>(bits));
  }

  std::vector<uint8_t> places, rules;
};

// The numbers in the rules for the same code: of kernels before 6.4, since 6.4, and of 7.x.
struct OrcForm {
  bool newer;
  unsigned sp, bp, previous, before, call, registers, partial;

  static constexpr unsigned bits(unsigned frame, unsigned rbp, unsigned type) {
    return frame | rbp << 4 | type << 8;
  }
  // Seven rows, the last of them not in order.
  OrcTables tables() const {
    OrcTables made;
    made.add(OrcTables::kText, 8, 0, bits(sp, 0, call));
    made.add(OrcTables::kText + 1, 16, -16, bits(sp, previous, call));
    made.add(OrcTables::kText + 9, 16, -16, bits(bp, previous, call));
    made.add(OrcTables::kText + 40, 0, 0, bits(sp, 0, registers));
    made.add(OrcTables::kText + 50, 8, 0, bits(sp, 0, partial));
    made.add(OrcTables::kText + 60, 8, 0, bits(before, 0, call));
    made.add(OrcTables::kText + 30, 0, 0, 0);
    return made;
  }
};
inline constexpr OrcForm kOrcForms[] = {
    {false, 5, 4, 1, 9, 0, 1, 2}, {true, 5, 4, 1, 9, 2, 3, 4}, {true, 3, 4, 8, 9, 2, 3, 4}};

// Types by which read_orc() distinguishes the two forms of entries.
inline Result<Btf> orc_types(bool newer) {
  BtfSection section;
  const uint32_t number = section.plain(BtfSection::Int, "int", 4);
  section.members(BtfSection::Struct, "orc_entry", 6,
                  {{"sp_offset", number, 0}, {newer ? "signal" : "end", number, 32}});
  return Btf::parse(section.bytes());
}

}  // namespace slalom
