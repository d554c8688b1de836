// The synthetic file of a kernel's symbols, read back with elfutils: names, and rules to find callers.
#include "symbols/symbol_file.h"

#include <elfutils/libdw.h>
#include <gelf.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "symbols/elf_symbols.h"

namespace slalom {
namespace {

constexpr uint64_t kText = 0xffffffff81000000;

using Row = UnwindRow;

std::vector<Row> rows() {
  return {{.address = kText, .kind = Row::Kind::Call, .offset = 8},
          {.address = kText + 1, .kind = Row::Kind::Call, .offset = 16, .rbp_offset = -16},
          {.address = kText + 100,
           .kind = Row::Kind::Call,
           .base = Row::Base::Rbp,
           .offset = 24,
           .rbp_offset = -24},
          {.address = kText + 1000, .kind = Row::Kind::Call, .indirect = Row::Indirect::Before, .offset = 8},
          {.address = kText + 1100, .kind = Row::Kind::Registers, .offset = 0},
          {.address = kText + 1200, .kind = Row::Kind::Return, .offset = 8},
          {.address = kText + 1300}};
}

class Read {
 public:
  explicit Read(std::vector<uint8_t> file) : file_(std::move(file)) {
    elf_version(EV_CURRENT);
    elf_ = elf_memory(reinterpret_cast<char*>(file_.data()), file_.size());
    dwarf_ = dwarf_begin_elf(elf_, DWARF_C_READ, nullptr);
    cfi_ = dwarf_ == nullptr ? nullptr : dwarf_getcfi(dwarf_);
  }
  ~Read() {
    if (dwarf_ != nullptr) dwarf_end(dwarf_);
    elf_end(elf_);
  }
  Read(const Read&) = delete;
  Read& operator=(const Read&) = delete;

  bool has_frames() const { return cfi_ != nullptr; }
  // Returns "reg+offset" of the frame, as DWARF's operations; empty if no rule covers the address.
  std::string frame(uint64_t address) {
    Dwarf_Frame* found = nullptr;
    if (dwarf_cfi_addrframe(cfi_, address, &found) != 0) return "";
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    std::string text;
    if (dwarf_frame_cfa(found, &ops, &count) == 0)
      for (size_t i = 0; i < count; ++i)
        text += std::to_string(ops[i].atom) + ":" + std::to_string(static_cast<int64_t>(ops[i].number)) +
                "," + std::to_string(static_cast<int64_t>(ops[i].number2)) + " ";
    std::free(found);
    return text;
  }
  // Returns whether a rule says that there is no caller.
  bool is_outermost(uint64_t address) {
    Dwarf_Frame* found = nullptr;
    if (dwarf_cfi_addrframe(cfi_, address, &found) != 0) return false;
    Dwarf_Op memory[3];
    Dwarf_Op* ops = memory;
    size_t count = 1;
    const int known = dwarf_frame_register(found, 16, memory, &ops, &count);
    std::free(found);
    return known == 0 && count == 0 && ops != nullptr;  // elfutils: "undefined"
  }
  // Returns where the caller's register was saved, counted from the frame; empty if it was not saved.
  std::optional<int64_t> saved(uint64_t address, int reg) {
    Dwarf_Frame* found = nullptr;
    if (dwarf_cfi_addrframe(cfi_, address, &found) != 0) return std::nullopt;
    Dwarf_Op memory[3];
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    std::optional<int64_t> result;
    if (dwarf_frame_register(found, reg, memory, &ops, &count) == 0 && count == 2 && ops[0].atom == 0x9c)
      result = static_cast<int64_t>(ops[1].number);  // DW_OP_call_frame_cfa, DW_OP_plus_uconst
    else if (count == 1 && ops != nullptr && ops[0].atom == 0x9c)
      result = 0;
    std::free(found);
    return result;
  }

 private:
  std::vector<uint8_t> file_;
  Elf* elf_ = nullptr;
  ::Dwarf* dwarf_ = nullptr;
  Dwarf_CFI* cfi_ = nullptr;
};

TEST(SymbolFile, SymbolsAreReadBack) {
  const std::vector<Symbol> symbols = {
      {.address = 0x1000, .size = 8, .name = "per_cpu", .type = 'A'},
      {.address = kText, .size = 0x100, .name = "start", .type = 'T'},
      {.address = kText + 0x100, .size = 0x10, .name = "helper", .type = 't'},
      {.address = kText + 0x100000, .size = 8, .name = "jiffies", .type = 'D'},
  };
  const std::vector<uint8_t> file = make_symbol_file(symbols, {});
  const Result<SymbolTable> read = read_elf_symbols(file);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->describe(kText + 0x104), "helper+0x4");
  EXPECT_EQ(read->address_of("start"), kText);
  EXPECT_EQ(read->address_of("jiffies"), kText + 0x100000);
}

TEST(SymbolFile, CallersAreFoundAsTheRowsSay) {
  Read read(make_symbol_file({}, rows()));
  ASSERT_TRUE(read.has_frames());
  // DW_OP_bregx (0x92) or DW_OP_bregN (0x70 + N): elfutils may use either.
  const std::string first = read.frame(kText);
  EXPECT_NE(first.find("8"), std::string::npos) << first;
  EXPECT_NE(first, read.frame(kText + 1));
  EXPECT_EQ(read.frame(kText + 1), read.frame(kText + 99));
  EXPECT_NE(read.frame(kText + 99), read.frame(kText + 100));
  EXPECT_EQ(read.saved(kText, 16), -8);
  EXPECT_EQ(read.saved(kText, 6), std::nullopt);
  EXPECT_EQ(read.saved(kText + 1, 6), -16);
  EXPECT_EQ(read.saved(kText + 100, 6), -24);
  EXPECT_NE(read.frame(kText + 1000).find("6:"), std::string::npos) << "no dereference";
  EXPECT_EQ(read.saved(kText + 1100, 16), 128);
  EXPECT_EQ(read.saved(kText + 1100, 7), 152);
  EXPECT_EQ(read.saved(kText + 1100, 6), 32);
  EXPECT_EQ(read.saved(kText + 1200, 16), 0);
  EXPECT_EQ(read.saved(kText + 1200, 7), 24);
}

TEST(SymbolFile, ProgramsHaveNoCallers) {
  Read read(make_symbol_file({}, rows()));
  EXPECT_TRUE(read.is_outermost(0x402b9c));
  EXPECT_TRUE(read.is_outermost(0x7fff00001000));
  EXPECT_FALSE(read.is_outermost(kText));
}

TEST(SymbolFile, NothingIsKnownBehindTheLastRow) {
  Read read(make_symbol_file({}, rows()));
  EXPECT_EQ(read.frame(kText + 5000), "");
  EXPECT_EQ(read.frame(kText - 1), "");
}

}  // namespace
}  // namespace slalom
