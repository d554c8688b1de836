// Packets of gdb's remote protocol: cutting what arrives into pieces, framing what is sent, reading fields.
//
// Whatever the peer sends, nothing here fails but by saying that a piece is damaged. What packets mean is not
// known here: see gdb/stub.h.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace slalom::vm {

class PacketReader {
 public:
  static constexpr size_t kLongest = 0x4000;  // of a body; longer ones are damaged

  enum class Kind : uint8_t {
    Packet,   // whole, its checksum right, and unescaped
    Damaged,  // to be sent again
    Again,    // the peer wants the last packet again
    Break,    // Ctrl-C
  };
  struct Piece {
    Kind kind = Kind::Packet;
    std::string body;
    bool operator==(const Piece&) const = default;
  };

  void feed(std::string_view bytes);
  std::optional<Piece> next();
  bool take_break();  // the next piece, if it is a Break

 private:
  void finish();

  enum class Within : uint8_t { Nothing, Body, FirstDigit, SecondDigit };
  Within within_ = Within::Nothing;
  bool damaged_ = false;
  std::string body_;  // as sent, still escaped
  char digit_ = 0;
  std::deque<Piece> pieces_;
};

// As it goes over the line: escaped, with its checksum.
std::string frame_packet(std::string_view body);

std::string to_hex(std::span<const uint8_t> bytes);
std::string to_hex(std::string_view text);
std::optional<std::vector<uint8_t>> from_hex(std::string_view digits);  // none: not pairs of digits

// Reads a packet's fields from its start.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : rest_(text) {}

  bool take(std::string_view literal);     // if it comes next
  std::optional<uint64_t> number();        // 1 to 16 hexadecimal digits
  std::string_view until(char separator);  // which is taken, too; everything if there is none
  std::string_view rest() const { return rest_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace slalom::vm
