#include "vm/boot/linux.h"

#include <gtest/gtest.h>

#include "unit/kernel_store/kernel_files.h"
#include "unit/vm/boot/peek.h"
#include "vm/boot/placement.h"

namespace slalom::vm {
namespace {

Image test_kernel() {
  return *parse_image(make_vmlinux());
}

// A bzImage whose payload is not unpacked, so that its header is easy to change.
Image test_bzimage() {
  return *parse_image(make_bzimage(text_bytes("BZh9")));
}

struct Range {
  uint64_t begin, size;
  uint32_t type;
  bool operator==(const Range&) const = default;
};

std::vector<Range> e820(const Ram& ram, Physical params) {
  std::vector<Range> map;
  for (unsigned i = 0; i < peek<uint8_t>(ram, params + 0x1e8); ++i) {
    const Physical at = params + 0x2d0 + 20 * i;
    map.push_back({peek<uint64_t>(ram, at), peek<uint64_t>(ram, at + 8), peek<uint32_t>(ram, at + 16)});
  }
  return map;
}

TEST(Linux, BootParamsSayWhatTheProtocolAsksFor) {
  const auto ram = *Ram::make(64 * kMiB);
  const Bytes initrd = text_bytes("070701 an initrd");
  const auto entry = load_linux(
      *ram, test_bzimage(),
      {.command_line = "console=ttyS0 quiet", .initrd = initrd, .acpi_tables = text_bytes("RSD PTR ")});
  ASSERT_TRUE(entry.ok()) << entry.error().message;
  const Physical params = entry->rsi;
  EXPECT_EQ(peek<uint16_t>(*ram, params + 0x1fe), 0xaa55);
  EXPECT_EQ(peek<uint32_t>(*ram, params + 0x202), 0x53726448u);
  EXPECT_EQ(peek<uint16_t>(*ram, params + 0x206), 0x020f);
  EXPECT_EQ(peek<uint64_t>(*ram, params + 0x258), 0x1000000u);  // copied from the file
  EXPECT_EQ(peek<uint8_t>(*ram, params + 0x210), 0xff);
  EXPECT_EQ(peek<uint8_t>(*ram, params + 0x211) & 1, 1);
  // The sentinel; otherwise the kernel clears other fields.
  EXPECT_EQ(peek<uint8_t>(*ram, params + 0x1ef), 0);
  EXPECT_EQ(peek_text(*ram, peek<uint32_t>(*ram, params + 0x228)), "console=ttyS0 quiet");
  const Physical initrd_at = peek<uint32_t>(*ram, params + 0x218);
  EXPECT_EQ(peek<uint32_t>(*ram, params + 0x21c), initrd.size());
  EXPECT_EQ(initrd_at % 4096, 0u);
  EXPECT_EQ(initrd_at, 64 * kMiB - 4096);
  EXPECT_EQ(peek_text(*ram, initrd_at), "070701 an initrd");
  EXPECT_EQ(peek<uint64_t>(*ram, params + 0x70), 0xe0000u);
  EXPECT_EQ(peek_text(*ram, 0xe0000), "RSD PTR ");
  EXPECT_EQ(e820(*ram, params),
            (std::vector<Range>{{0, 0x9fc00, 1}, {0xe0000, 0x20000, 2}, {kMiB, 63 * kMiB, 1}}));
}

TEST(Linux, MemoryBeyondTheHoleIsInTheMap) {
  const auto ram = *Ram::make(4096 * kMiB);
  const auto entry = load_linux(*ram, test_kernel(), {.initrd = Bytes(5000, 1)});
  ASSERT_TRUE(entry.ok()) << entry.error().message;
  EXPECT_EQ(
      e820(*ram, entry->rsi),
      (std::vector<Range>{
          {0, 0x9fc00, 1}, {0xe0000, 0x20000, 2}, {kMiB, 3071 * kMiB, 1}, {0x100000000, 1024 * kMiB, 1}}));
  EXPECT_EQ(peek<uint32_t>(*ram, entry->rsi + 0x218), 0x80000000u - 8192);  // below the kernel's limit
}

TEST(Linux, TheSeedIsInSetupDataAndFollowsTheOption) {
  std::vector<Bytes> seeds;
  for (const uint64_t seed : {1, 1, 2}) {
    const auto ram = *Ram::make(64 * kMiB);
    const auto entry = load_linux(*ram, test_kernel(), {.seed = seed});
    const Physical data = peek<uint64_t>(*ram, entry->rsi + 0x250);
    EXPECT_EQ(peek<uint64_t>(*ram, data), 0u);
    EXPECT_EQ(peek<uint32_t>(*ram, data + 8), 9u);
    EXPECT_EQ(peek<uint32_t>(*ram, data + 12), 32u);
    Bytes bytes(32);
    ASSERT_TRUE(ram->read(data + 16, bytes));
    seeds.push_back(bytes);
  }
  EXPECT_EQ(seeds[0], seeds[1]);
  EXPECT_NE(seeds[0], seeds[2]);
}

TEST(Linux, KernelIsWhereItBelongs) {
  const auto ram = *Ram::make(64 * kMiB);
  // Even if memory was not zero before, the zeros after "data" are zero.
  ASSERT_TRUE(ram->write(0x1200000, Bytes(0x3000, 0xee)));
  const auto entry = load_linux(*ram, test_kernel(), {});
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->rip, 0x1000040u);
  EXPECT_EQ(peek_text(*ram, 0x1000000), "code: Linux version 9.9.9 (test)");
  Bytes data(0x3000);
  ASSERT_TRUE(ram->read(0x1200000, data));
  Bytes expected = text_bytes("data");
  expected.resize(0x3000);
  EXPECT_EQ(data, expected);
  EXPECT_EQ(peek<uint32_t>(*ram, entry->rsi + 0x21c), 0u);  // no initrd
}

// Walks the page tables and the GDT as the CPU does.
TEST(Linux, EntryStateIsLongModeWithIdenticalAddresses) {
  const auto ram = *Ram::make(64 * kMiB);
  const auto entry = *load_linux(*ram, test_kernel(), {});
  EXPECT_EQ(entry.mode, EntryState::Mode::Long64);
  for (const uint64_t address :
       {uint64_t{0}, uint64_t{0x1000040}, uint64_t{0x7fffffff}, uint64_t{0xfee00020}}) {
    const uint64_t level4 = peek<uint64_t>(*ram, entry.cr3 + (address >> 39) * 8);
    const uint64_t level3 = peek<uint64_t>(*ram, (level4 & ~uint64_t{0xfff}) + (address >> 30 & 511) * 8);
    const uint64_t level2 = peek<uint64_t>(*ram, (level3 & ~uint64_t{0xfff}) + (address >> 21 & 511) * 8);
    EXPECT_EQ(level4 & level3 & level2 & 3, 3u);
    EXPECT_EQ(level2 & 0x80, 0x80u);
    EXPECT_EQ((level2 & ~uint64_t{0x1fffff}) + (address & 0x1fffff), address);
  }
  EXPECT_EQ(entry.code_selector, 0x10);  // __BOOT_CS
  EXPECT_EQ(entry.data_selector, 0x18);  // __BOOT_DS
  EXPECT_EQ(entry.gdt_limit, 4 * 8 - 1);
  const uint64_t code = peek<uint64_t>(*ram, entry.gdt_base + entry.code_selector);
  const uint64_t data = peek<uint64_t>(*ram, entry.gdt_base + entry.data_selector);
  EXPECT_EQ(code >> 53 & 1, 1u);        // L
  EXPECT_EQ(code >> 54 & 1, 0u);        // D must be 0 with L
  EXPECT_EQ(code >> 40 & 0xfa, 0x9au);  // present, ring 0, code, readable
  EXPECT_EQ(data >> 40 & 0xfa, 0x92u);  // present, ring 0, data, writable
  EXPECT_EQ(entry.rsp % 16, 0u);
}

TEST(Linux, WhatDoesNotFitIsRefusedWithAdvice) {
  const auto reason = [](uint64_t memory, const Image& image, const LinuxOptions& options) {
    const auto ram = *Ram::make(memory);
    const auto entry = load_linux(*ram, image, options);
    return entry.ok() ? "accepted" : entry.error().message;
  };
  EXPECT_NE(reason(kMiB, test_kernel(), {}).find("--memory"), std::string::npos);
  EXPECT_NE(reason(17 * kMiB, test_kernel(), {}).find("--memory 19M"), std::string::npos);
  EXPECT_EQ(reason(19 * kMiB, test_kernel(), {}), "accepted");
  // The header requires 4 MiB from 16 MiB on.
  EXPECT_NE(reason(19 * kMiB, test_bzimage(), {}).find("--memory 20M"), std::string::npos);
  EXPECT_EQ(reason(20 * kMiB, test_bzimage(), {}), "accepted");
  EXPECT_NE(reason(20 * kMiB, test_bzimage(), {.initrd = Bytes(16 * kMiB)}).find("the initrd has 16 MiB"),
            std::string::npos);
  EXPECT_EQ(reason(64 * kMiB, test_kernel(), {.command_line = std::string(2047, 'x')}), "accepted");
  EXPECT_NE(
      reason(64 * kMiB, test_kernel(), {.command_line = std::string(2048, 'x')}).find("2048 characters"),
      std::string::npos);
  EXPECT_NE(reason(64 * kMiB, test_kernel(), {.command_line = std::string("a\0b", 3)}).find("zero byte"),
            std::string::npos);
  Image image = test_kernel();
  image.segments[1].memory_size = ~uint64_t{0} - 5;
  EXPECT_NE(reason(64 * kMiB, image, {}).find("no memory"), std::string::npos);
  image = test_kernel();
  image.segments[1].address = image.segments[0].address + 8;
  EXPECT_NE(reason(64 * kMiB, image, {}).find("would lie over"), std::string::npos);
  image = test_kernel();
  image.segments[0].address = 0x8000;
  EXPECT_NE(reason(64 * kMiB, image, {}).find("would lie over"), std::string::npos);
}

TEST(Linux, AnInitrdGoesBelowAKernelThatIsAtTheTop) {
  const auto ram = *Ram::make(20 * kMiB);
  const auto entry = load_linux(*ram, test_bzimage(), {.initrd = Bytes(kMiB + 1, 7)});
  ASSERT_TRUE(entry.ok()) << entry.error().message;
  EXPECT_EQ(peek<uint32_t>(*ram, entry->rsi + 0x218), 16 * kMiB - kMiB - 4096);
}

TEST(Linux, TheUsersOptionsComeLast) {
  const std::string line = linux_command_line(1'000'000, "loglevel=7 slalom.run=\"echo hi\"");
  EXPECT_NE(line.find(" tsc_early_khz=1000000 lpj=4000000 "), std::string::npos);
  EXPECT_TRUE(line.ends_with(" loglevel=7 slalom.run=\"echo hi\"")) << line;
  EXPECT_EQ(linux_command_line(1, "").back(), 's');
}

}  // namespace
}  // namespace slalom::vm
