// The .debug_frame section of a symbol file: the rules that find callers, in DWARF's form.
#include <algorithm>

#include "base/little_endian.h"
#include "symbols/symbol_file.h"

namespace slalom {
namespace {

using Bytes = std::vector<uint8_t>;

// Numbers of the DWARF standard.
constexpr uint8_t kAdvance = 0x40, kAdvance1 = 0x02, kAdvance2 = 0x03, kAdvance4 = 0x04, kUndefined = 0x07,
                  kSameValue = 0x08, kDefineCfa = 0x0c, kDefineCfaExpression = 0x0f, kOffsetSigned = 0x11,
                  kDeref = 0x06, kPlusConstant = 0x23, kRegisterPlus = 0x70;
constexpr uint8_t kRbp = 6, kRsp = 7, kReturn = 16;
constexpr int kUnit = -8;  // unit of offsets, in bytes
constexpr uint64_t kUserEnd = 0x800000000000;
constexpr size_t kRowsAtOnce = 64;  // a debugger reads all rows of an entry up to the one that it wants

// The position of DWARF's registers 0 to 16 in a struct pt_regs, in units of 8 bytes.
constexpr uint8_t kSaved[] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16};

void put_unsigned(Bytes& out, uint64_t value) {
  for (; value > 127; value >>= 7) out.push_back(static_cast<uint8_t>(value | 128));
  out.push_back(static_cast<uint8_t>(value));
}

void put_signed(Bytes& out, int64_t value) {
  for (; value < -64 || value > 63; value >>= 7) out.push_back(static_cast<uint8_t>(value | 128));
  out.push_back(static_cast<uint8_t>(value & 127));
}

void put_advance(Bytes& out, uint64_t distance) {
  if (distance < 64) {
    out.push_back(static_cast<uint8_t>(kAdvance | distance));
  } else if (distance < 256) {
    out.push_back(kAdvance1);
    append_le(out, static_cast<uint8_t>(distance));
  } else if (distance < 65536) {
    out.push_back(kAdvance2);
    append_le(out, static_cast<uint16_t>(distance));
  } else {
    out.push_back(kAdvance4);
    append_le(out, static_cast<uint32_t>(distance));
  }
}

void put_saved(Bytes& out, uint8_t reg, int64_t offset) {
  out.push_back(kOffsetSigned);
  put_unsigned(out, reg);
  put_signed(out, offset / kUnit);
}

void put_frame(Bytes& out, const UnwindRow& row) {
  const auto base = static_cast<uint8_t>(row.base);
  if (row.indirect == UnwindRow::Indirect::No && row.offset >= 0) {
    out.push_back(kDefineCfa);
    put_unsigned(out, base);
    put_unsigned(out, static_cast<uint64_t>(row.offset));
    return;
  }
  Bytes expression = {static_cast<uint8_t>(kRegisterPlus + base)};
  const bool before = row.indirect == UnwindRow::Indirect::Before;
  put_signed(expression, before ? 0 : row.offset);
  if (row.indirect != UnwindRow::Indirect::No) expression.push_back(kDeref);
  if (before) {
    expression.push_back(kPlusConstant);
    put_unsigned(expression, static_cast<uint64_t>(int64_t{row.offset}));
  }
  out.push_back(kDefineCfaExpression);
  put_unsigned(out, expression.size());
  out.insert(out.end(), expression.begin(), expression.end());
}

void put_rule(Bytes& out, const UnwindRow& row) {
  using Kind = UnwindRow::Kind;
  if (row.kind == Kind::Unknown) {
    put_frame(out, {.offset = 8});  // DWARF requires a frame
    out.push_back(kUndefined);
    put_unsigned(out, kReturn);
    return;
  }
  put_frame(out, row);
  switch (row.kind) {
    case Kind::Call:
      put_saved(out, kReturn, -8);
      if (row.rbp_offset != 0) {
        put_saved(out, kRbp, row.rbp_offset);
      } else {
        out.push_back(kSameValue);
        put_unsigned(out, kRbp);
      }
      break;
    case Kind::Registers:
      for (uint8_t reg = 0; reg <= kReturn; ++reg) put_saved(out, reg, 8 * kSaved[reg]);
      break;
    case Kind::Return:
      put_saved(out, kReturn, 0);
      put_saved(out, kRsp, 24);
      break;
    case Kind::Unknown:
      break;
  }
}

// Writes an entry with its length. Pads it to whole words.
void put_entry(Bytes& out, Bytes entry) {
  while (entry.size() % 8 != 4) entry.push_back(0);  // DW_CFA_nop
  append_le(out, static_cast<uint32_t>(entry.size()));
  out.insert(out.end(), entry.begin(), entry.end());
}

// Entries of interrupts are not marked as DWARF signal frames, because gdb shows no function name for those.
// As a result, code that is interrupted at the first instruction of a function is shown in the function
// before it.
void put_common(Bytes& out) {
  Bytes entry;
  append_le(entry, ~uint32_t{0});
  entry.push_back(1);
  entry.push_back(0);
  put_unsigned(entry, 1);
  put_signed(entry, kUnit);
  entry.push_back(kReturn);
  put_entry(out, std::move(entry));
}

}  // namespace

std::vector<uint8_t> make_debug_frame(std::span<const UnwindRow> rows) {
  Bytes out;
  put_common(out);
  if (!rows.empty()) {  // programs have no callers that matter here
    Bytes entry;
    append_le(entry, uint32_t{0});
    append_le(entry, uint64_t{0});
    append_le(entry, kUserEnd);
    put_rule(entry, {});
    put_entry(out, std::move(entry));
  }
  for (size_t i = 0; i + 1 < rows.size();) {
    // Rows of one entry: several of kind Call, or a single one of another kind, whose rules would otherwise
    // apply to the next rows.
    size_t end = i + 1;
    if (rows[i].kind == UnwindRow::Kind::Call)
      while (end + 1 < rows.size() && end - i < kRowsAtOnce && rows[end].kind == UnwindRow::Kind::Call) ++end;
    const uint64_t size = rows[end].address - rows[i].address;
    if (size == 0 || size > UINT32_MAX) {
      i = end;
      continue;
    }
    Bytes entry;
    append_le(entry, uint32_t{0});
    append_le(entry, rows[i].address);
    append_le(entry, size);
    put_rule(entry, rows[i]);
    uint64_t here = rows[i].address;
    for (size_t k = i + 1; k < end; ++k) {
      if (rows[k].same_rule(rows[k - 1])) continue;
      put_advance(entry, rows[k].address - here);
      put_rule(entry, rows[k]);
      here = rows[k].address;
    }
    put_entry(out, std::move(entry));
    i = end;
  }
  return out;
}

}  // namespace slalom
