// Writes the symbol table of a kernel as the kernel's build does, for tests of the reader: a second
// description of the format, from the writer's side. A token table with a few real tokens packs the names.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/little_endian.h"
#include "symbols/symbol_table.h"

namespace slalom {

enum class KallsymsLayout { Old, OldWithNumbers, New, NewFromBase, NewFromSelf };

class KallsymsImage {
 public:
  static constexpr uint64_t kAddress = 0xffffffff82000000;
  static constexpr uint64_t kBase = 0xffffffff81000000;

  // `symbols` must be sorted by address. `junk` bytes of other data come before and after.
  KallsymsImage(const std::vector<Symbol>& symbols, KallsymsLayout layout, size_t junk = 4096)
      : symbols_(symbols), layout_(layout), alignment_(layout == KallsymsLayout::NewFromSelf ? 4 : 8) {
    add_junk(junk);
    make_tokens();
    const bool old = layout == KallsymsLayout::Old || layout == KallsymsLayout::OldWithNumbers;
    if (old) add_offsets();
    add_names();
    if (layout == KallsymsLayout::OldWithNumbers) add_numbers();
    add_tokens();
    if (!old) add_offsets();
    if (!old) add_numbers();
    add_junk(junk);
  }

  std::vector<uint8_t> bytes;

 private:
  void align() { bytes.resize((bytes.size() + alignment_ - 1) / alignment_ * alignment_); }
  void add_junk(size_t size) {
    for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<uint8_t>(i * i * 31 + i / 7));
    align();
  }
  void make_tokens() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const auto letter = static_cast<char>(i);
      // Printable characters stand for themselves. The other numbers are free for pairs and words.
      tokens_[i] = letter > ' ' && letter < 0x7f ? std::string(1, letter) : "k" + std::to_string(i) + "_";
    }
    tokens_[1] = "lock";
    tokens_[2] = "_raw_spin_";
  }
  std::vector<uint8_t> pack(const std::string& name) const {
    std::vector<uint8_t> packed;
    for (size_t at = 0; at < name.size();) {
      if (name.compare(at, 10, tokens_[2]) == 0) {
        packed.push_back(2);
        at += 10;
      } else if (name.compare(at, 4, tokens_[1]) == 0) {
        packed.push_back(1);
        at += 4;
      } else {
        packed.push_back(static_cast<uint8_t>(name[at++]));
      }
    }
    return packed;
  }
  void add_names() {
    append_le<uint32_t>(bytes, static_cast<uint32_t>(symbols_.size()));
    align();
    const size_t start = bytes.size();
    std::vector<uint32_t> markers;
    for (size_t i = 0; i < symbols_.size(); ++i) {
      if (i % 256 == 0) markers.push_back(static_cast<uint32_t>(bytes.size() - start));
      const std::vector<uint8_t> packed = pack(symbols_[i].type + symbols_[i].name);
      if (packed.size() > 0x7f) {
        bytes.push_back(static_cast<uint8_t>(packed.size() & 0x7f) | 0x80);
        bytes.push_back(static_cast<uint8_t>(packed.size() >> 7));
      } else {
        bytes.push_back(static_cast<uint8_t>(packed.size()));
      }
      bytes.insert(bytes.end(), packed.begin(), packed.end());
    }
    align();
    for (const uint32_t marker : markers) append_le(bytes, marker);
    align();
  }
  void add_numbers() {
    for (size_t i = 0; i < symbols_.size(); ++i)
      for (const int shift : {16, 8, 0})
        bytes.push_back(static_cast<uint8_t>((i * 7919 % symbols_.size()) >> shift));
    align();
  }
  void add_tokens() {
    std::vector<uint16_t> index;
    const size_t start = bytes.size();
    for (const std::string& token : tokens_) {
      index.push_back(static_cast<uint16_t>(bytes.size() - start));
      bytes.insert(bytes.end(), token.c_str(), token.c_str() + token.size() + 1);
    }
    align();
    for (const uint16_t at : index) append_le(bytes, at);
    align();
  }
  void add_offsets() {
    for (const Symbol& symbol : symbols_) {
      uint64_t offset = symbol.address - kBase;
      if (layout_ == KallsymsLayout::NewFromSelf) {
        offset = symbol.address - (kAddress + bytes.size());
      } else if (layout_ != KallsymsLayout::NewFromBase) {
        offset = symbol.is_offset ? symbol.address : kBase - 1 - symbol.address;
      }
      append_le<uint32_t>(bytes, static_cast<uint32_t>(offset));
    }
    align();
    if (layout_ != KallsymsLayout::NewFromSelf) append_le<uint64_t>(bytes, kBase);
  }

  const std::vector<Symbol>& symbols_;
  KallsymsLayout layout_;
  size_t alignment_;
  std::array<std::string, 256> tokens_;
};

// Returns `count` functions. Some share an address, some have none, and some have long names.
inline std::vector<Symbol> some_kernel_symbols(size_t count, bool with_offsets) {
  std::vector<Symbol> symbols;
  for (size_t i = 0; i < count; ++i) {
    std::string name = (i % 3 == 0   ? "_raw_spin_lock_"
                        : i % 3 == 1 ? "mutex_lock"
                                     : "sys_") +
                       std::to_string(i % 500);
    if (i % 101 == 0) name += std::string(150 + i % 300, 'x');
    const bool is_offset = with_offsets && i < count / 8;
    const uint64_t address = is_offset ? i * 16 : KallsymsImage::kBase + i / 4 * 64 + (i % 4 == 3 ? 32 : 0);
    symbols.push_back(
        {.address = address, .name = name, .type = i % 2 == 0 ? 't' : 'D', .is_offset = is_offset});
  }
  return symbols;
}

}  // namespace slalom
