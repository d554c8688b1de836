#include "vm/boot/image.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include "kernel_store/kernel_cache.h"
#include "unit/kernel_store/kernel_files.h"

namespace slalom::vm {
namespace {

Bytes zstd(const Bytes& plain) {
  Bytes packed(ZSTD_compressBound(plain.size()));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3));
  append_le<uint32_t>(packed, static_cast<uint32_t>(plain.size()));
  return packed;
}

void expect_test_kernel(const Image& image) {
  EXPECT_EQ(image.kind, ImageKind::LinuxElf);
  EXPECT_EQ(image.entry, 0x1000040u);
  EXPECT_EQ(image.identity, "build-id:deadbeef");
  ASSERT_EQ(image.segments.size(), 2u);
  EXPECT_EQ(image.segments[0].address, 0x1000000u);
  EXPECT_EQ(image.segments[1].address, 0x1200000u);
  EXPECT_EQ(image.segments[1].memory_size, 0x3000u);
  const auto data = image.bytes_of(image.segments[1]);
  EXPECT_EQ(Bytes(data.begin(), data.end()), text_bytes("data"));
}

TEST(Image, Vmlinux) {
  const auto image = parse_image(make_vmlinux());
  ASSERT_TRUE(image.ok()) << image.error().message;
  expect_test_kernel(*image);
  EXPECT_TRUE(image->linux_header.raw.empty());
}

TEST(Image, BzImageIsUnpacked) {
  const auto image = parse_image(make_bzimage(zstd(make_vmlinux())));
  ASSERT_TRUE(image.ok()) << image.error().message;
  expect_test_kernel(*image);
  EXPECT_EQ(image->linux_header.start, 0x1000000u);
  EXPECT_EQ(image->linux_header.needed_memory, 0x400000u);
  EXPECT_EQ(image->linux_header.initrd_end_limit, 0x7fffffffu);
  EXPECT_EQ(image->linux_header.command_line_limit, 2047u);
  EXPECT_EQ(image->linux_header.raw.size(), 0x26cu - 0x1f1u);
}

TEST(Image, ACompressedVmlinuxIsUnpackedToo) {
  Bytes packed = zstd(make_vmlinux());
  const auto image = parse_image(packed);
  ASSERT_TRUE(image.ok()) << image.error().message;
  expect_test_kernel(*image);
}

TEST(Image, ABzImageOfUnknownCompressionIsEnteredAsItIs) {
  const Bytes file = make_bzimage(text_bytes("BZh9 and so on"));
  const auto image = parse_image(file);
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_EQ(image->kind, ImageKind::LinuxUnpacker);
  EXPECT_EQ(image->entry, 0x1000200u);
  ASSERT_EQ(image->segments.size(), 1u);
  EXPECT_EQ(image->bytes_of(image->segments[0]).size(), file.size() - 1024);
  EXPECT_EQ(image->identity.substr(0, 5), "xxh3:");
}

TEST(Image, IdentityWithoutBuildIdIsOfTheContents) {
  const auto make = [](const char* text) {
    return parse_image(make_elf64(0x100000, {{0x100000, 0x100000, text_bytes(text)}}))->identity;
  };
  EXPECT_EQ(make("Linux version 1"), make("Linux version 1"));
  EXPECT_NE(make("Linux version 1"), make("Linux version 2"));
}

TEST(Image, WhatIsNoKernelIsRefusedWithAReason) {
  const auto reason = [](Bytes file) {
    const auto image = parse_image(std::move(file));
    return image.ok() ? "accepted" : image.error().message;
  };
  EXPECT_NE(reason({}).find("no kernel"), std::string::npos);
  EXPECT_NE(reason(text_bytes("#!/bin/sh\n")).find("no kernel"), std::string::npos);
  EXPECT_NE(reason(make_elf64(0, {{0, 0, text_bytes("a program")}})).find("neither a Linux kernel"),
            std::string::npos);
  EXPECT_NE(
      reason(make_elf64(0, {{0, 0, text_bytes("Linux version 6")}}, 183)).find("another kind of machine"),
      std::string::npos);
  EXPECT_NE(reason(make_elf32(0, {{0, 0, text_bytes("Linux version 6")}})).find("another kind of machine"),
            std::string::npos);
  Bytes old = make_bzimage(zstd(make_vmlinux()));
  put_le<uint16_t>(std::span(old), 0x206, 0x0204);
  EXPECT_NE(reason(old).find("2.04"), std::string::npos);
}

TEST(Image, EveryTruncationIsRefused) {
  for (const Bytes& whole : {make_bzimage(zstd(make_vmlinux())), make_vmlinux()}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      const auto image = parse_image(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)));
      // The appended length is not needed.
      if (size + 4 >= whole.size() && whole[0] != 0x7f) continue;
      EXPECT_FALSE(image.ok()) << size << " of " << whole.size() << " bytes";
    }
  }
}

// Sets each field of the headers to extreme values. The file must be refused, or all segments must lie within
// it.
TEST(Image, ExtremeFieldsNeverLeadOutsideTheFile) {
  for (const Bytes& whole :
       {make_bzimage(zstd(make_vmlinux())), make_vmlinux(),
        make_elf32(0x100000, {{0x100000, 0x100000, make_multiboot_header(0), 0x1000}})}) {
    for (size_t at = 0; at + 8 <= std::min<size_t>(whole.size(), 0x280); ++at) {
      for (const uint64_t value : {uint64_t{0}, ~uint64_t{0}, uint64_t{1} << 63, uint64_t{0x7fffffff}}) {
        Bytes file = whole;
        put_le<uint64_t>(std::span(file), at, value);
        const auto image = parse_image(std::move(file), 1 << 20);
        if (!image.ok()) continue;
        for (const ImageSegment& segment : image->segments) {
          ASSERT_LE(segment.offset, image->data.size());
          ASSERT_LE(segment.file_size, image->data.size() - segment.offset);
          ASSERT_LE(segment.file_size, segment.memory_size);
        }
      }
    }
  }
}

// The expected values come from other tools (readelf, objdump). Entries are at or after the start.
TEST(Image, DebiansKernels) {
  const auto cache = KernelCache::open();
  if (!cache.ok() || cache->names().empty())
    GTEST_SKIP() << "no kernel here; run: slalom kernel get debian:6.1";
  for (const std::string& name : cache->names()) {
    const auto image = read_image(cache->load(name)->vmlinuz);
    ASSERT_TRUE(image.ok()) << image.error().message;
    EXPECT_EQ(image->kind, ImageKind::LinuxElf) << name;
    EXPECT_EQ(image->identity.size(), 9u + 40u) << image->identity;
    EXPECT_EQ(image->linux_header.start, 0x1000000u);
    EXPECT_EQ(image->segments[0].address, 0x1000000u);
    bool entry_inside = false;
    for (const ImageSegment& segment : image->segments)
      entry_inside = entry_inside ||
                     (image->entry >= segment.address && image->entry - segment.address < segment.file_size);
    EXPECT_TRUE(entry_inside) << name;
  }
}

}  // namespace
}  // namespace slalom::vm
