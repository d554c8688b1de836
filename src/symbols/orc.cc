#include "symbols/orc.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/little_endian.h"

namespace slalom {
namespace {

constexpr uint64_t kMostRows = 8'000'000;
constexpr uint64_t kRowBytes = 6;

std::vector<uint8_t> read_range(GuestMemory& memory, uint64_t first, uint64_t end) {
  if (end <= first || end - first > kMostRows * kRowBytes) return {};
  std::vector<uint8_t> bytes(end - first);
  if (!memory.read(first, bytes)) bytes.clear();
  return bytes;
}

std::optional<std::pair<UnwindRow::Base, UnwindRow::Indirect>> base_of(unsigned reg) {
  using Base = UnwindRow::Base;
  using Indirect = UnwindRow::Indirect;
  switch (reg) {  // ORC_REG_... of the kernel's orc_types.h
    case 2:
      return std::pair{Base::Rdx, Indirect::No};
    case 3:
      return std::pair{Base::Rdi, Indirect::No};
    case 4:
      return std::pair{Base::Rbp, Indirect::No};
    case 5:
      return std::pair{Base::Rsp, Indirect::No};
    case 6:
      return std::pair{Base::R10, Indirect::No};
    case 7:
      return std::pair{Base::R13, Indirect::No};
    case 8:
      return std::pair{Base::Rbp, Indirect::After};
    case 9:
      return std::pair{Base::Rsp, Indirect::Before};
    default:
      return std::nullopt;
  }
}

UnwindRow::Kind kind_of(unsigned type, bool newer) {
  using Kind = UnwindRow::Kind;
  constexpr Kind kOlder[] = {Kind::Call, Kind::Registers, Kind::Return, Kind::Unknown};
  constexpr Kind kNewer[] = {Kind::Unknown, Kind::Unknown, Kind::Call,    Kind::Registers,
                             Kind::Return,  Kind::Unknown, Kind::Unknown, Kind::Unknown};
  return newer ? kNewer[type & 7] : kOlder[type & 3];
}

}  // namespace

std::vector<UnwindRow> read_orc(GuestMemory& memory, const SymbolTable& kernel, const Btf& types) {
  const auto first_ip = kernel.address_of("__start_orc_unwind_ip");
  const auto end_ip = kernel.address_of("__stop_orc_unwind_ip");
  const auto first = kernel.address_of("__start_orc_unwind");
  const auto end = kernel.address_of("__stop_orc_unwind");
  if (!first_ip || !end_ip || !first || !end || types.size_of("orc_entry") != kRowBytes) return {};
  const bool newer = types.field("orc_entry.signal").has_value();
  const std::vector<uint8_t> places = read_range(memory, *first_ip, *end_ip);
  const std::vector<uint8_t> rules = read_range(memory, *first, *end);
  if (places.size() / 4 != rules.size() / kRowBytes) return {};

  std::vector<UnwindRow> rows;
  for (size_t i = 0; i < places.size() / 4; ++i) {
    const auto distance = static_cast<int32_t>(get_le<uint32_t>(places, 4 * i).value_or(0));
    const auto number = [&](uint64_t at) { return get_le<uint16_t>(rules, kRowBytes * i + at).value_or(0); };
    const unsigned bits = number(4);
    UnwindRow row;
    row.address = *first_ip + 4 * i + static_cast<uint64_t>(static_cast<int64_t>(distance));
    const auto base = base_of(bits & 15);
    if (base) {
      row.kind = kind_of(bits >> 8, newer);
      row.base = base->first;
      row.indirect = base->second;
      row.offset = static_cast<int16_t>(number(0));
      const unsigned rbp = bits >> 4 & 15;  // 1: relative to the frame
      if (rbp == 1) row.rbp_offset = static_cast<int16_t>(number(2));
    }
    if (row.kind == UnwindRow::Kind::Unknown) row = {.address = row.address};
    rows.push_back(row);
  }
  std::ranges::stable_sort(rows, {}, &UnwindRow::address);
  return rows;
}

}  // namespace slalom
