#include "symbols/kallsyms.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/little_endian.h"

namespace slalom {
namespace {

using ByteView = std::span<const uint8_t>;

constexpr size_t kTokens = 256;
constexpr size_t kTokenIndexSize = kTokens * 2;
constexpr uint64_t kNamesPerMarker = 256;
constexpr uint64_t kMaxSymbolName = 1024;             // KSYM_NAME_LEN is 512 today
constexpr uint64_t kMinName = 2, kMaxName = 1 + 512;  // bytes of a packed name
constexpr uint64_t kFewestMarkers = 3;                // fewer do not identify the structure
// Limits for images that contain many false tables: they end the search instead of prolonging it.
constexpr int kMaxTokenTables = 16, kMaxMarkerTables = 64;
constexpr uint64_t kKernelHalf = 0xffff'8000'0000'0000;

constexpr uint64_t align(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

// Reads outside the data return zeros. Every structure is checked for its required contents anyway.
uint32_t u16(ByteView data, uint64_t at) {
  return get_le<uint16_t>(data, at).value_or(0);
}
uint32_t u32(ByteView data, uint64_t at) {
  return get_le<uint32_t>(data, at).value_or(0);
}
uint64_t u64(ByteView data, uint64_t at) {
  return get_le<uint64_t>(data, at).value_or(0);
}

struct Tokens {
  uint64_t table = 0, index = 0, end = 0;  // offsets in the data
  std::array<std::string_view, kTokens> text;
};

// Returns the tokens if there is a token index at this place, with its table before it.
std::optional<Tokens> tokens_at(ByteView data, uint64_t index) {
  if (u16(data, index) != 0) return std::nullopt;
  for (size_t i = 1; i < kTokens; ++i) {
    const uint32_t previous = u16(data, index + 2 * i - 2), next = u16(data, index + 2 * i);
    // A token has at least one character and its terminating zero.
    if (next < previous + 2 || next > previous + kMaxSymbolName) return std::nullopt;
  }
  const uint64_t last = u16(data, index + kTokenIndexSize - 2);
  // The table ends with the last token and up to seven bytes of alignment for the index.
  for (uint64_t size = last + 2; size < last + kMaxSymbolName && size <= index; ++size) {
    const uint64_t table = index - size;
    Tokens tokens{.table = table, .index = index, .end = index + kTokenIndexSize};
    bool fits = true;
    for (size_t i = 0; i < kTokens && fits; ++i) {
      const uint64_t start = table + u16(data, index + 2 * i);
      uint64_t end = start;
      while (end < index && data[end] > ' ' && data[end] < 0x7f) ++end;
      const bool is_last = i + 1 == kTokens;
      const uint64_t next = is_last ? index : table + u16(data, index + 2 * i + 2);
      fits = end > start && end < next && data[end] == 0 && (is_last ? next - end <= 8 : next == end + 1) &&
             std::all_of(data.begin() + static_cast<ptrdiff_t>(end),
                         data.begin() + static_cast<ptrdiff_t>(next), [](uint8_t byte) { return byte == 0; });
      tokens.text[i] = {reinterpret_cast<const char*>(data.data()) + start, end - start};
    }
    if (fits) return tokens;
  }
  return std::nullopt;
}

std::optional<Tokens> find_tokens(ByteView data, uint64_t from) {
  for (uint64_t at = align(from, 4); at + kTokenIndexSize <= data.size(); at += 4) {
    if (data[at] != 0 || data[at + 1] != 0 || data[at + 3] != 0) continue;
    if (std::optional<Tokens> tokens = tokens_at(data, at)) return tokens;
  }
  return std::nullopt;
}

// Reads one packed name: token numbers, after their count in one byte, or in two if there are more than 127.
std::optional<ByteView> packed_name(ByteView data, uint64_t& at, uint64_t end) {
  if (at >= end) return std::nullopt;
  uint64_t length = data[at++];
  if ((length & 0x80) != 0) {
    if (at >= end) return std::nullopt;
    length = (length & 0x7f) | static_cast<uint64_t>(data[at++]) << 7;
  }
  if (length == 0 || length > end - at) return std::nullopt;
  const ByteView name = data.subspan(at, length);
  at += length;
  return name;
}

struct Names {
  uint64_t count = 0;
  uint64_t count_at = 0, start = 0, markers = 0;  // offsets in the data
};

// Returns whether the names end where the markers begin, aligned, and agree with the last marker.
bool last_names_fit(ByteView data, const Names& names) {
  const uint64_t markers = (names.count + kNamesPerMarker - 1) / kNamesPerMarker;
  uint64_t at = names.start + u32(data, names.markers + 4 * (markers - 1));
  for (uint64_t i = (markers - 1) * kNamesPerMarker; i < names.count; ++i)
    if (!packed_name(data, at, names.markers)) return false;
  return names.markers - at < 8;
}

// `longest`: how many numbers, from `markers` on, could be markers.
std::optional<Names> names_before(ByteView data, uint64_t markers, uint64_t longest) {
  const auto try_count = [&](uint64_t count_at, uint64_t start) -> std::optional<Names> {
    const uint64_t count = u32(data, count_at);
    const uint64_t needed = (count + kNamesPerMarker - 1) / kNamesPerMarker;
    // The number after the markers may look like one more marker.
    if (needed < kFewestMarkers || needed > longest || needed + 2 < longest) return std::nullopt;
    const Names names{.count = count, .count_at = count_at, .start = start, .markers = markers};
    if (!last_names_fit(data, names)) return std::nullopt;
    return names;
  };
  const uint64_t reach = u32(data, markers + 4 * (longest - 1)) + kNamesPerMarker * kMaxName;
  for (uint64_t start = markers - markers % 4; start >= 8 && markers - start <= reach; start -= 4) {
    if (u32(data, start - 4) != 0) {
      if (const auto names = try_count(start - 4, start)) return names;
    } else if (start % 8 == 0) {
      if (const auto names = try_count(start - 8, start)) return names;
    }
  }
  return std::nullopt;
}

std::optional<Names> find_names(ByteView data, const Tokens& tokens) {
  uint64_t run = 0;  // how many numbers from here on rise as markers do
  int tries = 0;
  for (uint64_t at = tokens.table - tokens.table % 4; at >= 4;) {
    at -= 4;
    const uint64_t rise = uint64_t{u32(data, at + 4)} - u32(data, at);
    const bool rises =
        at + 8 <= tokens.table && rise >= kNamesPerMarker * kMinName && rise <= kNamesPerMarker * kMaxName;
    run = rises ? run + 1 : 1;
    if (run < kFewestMarkers || u32(data, at) != 0) continue;
    if (const auto names = names_before(data, at, run)) return names;
    if (++tries == kMaxMarkerTables) break;
  }
  return std::nullopt;
}

// Returns the names of all symbols, with their types; nothing if a marker disagrees.
std::optional<std::vector<Symbol>> unpack_names(ByteView data, const Tokens& tokens, const Names& names) {
  std::vector<Symbol> symbols;
  uint64_t at = names.start;
  for (uint64_t i = 0; i < names.count; ++i) {
    const uint64_t marker = names.markers + i / kNamesPerMarker * 4;
    if (i % kNamesPerMarker == 0 && at - names.start != u32(data, marker)) return std::nullopt;
    const std::optional<ByteView> packed = packed_name(data, at, names.markers);
    if (!packed) return std::nullopt;
    Symbol& symbol = symbols.emplace_back();
    for (const uint8_t token : *packed) symbol.name += tokens.text[token];
    if (symbol.name.size() < 2 || symbol.name.size() > kMaxSymbolName) return std::nullopt;
    symbol.type = symbol.name.front();
    symbol.name.erase(0, 1);
  }
  return symbols;
}

// The three ways to compute addresses from offsets. Each gives a sorted table, or it is the wrong one.
enum class OffsetKind {
  Mixed,     // negative offsets count from the base; others are plain numbers (per-CPU variables)
  FromBase,  // all offsets count from the base
  FromSelf,  // each offset counts from its own address
};

bool set_addresses(ByteView data, uint64_t address, uint64_t offsets, uint64_t base, OffsetKind kind,
                   std::vector<Symbol>& symbols) {
  if (offsets > data.size() || (data.size() - offsets) / 4 < symbols.size()) return false;
  if (kind != OffsetKind::FromSelf && base < kKernelHalf) return false;
  uint64_t in_kernel = 0;
  uint64_t previous = 0;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const uint32_t raw = u32(data, offsets + 4 * i);
    const auto offset = static_cast<int64_t>(static_cast<int32_t>(raw));
    Symbol& symbol = symbols[i];
    symbol.is_offset = false;
    switch (kind) {
      case OffsetKind::Mixed:
        symbol.is_offset = offset >= 0;
        symbol.address = offset >= 0 ? raw : base - 1 - static_cast<uint64_t>(offset);
        break;
      case OffsetKind::FromBase:
        symbol.address = base + raw;
        break;
      case OffsetKind::FromSelf:
        symbol.address = address + offsets + 4 * i + static_cast<uint64_t>(offset);
        break;
    }
    if (symbol.address < previous) return false;
    previous = symbol.address;
    if (!symbol.is_offset && symbol.address >= kKernelHalf) ++in_kernel;
  }
  return in_kernel > symbols.size() / 2;
}

bool find_addresses(ByteView data, uint64_t address, const Tokens& tokens, const Names& names,
                    std::vector<Symbol>& symbols) {
  const uint64_t size = align(4 * names.count, 8);
  // Up to 6.3: before the names.
  const uint64_t base_at = names.count_at - 8;
  if (names.count_at >= 8 + size && names.count_at % 8 == 0) {
    for (const OffsetKind kind : {OffsetKind::Mixed, OffsetKind::FromBase})
      if (set_addresses(data, address, base_at - size, u64(data, base_at), kind, symbols)) return true;
  }
  // Later: after the tokens.
  for (const OffsetKind kind : {OffsetKind::Mixed, OffsetKind::FromBase}) {
    const uint64_t offsets = align(tokens.end, 8);
    if (set_addresses(data, address, offsets, u64(data, offsets + size), kind, symbols)) return true;
  }
  return set_addresses(data, address, align(tokens.end, 4), 0, OffsetKind::FromSelf, symbols);
}

}  // namespace

Result<SymbolTable> read_kallsyms(std::span<const uint8_t> data, uint64_t address) {
  int tables = 0;
  std::optional<Tokens> tokens = find_tokens(data, 0);
  for (; tokens && tables < kMaxTokenTables; tokens = find_tokens(data, tokens->end)) {
    ++tables;
    const std::optional<Names> names = find_names(data, *tokens);
    if (!names) continue;
    std::optional<std::vector<Symbol>> symbols = unpack_names(data, *tokens, *names);
    if (symbols && find_addresses(data, address, *tokens, *names, *symbols))
      return SymbolTable(std::move(*symbols));
  }
  if (tables != 0)
    return error(
        "this kernel's own symbol table has a layout that slalom does not know; give its vmlinux with "
        "symbols");
  return error("this kernel has no symbol table of its own (CONFIG_KALLSYMS); give its vmlinux with symbols");
}

}  // namespace slalom
