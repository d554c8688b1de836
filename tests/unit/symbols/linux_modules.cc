// Module lists in fake memory, sound and damaged. tests/vm/symbols_test.cc reads those of real kernels.
#include "symbols/linux_modules.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "base/little_endian.h"
#include "unit/symbols/btf_section.h"

namespace slalom {
namespace {

constexpr uint64_t kMemory = 0xffffffffc0000000;
constexpr uint64_t kHead = kMemory + 0x10;  // head of the list

// Unwritten bytes are zero. Memory outside cannot be read.
class FakeMemory final : public GuestMemory {
 public:
  bool read(uint64_t address, std::span<uint8_t> out) override {
    const auto part = part_of(bytes, address - kMemory, out.size());
    if (part) std::memcpy(out.data(), part->data(), out.size());
    return part.has_value();
  }
  void number(uint64_t address, uint64_t value, unsigned size = 8) {
    for (unsigned i = 0; i < size; ++i) bytes[address - kMemory + i] = static_cast<uint8_t>(value >> (8 * i));
  }
  void text(uint64_t address, std::string_view text) {
    std::memcpy(&bytes[address - kMemory], text.data(), text.size());
  }

  std::vector<uint8_t> bytes = std::vector<uint8_t>(0x8000);
};

// struct module in this test: state 0, list 8, name 24 (8 bytes), kallsyms 32, then the regions.
constexpr uint64_t kState = 0, kList = 8, kName = 24, kKallsyms = 32, kRegions = 40;

Btf module_types(bool new_regions) {
  BtfSection btf;
  const uint32_t word = btf.plain(BtfSection::Int, "unsigned int", 4);
  const uint32_t wide = btf.plain(BtfSection::Int, "unsigned long", 8);
  const uint32_t letter = btf.plain(BtfSection::Int, "char", 1);
  const uint32_t name = btf.array(letter, 8);
  const uint32_t list =
      btf.members(BtfSection::Struct, "list_head", 16, {{"next", wide, 0}, {"prev", wide, 64}});
  const uint32_t region =
      btf.members(BtfSection::Struct, "region", 16, {{"base", wide, 0}, {"size", word, 64}});
  const uint32_t regions = btf.array(region, 2);
  btf.members(BtfSection::Struct, "mod_kallsyms", 32,
              {{"symtab", wide, 0}, {"num_symtab", word, 64}, {"strtab", wide, 128}, {"typetab", wide, 192}});
  btf.values(BtfSection::Enum, "module_state", {{"MODULE_STATE_LIVE", 0}, {"MODULE_STATE_UNFORMED", 3}});
  std::vector<BtfSection::Member> members = {{"state", word, kState * 8},
                                             {"list", list, kList * 8},
                                             {"name", name, kName * 8},
                                             {"kallsyms", wide, kKallsyms * 8}};
  if (new_regions) {
    members.push_back({"mem", regions, kRegions * 8});
  } else {
    members.push_back({"core_layout", region, kRegions * 8});
    members.push_back({"init_layout", region, (kRegions + 16) * 8});
  }
  btf.members(BtfSection::Struct, "module", 80, members);
  return *Btf::parse(btf.bytes());
}

SymbolTable kernel_symbols() {
  return SymbolTable({{.address = kHead, .name = "modules", .type = 'd'},
                      {.address = 0xffffffff81000000, .name = "_text", .type = 'T'}});
}

constexpr uint64_t kFirst = kMemory + 0x1000, kSecond = kMemory + 0x2000, kTable = kMemory + 0x3000;
constexpr uint64_t kEntries = kMemory + 0x3100, kStrings = kMemory + 0x3ff0, kLetters = kMemory + 0x3800;

// Two modules: xfs with two symbols, whose strings cross a page, and one that has only a name so far.
FakeMemory two_modules() {
  FakeMemory memory;
  memory.number(kHead, kFirst + kList);
  memory.number(kFirst + kList, kSecond + kList);
  memory.number(kSecond + kList, kHead);
  memory.text(kFirst + kName, "xfs");
  memory.number(kFirst + kKallsyms, kTable);
  memory.number(kFirst + kRegions, kMemory + 0x5000);
  memory.number(kFirst + kRegions + 8, 0x1000, 4);
  memory.number(kTable, kEntries);
  memory.number(kTable + 8, 3, 4);
  memory.number(kTable + 16, kStrings);
  memory.number(kTable + 24, kLetters);
  memory.text(kStrings, std::string_view("\0xfs_mount\0xfs_unmount\0", 23));
  memory.text(kLetters, "?Td");
  memory.number(kEntries + 24, 1, 4);
  memory.number(kEntries + 24 + 8, kMemory + 0x5000);
  memory.number(kEntries + 24 + 16, 0x40);
  memory.number(kEntries + 48, 11, 4);
  memory.number(kEntries + 48 + 8, kMemory + 0x5100);
  memory.text(kSecond + kName, "new");
  memory.number(kSecond + kState, 3, 4);
  memory.number(kSecond + kKallsyms, 1);  // not filled in: the reader must not follow it
  return memory;
}

TEST(LinuxModules, SymbolsAndRegionsOfBothLayouts) {
  for (const bool new_regions : {false, true}) {
    FakeMemory memory = two_modules();
    const auto modules = read_linux_modules(memory, kernel_symbols(), module_types(new_regions));
    ASSERT_TRUE(modules.ok()) << modules.error().message;
    ASSERT_EQ(modules->size(), 2u);
    const LinuxModule& xfs = modules->front();
    EXPECT_EQ(xfs.name, "xfs");
    EXPECT_EQ(xfs.regions, (std::vector<LinuxModule::Region>{{kMemory + 0x5000, 0x1000}}));
    EXPECT_EQ(
        xfs.symbols,
        (std::vector<Symbol>{
            {.address = kMemory + 0x5000, .size = 0x40, .name = "xfs_mount", .module = "xfs", .type = 't'},
            {.address = kMemory + 0x5100, .name = "xfs_unmount", .module = "xfs", .type = 'd'}}));
    EXPECT_EQ(modules->back().name, "new");
    EXPECT_TRUE(modules->back().symbols.empty());
    const SymbolTable all = with_modules(kernel_symbols(), *modules);
    EXPECT_EQ(all.describe(kMemory + 0x5012), "xfs:xfs_mount+0x12");
    EXPECT_EQ(all.address_of("xfs:xfs_unmount"), kMemory + 0x5100);
  }
}

TEST(LinuxModules, AnEmptyListIsNoModules) {
  FakeMemory memory;
  memory.number(kHead, kHead);
  const auto modules = read_linux_modules(memory, kernel_symbols(), module_types(true));
  ASSERT_TRUE(modules.ok()) << modules.error().message;
  EXPECT_TRUE(modules->empty());
}

TEST(LinuxModules, DamageIsNamed) {
  const std::vector<std::pair<std::string, std::function<void(FakeMemory&)>>> damages = {
      {"does not end", [](FakeMemory& m) { m.number(kSecond + kList, kFirst + kList); }},
      {"a pointer leads nowhere", [](FakeMemory& m) { m.bytes.resize(8); }},
      {"an entry is no module", [](FakeMemory& m) { m.number(kSecond + kList, 0x123); }},
      {"an entry is no module", [](FakeMemory& m) { m.text(kFirst + kName, "no end in"); }},
      {"claims 4294967295 symbols", [](FakeMemory& m) { m.number(kTable + 8, ~uint64_t{0}, 4); }},
      {"symbol table is not in memory", [](FakeMemory& m) { m.number(kTable, ~uint64_t{0} - 4); }},
      {"symbol table is not in memory", [](FakeMemory& m) { m.number(kFirst + kKallsyms, 8); }},
      {"a symbol has no name", [](FakeMemory& m) { m.number(kTable + 16, ~uint64_t{0}); }},
      {"a region cannot be", [](FakeMemory& m) { m.number(kFirst + kRegions, ~uint64_t{0}); }},
  };
  for (const auto& [what, damage] : damages) {
    FakeMemory memory = two_modules();
    damage(memory);
    const auto modules = read_linux_modules(memory, kernel_symbols(), module_types(true));
    ASSERT_FALSE(modules.ok()) << what;
    EXPECT_NE(modules.error().message.find(what), std::string::npos) << modules.error().message;
  }
}

TEST(LinuxModules, OtherKernelsAreRefused) {
  FakeMemory memory = two_modules();
  EXPECT_NE(
      read_linux_modules(memory, SymbolTable(), module_types(true)).error().message.find("CONFIG_MODULES"),
      std::string::npos);
  EXPECT_NE(read_linux_modules(memory, kernel_symbols(), *Btf::parse(task_types().bytes()))
                .error()
                .message.find("no mod"),
            std::string::npos);
}

}  // namespace
}  // namespace slalom
