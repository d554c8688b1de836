// Packets of gdb's remote protocol: splits the received bytes into pieces, frames packets to send, and reads
// fields.
//
// Invalid input never causes a failure here: a damaged packet becomes a Damaged piece. The meaning of packets
// is the matter of gdb/stub.h.
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
  static constexpr size_t kLongest = 0x4000;  // body, in bytes; longer ones count as damaged

  enum class Kind : uint8_t {
    Packet,   // complete, with correct checksum, and unescaped
    Damaged,  // must be sent again
    Again,    // the peer requests the last packet again
    Break,    // Ctrl-C
  };
  struct Piece {
    Kind kind = Kind::Packet;
    std::string body;
    bool operator==(const Piece&) const = default;
  };

  void feed(std::string_view bytes);
  std::optional<Piece> next();
  bool take_break();  // removes the next piece if it is a Break

 private:
  void finish();

  enum class Within : uint8_t { Nothing, Body, FirstDigit, SecondDigit };
  Within within_ = Within::Nothing;
  bool damaged_ = false;
  std::string body_;  // as sent, still escaped
  char digit_ = 0;
  std::deque<Piece> pieces_;
};

// Returns the packet as it is sent: escaped, with its checksum.
std::string frame_packet(std::string_view body);

std::string to_hex(std::span<const uint8_t> bytes);
std::string to_hex(std::string_view text);
std::optional<std::vector<uint8_t>> from_hex(std::string_view digits);  // empty unless pairs of digits

// Reads a packet's fields from its start.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : rest_(text) {}

  bool take(std::string_view literal);     // true if it comes next
  std::optional<uint64_t> number();        // 1 to 16 hexadecimal digits
  std::string_view until(char separator);  // also takes the separator; everything if there is none
  std::string_view rest() const { return rest_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace slalom::vm
