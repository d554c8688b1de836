#include "base/bytes.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace slalom {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes written(uint64_t value) {
  ByteWriter out;
  out.u64(value);
  return out.take();
}

TEST(Bytes, VarintsHaveTheLeb128Form) {
  EXPECT_EQ(written(0), Bytes({0x00}));
  EXPECT_EQ(written(127), Bytes({0x7f}));
  EXPECT_EQ(written(128), Bytes({0x80, 0x01}));
  EXPECT_EQ(written(300), Bytes({0xac, 0x02}));
  EXPECT_EQ(written(UINT64_MAX), Bytes({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}));
}

TEST(Bytes, SignedNumbersNearZeroAreShort) {
  ByteWriter out;
  for (const int64_t value : {0, -1, 1, -64, 63}) out.i64(value);
  EXPECT_EQ(out.bytes(), Bytes({0, 1, 2, 127, 126}));
}

TEST(Bytes, NumbersComeBackAtEveryPowerOfTwo) {
  ByteWriter out;
  std::vector<uint64_t> values = {0};
  for (int shift = 0; shift < 64; ++shift)
    for (const uint64_t offset : {-1, 0, 1}) values.push_back((uint64_t{1} << shift) + offset);
  for (const uint64_t value : values) {
    out.u64(value);
    out.i64(static_cast<int64_t>(value));
    out.fixed64(value);
  }
  ByteReader in(out.bytes());
  for (const uint64_t value : values) {
    EXPECT_EQ(in.u64(), value);
    EXPECT_EQ(in.i64(), static_cast<int64_t>(value));
    EXPECT_EQ(in.fixed64(), value);
  }
  EXPECT_TRUE(in.ok());
  EXPECT_TRUE(in.at_end());
}

TEST(Bytes, FixedNumbersAreLittleEndian) {
  ByteWriter out;
  out.fixed64(0x0102030405060708);
  EXPECT_EQ(out.bytes(), Bytes({8, 7, 6, 5, 4, 3, 2, 1}));
}

TEST(Bytes, TextKeepsEveryByte) {
  const std::string text("a\0\xff\n", 4);
  ByteWriter out;
  out.text("");
  out.text(text);
  ByteReader in(out.bytes());
  EXPECT_EQ(in.text(), "");
  EXPECT_EQ(in.text(), text);
  EXPECT_TRUE(in.ok() && in.at_end());
}

TEST(Bytes, AVarintOfMoreThan64BitsFails) {
  Bytes bytes(9, 0xff);
  bytes.push_back(0x02);  // bit 64
  ByteReader in(bytes);
  EXPECT_EQ(in.u64(), 0u);
  EXPECT_FALSE(in.ok());

  const Bytes endless(20, 0x80);
  ByteReader in_endless(endless);
  EXPECT_EQ(in_endless.u64(), 0u);
  EXPECT_FALSE(in_endless.ok());
}

TEST(Bytes, EveryCutMakesTheReaderFailForGood) {
  ByteWriter out;
  out.u64(1'000'000);
  out.fixed64(5);
  out.text("text");
  for (size_t size = 0; size < out.bytes().size(); ++size) {
    ByteReader in(std::span(out.bytes()).first(size));
    in.u64();
    in.fixed64();
    in.text();
    EXPECT_FALSE(in.ok()) << size;
    EXPECT_TRUE(in.at_end());
    EXPECT_EQ(in.u64() | in.u8() | in.fixed64() | in.count(), 0u);
    EXPECT_EQ(in.text(), "");
  }
}

TEST(Bytes, ACountIsNeverMoreThanWhatIsLeft) {
  const Bytes fits = {3, 0, 0, 0};
  ByteReader in(fits);
  EXPECT_EQ(in.count(), 3u);
  const Bytes too_many = {4, 0, 0, 0};
  ByteReader in_short(too_many);
  EXPECT_EQ(in_short.count(), 0u);
  EXPECT_FALSE(in_short.ok());
}

TEST(Bytes, AnEmptyInputFails) {
  ByteReader in({});
  EXPECT_TRUE(in.at_end());
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.text(), "");
  EXPECT_FALSE(in.ok());
}

}  // namespace
}  // namespace slalom
