#include "kernel_store/decompress.h"

#include <gtest/gtest.h>
#include <lz4.h>
#include <zstd.h>

#include "base/rng.h"
#include "unit/kernel_store/kernel_files.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kPlenty = uint64_t{1} << 30;
const std::string kPlain = "abcabcabcabc kernel kernel\n";

Bytes from_hex(std::string_view text) {
  Bytes bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  return bytes;
}

// kPlain, as the command-line tools pack it.
struct Packed {
  Compression compression;
  const char* hex;
};
const Packed kPacked[] = {
    {Compression::Gzip, "1f8b08000000000002034b4c4a4e842185ecd4a2bcd41c28c5050012ee20a41b000000"},
    {Compression::Xz,
     "fd377a585a0000016922de36020021011c00000010cf58cce0001a00125d00309888a7ea4bb367c52ea20c804b67cb000000000"
     "012ee20a4"
     "00012a1befb088c59042990d010000000001595a"},
    {Compression::Lzma, "5d00008000ffffffffffffffff00309888a7ea4bb367c52ea20c804b6a58bccbfffec43000"},
    {Compression::Zstd, "28b52ffd0458c5000090616263206b65726e656c206b65726e656c0a0100166e08a78057d0"},
    {Compression::Lz4Legacy, "02214c1817000000356162630300f000206b65726e656c206b65726e656c0a"},
};

TEST(Decompress, UnpacksWhatTheToolsPacked) {
  for (const Packed& each : kPacked) {
    const Bytes packed = from_hex(each.hex);
    EXPECT_EQ(compression_of(packed), each.compression);
    EXPECT_TRUE(can_unpack(each.compression));
    const auto plain = unpack(packed, kPlenty);
    ASSERT_TRUE(plain.ok()) << name_of(each.compression) << ": " << plain.error().message;
    EXPECT_EQ(*plain, text_bytes(kPlain)) << name_of(each.compression);
  }
}

TEST(Decompress, TheLengthThatKernelBuildsAppendIsNoPartOfIt) {
  for (const Packed& each : kPacked) {
    Bytes packed = from_hex(each.hex);
    append_le<uint32_t>(packed, static_cast<uint32_t>(kPlain.size()));
    const auto plain = unpack(packed, kPlenty);
    ASSERT_TRUE(plain.ok()) << name_of(each.compression) << ": " << plain.error().message;
    EXPECT_EQ(*plain, text_bytes(kPlain)) << name_of(each.compression);
  }
}

TEST(Decompress, EveryTruncationIsRefused) {
  for (const Packed& each : kPacked) {
    const Bytes packed = from_hex(each.hex);
    for (size_t size = 0; size < packed.size(); ++size) {
      const auto plain = unpack(std::span(packed).first(size), kPlenty);
      EXPECT_FALSE(plain.ok()) << name_of(each.compression) << " of " << size << " bytes";
    }
  }
}

TEST(Decompress, StopsAtTheLimit) {
  for (const Packed& each : kPacked) {
    const Bytes packed = from_hex(each.hex);
    EXPECT_TRUE(unpack(packed, kPlain.size() + 1).ok()) << name_of(each.compression);
    const auto plain = unpack(packed, kPlain.size() - 1);
    ASSERT_FALSE(plain.ok()) << name_of(each.compression);
    EXPECT_NE(plain.error().message.find("more than 26 bytes"), std::string::npos) << plain.error().message;
  }
}

TEST(Decompress, ABombIsStoppedToo) {
  const Bytes zeros(64 << 20);
  Bytes packed(ZSTD_compressBound(zeros.size()));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), zeros.data(), zeros.size(), 19));
  EXPECT_LT(packed.size(), 10'000u);
  EXPECT_FALSE(unpack(packed, 1 << 20).ok());
  EXPECT_EQ(*unpack(packed, 65 << 20), zeros);
}

TEST(Decompress, Lz4OfSeveralBlocks) {
  Rng rng(7);
  Bytes plain((8 << 20) * 2 + 12'345);
  for (uint8_t& byte : plain) byte = static_cast<uint8_t>(rng.below(7));
  Bytes packed = {0x02, 0x21, 0x4c, 0x18};
  for (size_t at = 0; at < plain.size(); at += 8 << 20) {
    const int size = static_cast<int>(std::min<size_t>(8 << 20, plain.size() - at));
    Bytes block(static_cast<size_t>(LZ4_compressBound(size)));
    block.resize(static_cast<size_t>(LZ4_compress_default(reinterpret_cast<const char*>(plain.data() + at),
                                                          reinterpret_cast<char*>(block.data()), size,
                                                          static_cast<int>(block.size()))));
    append_le<uint32_t>(packed, static_cast<uint32_t>(block.size()));
    packed.insert(packed.end(), block.begin(), block.end());
  }
  EXPECT_EQ(*unpack(packed, kPlenty), plain);
  EXPECT_FALSE(unpack(packed, 10 << 20).ok());
}

TEST(Decompress, WhatItCannotDoIsSaid) {
  EXPECT_FALSE(can_unpack(compression_of(text_bytes("BZh91AY"))));
  const auto bzip2 = unpack(text_bytes("BZh91AY"), kPlenty);
  ASSERT_FALSE(bzip2.ok());
  EXPECT_NE(bzip2.error().message.find("bzip2"), std::string::npos);
  EXPECT_FALSE(unpack(text_bytes("plain text"), kPlenty).ok());
}

}  // namespace
}  // namespace slalom::vm
