// Lines and inlined functions of small programs that the tests compile, compared with their source and with
// the addresses that the running program prints. Also with separate debug files, and with relocatable files
// such as modules.
#include "symbols/dwarf/dwarf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/file.h"
#include "symbols/elf_symbols.h"
#include "unit/base/temporary_directory.h"

namespace slalom {
namespace {

// The line numbers are part of the tests.
constexpr const char* kProgram = R"(#include <stdio.h>
volatile int sink;
static inline __attribute__((always_inline)) void leaf(void) {
  sink = 4;
}
static inline __attribute__((always_inline)) void middle(void) {
  leaf();
}
// Its first statement begins where it does: at line 10.
__attribute__((noinline)) void outer(void) { sink = 10;
  middle();
}
int main(void) {
  outer();
  printf("%p\n", (void *)outer);
}
)";

class Dwarf : public testing::Test {
 protected:
  void SetUp() override { std::ofstream(path("program.c")) << kProgram; }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  void shell(const std::string& command) const {
    ASSERT_EQ(std::system(("cd " + directory_.path().string() + " && " + command).c_str()), 0) << command;
  }
  std::vector<uint8_t> bytes(const std::string& name) const { return *read_file(path(name)); }

  // Returns all places of a function's addresses, in the order of its code.
  static std::vector<std::string> places(const DebugInfo& info, const Symbol& function, uint64_t bias = 0) {
    std::vector<std::string> found;
    for (uint64_t i = 0; i < function.size; ++i) {
      const std::optional<SourcePlace> place = info.at(function.address + bias + i);
      const std::string text = place ? place->text() : "nowhere";
      if (std::ranges::find(found, text) == found.end()) found.push_back(text);
    }
    std::ranges::sort(found);
    return found;
  }

  TemporaryDirectory directory_;
};

// Removes the directory names, so that the texts are known.
constexpr std::string_view kCompile = "gcc -g -O1 -fno-pie -no-pie -ffile-prefix-map=$PWD=. program.c -o ";
const std::vector<std::string> kOuter = {
    "./program.c:10 (outer)",
    "./program.c:12 (outer)",
    "./program.c:4 (leaf, inlined into middle at ./program.c:7, inlined into outer at ./program.c:11)",
};

TEST_F(Dwarf, InlinedFunctionsAreSeenWithTheirCallers) {
  shell(std::string(kCompile) + "program");
  const SymbolTable symbols = *read_elf_symbols(bytes("program"));
  const Result<DebugInfo> info = DebugInfo::open({{.path = path("program")}});
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_TRUE(info->without().empty());
  EXPECT_EQ(places(*info, *symbols.named("outer")[0]), kOuter);
  EXPECT_EQ(info->at(symbols.address_of("main").value())->text(), "./program.c:13 (main)");
  EXPECT_EQ(info->at(0x10), std::nullopt);
}

TEST_F(Dwarf, APositionIndependentProgramIsReadWhereItWasLoaded) {
  shell("gcc -g -O1 -fpie -pie -ffile-prefix-map=$PWD=. program.c -o program && ./program > said");
  std::ifstream said(path("said"));
  uint64_t address = 0;
  ASSERT_TRUE(said >> std::hex >> address);
  const SymbolTable symbols = *read_elf_symbols(bytes("program"));
  const Symbol& outer = *symbols.named("outer")[0];
  const uint64_t bias = address - outer.address;
  EXPECT_NE(bias, 0u);
  EXPECT_EQ(bias % 4096, 0u);
  const Result<DebugInfo> info = DebugInfo::open({{.path = path("program"), .bias = bias}});
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(places(*info, outer, bias), kOuter);
  EXPECT_EQ(info->at(outer.address), std::nullopt);
  EXPECT_EQ((*read_elf_symbols(bytes("program"), bias, "lib")).describe(address + 1), "lib:outer+0x1");
}

TEST_F(Dwarf, DebugFilesApartAreFoundByLinkAndByBuildId) {
  shell(std::string(kCompile) + "program -Wl,--build-id=0xabcdef0123456789 && cp program whole");
  const SymbolTable symbols = *read_elf_symbols(bytes("whole"));
  const Symbol& outer = *symbols.named("outer")[0];
  // A debug link to a file beside it.
  shell(
      "objcopy --only-keep-debug whole linked.debug && strip -g -o program whole && "
      "objcopy --add-gnu-debuglink=linked.debug program");
  Result<DebugInfo> info = DebugInfo::open({{.path = path("program")}});
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(places(*info, outer), kOuter);
  // Neither: without() lists the file, and no place has a name.
  shell("rm linked.debug");
  info = DebugInfo::open({{.path = path("program")}});
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->without(), std::vector<std::filesystem::path>{path("program")});
  EXPECT_EQ(places(*info, outer), std::vector<std::string>{"nowhere"});
  // A build id, in a directory of such files.
  shell("mkdir -p ids/.build-id/ab && objcopy --only-keep-debug whole ids/.build-id/ab/cdef0123456789.debug");
  info = DebugInfo::open({{.path = path("program")}}, {path("ids")});
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_TRUE(info->without().empty());
  EXPECT_EQ(places(*info, outer), kOuter);
}

TEST_F(Dwarf, SectionsOfModulesAreFoundByTheirSymbols) {
  // Two modules whose sections interleave.
  std::vector<DebugFile> files;
  for (const std::string& name : std::vector<std::string>{"a", "b"}) {
    shell("gcc -g -O1 -ffunction-sections -ffile-prefix-map=$PWD=" + name + " -c program.c -o " + name +
          ".o");
    const SymbolTable own = *read_elf_symbols(bytes(name + ".o"));
    const uint64_t start = name == "a" ? 0xffffffffc0000000 : 0xffffffffc0001000;
    const std::vector<Symbol> loaded = {
        {.address = start + own.address_of("outer").value(), .name = "outer"},
        {.address = start + 0x2000 + own.address_of("main").value(), .name = "main"},
        {.address = start, .name = "unknown"}};
    const auto sections = locate_sections(bytes(name + ".o"), loaded);
    ASSERT_TRUE(sections.ok()) << sections.error().message;
    EXPECT_EQ(*sections,
              (std::map<std::string, uint64_t>{{".text.outer", start}, {".text.main", start + 0x2000}}));
    files.push_back({.path = path(name + ".o"), .sections = *sections});
  }
  const Result<DebugInfo> info = DebugInfo::open(files);
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->at(0xffffffffc0000000)->text(), "a/program.c:10 (outer)");
  EXPECT_EQ(info->at(0xffffffffc0001000)->text(), "b/program.c:10 (outer)");
  EXPECT_EQ(info->at(0xffffffffc0002000)->text(), "a/program.c:13 (main)");
  EXPECT_EQ(info->at(0xffffffffc0003000)->text(), "b/program.c:13 (main)");
  EXPECT_EQ(info->at(0xffffffffc0000800), std::nullopt);
}

TEST_F(Dwarf, WhatCannotBeReadIsNamed) {
  shell("echo no ELF file > text");
  for (const char* name : {"none", "text"}) {
    const Result<DebugInfo> info = DebugInfo::open({{.path = path(name)}});
    ASSERT_FALSE(info.ok());
    EXPECT_NE(info.error().message.find(path(name)), std::string::npos) << info.error().message;
  }
  EXPECT_FALSE(read_elf_symbols(bytes("text")).ok());
}

}  // namespace
}  // namespace slalom
