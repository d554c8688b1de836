// ByteWriter and ByteReader: the varint encoding of every file that slalom writes.
//
// A reader never reads outside its span. After the first short or malformed read, all reads return zeros, and
// ok() is false. Callers check ok() once at the end, and read every count with count().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace slalom {

class ByteWriter {
 public:
  void u8(uint8_t value) { bytes_.push_back(value); }
  void u64(uint64_t value) {  // LEB128
    while (value >= 0x80) {
      bytes_.push_back(static_cast<uint8_t>(value) | 0x80);
      value >>= 7;
    }
    bytes_.push_back(static_cast<uint8_t>(value));
  }
  void i64(int64_t value) { u64((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63)); }
  void fixed64(uint64_t value) {
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }
  void text(std::string_view value) {
    u64(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<uint8_t> bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint8_t u8() {
    if (position_ >= bytes_.size()) return fail();
    return bytes_[position_++];
  }
  uint64_t u64() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = u8();
      if (shift == 63 && byte > 1) return fail();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return failed_ ? 0 : value;
    }
    return fail();
  }
  int64_t i64() {
    const uint64_t value = u64();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  uint64_t fixed64() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value |= static_cast<uint64_t>(u8()) << (8 * i);
    return failed_ ? 0 : value;
  }
  std::string text() {
    const uint64_t size = count();
    std::string value(reinterpret_cast<const char*>(bytes_.data()) + position_, size);
    position_ += size;
    return value;
  }
  // Reads a number of items that follow, each at least one byte long. Never returns more than the bytes left.
  uint64_t count() {
    const uint64_t value = u64();
    if (value > bytes_.size() - position_) return fail();
    return value;
  }
  bool ok() const { return !failed_; }
  bool at_end() const { return position_ == bytes_.size(); }
  uint8_t fail() {
    failed_ = true;
    position_ = bytes_.size();
    return 0;
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t position_ = 0;
  bool failed_ = false;
};

}  // namespace slalom
