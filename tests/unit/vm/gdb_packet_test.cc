// Packets of gdb's protocol: framed packets can be read back, however the bytes are split; damage is
// detected; no input does harm.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "vm/gdb/packet.h"

namespace slalom::vm {
namespace {

using Kind = PacketReader::Kind;
using Piece = PacketReader::Piece;

std::vector<Piece> pieces_of(std::string_view bytes, size_t at_once = ~size_t{0}) {
  PacketReader reader;
  for (size_t i = 0; i < bytes.size(); i += std::min(at_once, bytes.size()))
    reader.feed(bytes.substr(i, at_once));
  std::vector<Piece> all;
  while (auto piece = reader.next()) all.push_back(*piece);
  return all;
}

TEST(GdbPacket, KnownPackets) {
  EXPECT_EQ(frame_packet("OK"), "$OK#9a");
  EXPECT_EQ(frame_packet(""), "$#00");
  EXPECT_EQ(frame_packet("a#b"),
            "$a}\x03"
            "b#43");
  EXPECT_EQ(pieces_of("+$g#67+"), (std::vector<Piece>{{Kind::Packet, "g"}}));
  EXPECT_EQ(pieces_of("\x03$?#3F-"),
            (std::vector<Piece>{{Kind::Break, ""}, {Kind::Packet, "?"}, {Kind::Again, ""}}));
}

TEST(GdbPacket, AnythingFramedIsReadBackInAnyPieces) {
  Rng rng(1);
  for (int round = 0; round < 300; ++round) {
    std::string body, line;
    for (uint64_t i = rng.below(60); i > 0; --i) body += static_cast<char>(rng.next());
    line = frame_packet(body);
    EXPECT_EQ(pieces_of(line, 1 + rng.below(9)), (std::vector<Piece>{{Kind::Packet, body}}));
    // Any other byte changes the checksum or the structure, but never results in another body.
    const size_t at = 1 + rng.below(line.size() - 1);
    line[at] = static_cast<char>(line[at] + 1 + static_cast<char>(rng.below(255)));
    for (const Piece& piece : pieces_of(line))
      EXPECT_TRUE(piece.kind != Kind::Packet || piece.body == body) << "only a digit's case may differ";
  }
}

TEST(GdbPacket, LongPacketsAreDamagedAndTheNextOneIsNot) {
  const std::string fits(PacketReader::kLongest, 'x');
  EXPECT_EQ(pieces_of(frame_packet(fits)), (std::vector<Piece>{{Kind::Packet, fits}}));
  EXPECT_EQ(pieces_of(frame_packet(fits + "x") + frame_packet("g")),
            (std::vector<Piece>{{Kind::Damaged, ""}, {Kind::Packet, "g"}}));
  EXPECT_EQ(pieces_of("$" + std::string(1'000'000, '}') + "#00$g#67"),
            (std::vector<Piece>{{Kind::Damaged, ""}, {Kind::Packet, "g"}}));
}

TEST(GdbPacket, NoiseInAnyPiecesGivesTheSame) {
  Rng rng(2);
  const std::string_view favourites =
      "$#}+-\x03"
      "0a";
  for (int round = 0; round < 200; ++round) {
    std::string noise;
    for (int i = 0; i < 200; ++i)
      noise += rng.below(2) == 0 ? favourites[rng.below(favourites.size())] : static_cast<char>(rng.next());
    EXPECT_EQ(pieces_of(noise), pieces_of(noise, 1 + rng.below(5)));
  }
}

TEST(GdbPacket, Fields) {
  FieldReader in("Z0,ffffffffffffffff,1;rest");
  EXPECT_TRUE(in.take("Z"));
  EXPECT_FALSE(in.take("1"));
  EXPECT_EQ(in.until(','), "0");
  EXPECT_EQ(in.number(), ~uint64_t{0});
  EXPECT_EQ(in.number(), std::nullopt);
  EXPECT_EQ(in.until(';'), ",1");
  EXPECT_EQ(in.until(';'), "rest");
  EXPECT_TRUE(in.at_end());
  EXPECT_EQ(FieldReader("10000000000000000").number(), std::nullopt);  // 17 digits
  EXPECT_EQ(from_hex("0Aff"), (std::vector<uint8_t>{10, 255}));
  EXPECT_EQ(from_hex("0"), std::nullopt);
  EXPECT_EQ(from_hex("0g"), std::nullopt);
  EXPECT_EQ(to_hex(std::string_view("A\n")), "410a");
}

}  // namespace
}  // namespace slalom::vm
