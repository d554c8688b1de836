#include "vm/boot/multiboot.h"

#include <gtest/gtest.h>

#include "unit/kernel_store/kernel_files.h"
#include "unit/vm/boot/peek.h"

namespace slalom::vm {
namespace {

Bytes join(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string reason(Bytes file) {
  const auto image = parse_image(std::move(file));
  return image.ok() ? "accepted" : image.error().message;
}

TEST(Multiboot, Elf32) {
  const Bytes code = join(make_multiboot_header(3), text_bytes("kernel"));
  const auto image = parse_image(make_elf32(0x10000c, {{0x100000, 0x100000, code, 0x2000}}));
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_EQ(image->kind, ImageKind::Multiboot);
  const auto ram = *Ram::make(32 * kMiB);
  const auto entry = load_multiboot(*ram, *image, {.command_line = "kernel test=1"});
  ASSERT_TRUE(entry.ok()) << entry.error().message;
  EXPECT_EQ(entry->mode, EntryState::Mode::Protected32);
  EXPECT_EQ(entry->rip, 0x10000cu);
  EXPECT_EQ(entry->rax, 0x2badb002u);
  EXPECT_EQ(peek_text(*ram, 0x10000c), "kernel");
  // Flat 32-bit segments of 4 GiB.
  for (const uint16_t selector : {entry->code_selector, entry->data_selector}) {
    const uint64_t descriptor = peek<uint64_t>(*ram, entry->gdt_base + selector);
    EXPECT_EQ(descriptor & 0xffff, 0xffffu);
    EXPECT_EQ(descriptor >> 48 & 0xff, 0xcfu);
    EXPECT_EQ(descriptor >> 16 & 0xffffff, 0u);
    EXPECT_EQ(descriptor >> 56, 0u);
  }
  EXPECT_EQ(peek<uint64_t>(*ram, entry->gdt_base + entry->code_selector) >> 40 & 0xfa, 0x9au);
  EXPECT_EQ(peek<uint64_t>(*ram, entry->gdt_base + entry->data_selector) >> 40 & 0xfa, 0x92u);

  const Physical info = entry->rbx;
  const uint32_t flags = peek<uint32_t>(*ram, info);
  EXPECT_EQ(flags, 1u | 1u << 2 | 1u << 3 | 1u << 6 | 1u << 9);
  EXPECT_EQ(peek<uint32_t>(*ram, info + 4), 639u);
  EXPECT_EQ(peek<uint32_t>(*ram, info + 8), 31u * 1024);
  EXPECT_EQ(peek_text(*ram, peek<uint32_t>(*ram, info + 16)), "kernel test=1");
  EXPECT_EQ(peek<uint32_t>(*ram, info + 20), 0u);
  EXPECT_EQ(peek_text(*ram, peek<uint32_t>(*ram, info + 64)), "slalom");
}

TEST(Multiboot, MemoryMapEntriesAreChainedBySize) {
  const auto image = *parse_image(make_elf32(0x100000, {{0x100000, 0x100000, make_multiboot_header(2)}}));
  const auto ram = *Ram::make(4096 * kMiB);
  const auto entry = *load_multiboot(*ram, image, {});
  std::vector<std::array<uint64_t, 3>> map;
  Physical at = peek<uint32_t>(*ram, entry.rbx + 48);
  const Physical end = at + peek<uint32_t>(*ram, entry.rbx + 44);
  while (at < end) {
    map.push_back(
        {peek<uint64_t>(*ram, at + 4), peek<uint64_t>(*ram, at + 12), peek<uint32_t>(*ram, at + 20)});
    at += peek<uint32_t>(*ram, at) + 4;
  }
  EXPECT_EQ(at, end);
  EXPECT_EQ(
      map,
      (std::vector<std::array<uint64_t, 3>>{
          {0, 0x9fc00, 1}, {0xe0000, 0x20000, 2}, {kMiB, 3071 * kMiB, 1}, {0x100000000, 1024 * kMiB, 1}}));
}

TEST(Multiboot, ModulesArePageAlignedAndListed) {
  const auto image = *parse_image(make_elf32(0x100000, {{0x100000, 0x100000, make_multiboot_header(1)}}));
  const auto ram = *Ram::make(32 * kMiB);
  const auto entry = *load_multiboot(
      *ram, image, {.modules = {{text_bytes("first"), "one"}, {Bytes(5000, 'x'), "two args"}, {{}, ""}}});
  ASSERT_EQ(peek<uint32_t>(*ram, entry.rbx + 20), 3u);
  const Physical list = peek<uint32_t>(*ram, entry.rbx + 24);
  const auto word = [&](unsigned module, unsigned field) {
    return peek<uint32_t>(*ram, list + 16 * module + 4 * field);
  };
  EXPECT_EQ(peek_text(*ram, word(0, 0)), "first");
  EXPECT_EQ(word(0, 1) - word(0, 0), 5u);
  EXPECT_EQ(peek_text(*ram, word(0, 2)), "one");
  EXPECT_EQ(word(1, 1) - word(1, 0), 5000u);
  EXPECT_EQ(peek_text(*ram, word(1, 2)), "two args");
  EXPECT_EQ(word(2, 1), word(2, 0));
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(word(i, 0) % 4096, 0u);
}

TEST(Multiboot, Elf64IsEnteredInProtectedModeAtItsPhysicalEntry) {
  const Bytes code = join(make_multiboot_header(0), text_bytes("64"));
  const auto image = parse_image(make_elf64(0xffffffff8010000c, {{0xffffffff80100000, 0x100000, code}}));
  ASSERT_TRUE(image.ok()) << image.error().message;
  const auto ram = *Ram::make(8 * kMiB);
  const auto entry = load_multiboot(*ram, *image, {});
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->mode, EntryState::Mode::Protected32);
  EXPECT_EQ(entry->rip, 0x10000cu);
  EXPECT_EQ(peek_text(*ram, 0x10000c), "64");
}

TEST(Multiboot, AddressFieldsOfAFlatKernel) {
  // 16 bytes before the header, which must be loaded at 0x200010.
  Bytes file(16, 0xaa);
  file = join(file, make_multiboot_header(1 << 16, {0x200010, 0x200000, 0, 0x200100, 0x200030}));
  file = join(file, text_bytes("code"));
  const auto image = parse_image(file);
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_EQ(image->entry, 0x200030u);
  EXPECT_EQ(image->segments, (std::vector<ImageSegment>{{0x200000, 0, file.size(), 0x100}}));
  const auto ram = *Ram::make(8 * kMiB);
  ASSERT_TRUE(load_multiboot(*ram, *image, {}).ok());
  EXPECT_EQ(peek_text(*ram, 0x200030), "code");

  // Loads only a part from the middle of the file.
  Bytes part(64, 0xaa);
  part = join(part, make_multiboot_header(1 << 16, {0x200000, 0x200000, 0x200024, 0, 0x200020}));
  part = join(part, text_bytes("code"));
  EXPECT_EQ(parse_image(part)->segments, (std::vector<ImageSegment>{{0x200000, 64, 0x24, 0x24}}));
}

TEST(Multiboot, DamagedAddressFieldsAreRefused) {
  const auto with = [](const std::vector<uint32_t>& words) {
    return reason(join(Bytes(16), make_multiboot_header(1 << 16, words)));
  };
  EXPECT_EQ(with({0x200010, 0x200000, 0, 0, 0x200000}), "accepted");
  for (const std::vector<uint32_t>& words : std::vector<std::vector<uint32_t>>{
           {},                                    // truncated
           {0x1fffff, 0x200000, 0, 0, 0},         // header before the load address
           {0x200020, 0x200000, 0, 0, 0},         // would start before the file
           {0x200010, 0x200000, 0x200100, 0, 0},  // longer than the file
           {0x200010, 0x200000, 0x100000, 0, 0},  // ends before it starts
           {0x200010, 0x200000, 0, 0x200001, 0},  // bss ends within the data
           {0xfffffff0, 0xffffffe8, 0, 0, 0},     // beyond the end of the address space
       })
    EXPECT_NE(with(words).find("cut short or damaged"), std::string::npos) << with(words);
}

TEST(Multiboot, DemandsThatCannotBeMetAreRefused) {
  const auto elf = [](const Bytes& header) {
    return reason(make_elf32(0x100000, {{0x100000, 0x100000, header}}));
  };
  EXPECT_NE(elf(make_multiboot_header(1 << 5)).find("demands features"), std::string::npos);
  EXPECT_EQ(elf(make_multiboot_header(1 << 20)), "accepted");  // flags in the upper half are optional
  EXPECT_NE(elf(make_multiboot_header(4, {0, 0, 0, 0, 0, 0, 1024, 768, 32})).find("graphics mode"),
            std::string::npos);
  EXPECT_NE(elf(make_multiboot_header(4)).find("cut short"), std::string::npos);
  EXPECT_NE(reason(make_elf64(0x100000, {{0, uint64_t{1} << 32, make_multiboot_header(0)}}))
                .find("beyond the 4 GiB"),
            std::string::npos);
}

TEST(Multiboot, TextModeIsDescribedToWhoAsks) {
  const Bytes header = make_multiboot_header(4, {0, 0, 0, 0, 0, 1, 80, 25, 0});
  const auto image = parse_image(make_elf32(0x100000, {{0x100000, 0x100000, header}}));
  ASSERT_TRUE(image.ok()) << image.error().message;
  const auto ram = *Ram::make(8 * kMiB);
  const auto entry = *load_multiboot(*ram, *image, {});
  EXPECT_NE(peek<uint32_t>(*ram, entry.rbx) & 1u << 12, 0u);
  EXPECT_EQ(peek<uint64_t>(*ram, entry.rbx + 88), 0xb8000u);
  EXPECT_EQ(peek<uint32_t>(*ram, entry.rbx + 96), 160u);
  EXPECT_EQ(peek<uint32_t>(*ram, entry.rbx + 100), 80u);
  EXPECT_EQ(peek<uint32_t>(*ram, entry.rbx + 104), 25u);
  EXPECT_EQ(peek<uint8_t>(*ram, entry.rbx + 109), 2u);
}

TEST(Multiboot, OnlyARightHeaderCounts) {
  Bytes wrong = make_multiboot_header(0);
  wrong[8] ^= 1;
  EXPECT_EQ(find_multiboot_header(wrong), std::nullopt);
  EXPECT_EQ(find_multiboot_header(join(Bytes(4), make_multiboot_header(0))), 4u);
  EXPECT_EQ(find_multiboot_header(join(Bytes(2), make_multiboot_header(0))), std::nullopt);  // not aligned
  EXPECT_EQ(find_multiboot_header(join(Bytes(8180), make_multiboot_header(0))), 8180u);
  EXPECT_EQ(find_multiboot_header(join(Bytes(8184), make_multiboot_header(0))), std::nullopt);  // too far
}

TEST(Multiboot, KernelsWhereThereIsNoMemoryAreRefused) {
  const auto image =
      *parse_image(make_elf32(0x100000, {{0x100000, 0x100000, make_multiboot_header(0), 64 * kMiB}}));
  const auto ram = *Ram::make(8 * kMiB);
  const auto entry = load_multiboot(*ram, image, {});
  ASSERT_FALSE(entry.ok());
  EXPECT_NE(entry.error().message.find("--memory 65M"), std::string::npos) << entry.error().message;
}

}  // namespace
}  // namespace slalom::vm
