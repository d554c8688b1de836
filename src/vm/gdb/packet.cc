#include "vm/gdb/packet.h"

namespace slalom::vm {
namespace {

constexpr char kEscape = '}';
constexpr char kEscapeBit = 0x20;
constexpr char kBreak = 0x03;
constexpr std::string_view kDigits = "0123456789abcdef";

std::optional<unsigned> digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

uint8_t checksum(std::string_view text) {
  unsigned sum = 0;
  for (const char c : text) sum += static_cast<uint8_t>(c);
  return static_cast<uint8_t>(sum);
}

std::string unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i)
    plain += text[i] == kEscape && i + 1 < text.size() ? static_cast<char>(text[++i] ^ kEscapeBit) : text[i];
  return plain;
}

}  // namespace

void PacketReader::feed(std::string_view bytes) {
  for (const char c : bytes) {
    switch (within_) {
      case Within::Nothing:
        if (c == '$') within_ = Within::Body;
        if (c == kBreak) pieces_.push_back({.kind = Kind::Break, .body = {}});
        if (c == '-') pieces_.push_back({.kind = Kind::Again, .body = {}});
        break;
      case Within::Body:
        if (c == '#')
          within_ = Within::FirstDigit;
        else if (body_.size() < 2 * kLongest)  // each character may be escaped
          body_ += c;
        else
          damaged_ = true;
        break;
      case Within::FirstDigit:
        digit_ = c;
        within_ = Within::SecondDigit;
        break;
      case Within::SecondDigit: {
        const auto high = digit(digit_), low = digit(c);
        if (!high || !low || *high * 16 + *low != checksum(body_)) damaged_ = true;
        finish();
        break;
      }
    }
  }
}

void PacketReader::finish() {
  Piece piece{.kind = Kind::Packet, .body = unescape(body_)};
  if (damaged_ || piece.body.size() > kLongest) piece = {.kind = Kind::Damaged, .body = {}};
  pieces_.push_back(std::move(piece));
  body_.clear();
  damaged_ = false;
  within_ = Within::Nothing;
}

std::optional<PacketReader::Piece> PacketReader::next() {
  if (pieces_.empty()) return std::nullopt;
  Piece piece = std::move(pieces_.front());
  pieces_.pop_front();
  return piece;
}

bool PacketReader::take_break() {
  if (pieces_.empty() || pieces_.front().kind != Kind::Break) return false;
  pieces_.pop_front();
  return true;
}

std::string frame_packet(std::string_view body) {
  std::string escaped;
  for (const char c : body) {
    if (c == '$' || c == '#' || c == '*' || c == kEscape) {
      escaped += kEscape;
      escaped += static_cast<char>(c ^ kEscapeBit);
    } else {
      escaped += c;
    }
  }
  const uint8_t sum = checksum(escaped);
  return "$" + escaped + "#" + kDigits[sum >> 4] + kDigits[sum & 15];
}

std::string to_hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string to_hex(std::string_view text) {
  return to_hex(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

std::optional<std::vector<uint8_t>> from_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    const auto high = digit(digits[i]), low = digit(digits[i + 1]);
    if (!high || !low) return std::nullopt;
    bytes.push_back(static_cast<uint8_t>(*high << 4 | *low));
  }
  return bytes;
}

bool FieldReader::take(std::string_view literal) {
  if (!rest_.starts_with(literal)) return false;
  rest_.remove_prefix(literal.size());
  return true;
}

std::optional<uint64_t> FieldReader::number() {
  uint64_t value = 0;
  size_t used = 0;
  while (used < rest_.size() && used < 17) {
    const auto one = digit(rest_[used]);
    if (!one) break;
    value = value << 4 | *one;
    ++used;
  }
  if (used == 0 || used == 17) return std::nullopt;
  rest_.remove_prefix(used);
  return value;
}

std::string_view FieldReader::until(char separator) {
  const size_t at = rest_.find(separator);
  const std::string_view field = rest_.substr(0, at);
  rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at + 1);
  return field;
}

}  // namespace slalom::vm
