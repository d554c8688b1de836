#include "symbols/orc.h"

#include <algorithm>
#include <array>
#include <span>

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

// The meaning of register numbers, as in the kernel's orc_types.h.
struct Numbers {
  using Base = UnwindRow::Base;
  using Indirect = UnwindRow::Indirect;
  struct One {
    unsigned number;
    Base base;
    Indirect indirect;
  };
  std::array<One, 9> bases;
  unsigned frame;  // this number means that the caller's RBP was saved relative to the frame
};
constexpr unsigned kNoNumber = 16;
constexpr Numbers kOlderNumbers = {{{{kNoNumber, Numbers::Base::Rax, Numbers::Indirect::No},
                                     {2, Numbers::Base::Rdx, Numbers::Indirect::No},
                                     {3, Numbers::Base::Rdi, Numbers::Indirect::No},
                                     {4, Numbers::Base::Rbp, Numbers::Indirect::No},
                                     {5, Numbers::Base::Rsp, Numbers::Indirect::No},
                                     {6, Numbers::Base::R10, Numbers::Indirect::No},
                                     {7, Numbers::Base::R13, Numbers::Indirect::No},
                                     {8, Numbers::Base::Rbp, Numbers::Indirect::After},
                                     {9, Numbers::Base::Rsp, Numbers::Indirect::Before}}},
                                   1};
constexpr Numbers kNewerNumbers = {{{{1, Numbers::Base::Rax, Numbers::Indirect::No},
                                     {2, Numbers::Base::Rdx, Numbers::Indirect::No},
                                     {3, Numbers::Base::Rsp, Numbers::Indirect::No},
                                     {4, Numbers::Base::Rbp, Numbers::Indirect::No},
                                     {5, Numbers::Base::Rdi, Numbers::Indirect::No},
                                     {6, Numbers::Base::R10, Numbers::Indirect::No},
                                     {7, Numbers::Base::R13, Numbers::Indirect::No},
                                     {9, Numbers::Base::Rsp, Numbers::Indirect::Before},
                                     {10, Numbers::Base::Rbp, Numbers::Indirect::After}}},
                                   8};

// Returns the numbering of the rules. 7.x kernels number registers differently, and only the numbers show it.
// Almost every frame is computed from the stack pointer, which is 5 in older and 3 in newer kernels.
const Numbers& numbers_of(std::span<const uint8_t> rules) {
  std::array<size_t, 16> counts{};
  for (size_t at = 4; at < rules.size(); at += kRowBytes) ++counts[rules[at] & 15];
  return counts[3] > counts[5] ? kNewerNumbers : kOlderNumbers;
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

  const Numbers& numbers = numbers_of(rules);
  std::vector<UnwindRow> rows;
  for (size_t i = 0; i < places.size() / 4; ++i) {
    const auto distance = static_cast<int32_t>(get_le<uint32_t>(places, 4 * i).value_or(0));
    const auto number = [&](uint64_t at) { return get_le<uint16_t>(rules, kRowBytes * i + at).value_or(0); };
    const unsigned bits = number(4);
    UnwindRow row;
    row.address = *first_ip + 4 * i + static_cast<uint64_t>(static_cast<int64_t>(distance));
    const auto base = std::ranges::find(numbers.bases, bits & 15, &Numbers::One::number);
    if (base != numbers.bases.end()) {
      row.kind = kind_of(bits >> 8, newer);
      row.base = base->base;
      row.indirect = base->indirect;
      row.offset = static_cast<int16_t>(number(0));
      if ((bits >> 4 & 15) == numbers.frame) row.rbp_offset = static_cast<int16_t>(number(2));
    }
    if (row.kind == UnwindRow::Kind::Unknown) row = {.address = row.address};
    rows.push_back(row);
  }
  std::ranges::stable_sort(rows, {}, &UnwindRow::address);
  return rows;
}

}  // namespace slalom
