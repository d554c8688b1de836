#include "base/container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/file.h"
#include "base/rng.h"
#include "unit/base/temporary_directory.h"

namespace slalom {
namespace {

using Bytes = std::vector<uint8_t>;
using testing::HasSubstr;
using testing::StartsWith;

constexpr FileKind kKinds[] = {FileKind::Schedule, FileKind::Trace, FileKind::Capsule, FileKind::SearchState,
                               FileKind::Snapshot};

Bytes random_payload(Rng& rng, size_t size, uint64_t symbols) {
  Bytes payload(size);
  std::generate(payload.begin(), payload.end(), [&] { return static_cast<uint8_t>(rng.below(symbols)); });
  return payload;
}

Bytes capsule_file() {
  Rng rng(3);
  return *pack_container(FileKind::Capsule, random_payload(rng, 500, 4));
}

std::string trouble(const Bytes& file, FileKind expected = FileKind::Capsule) {
  const auto payload = unpack_container(file, expected);
  return payload.ok() ? "no error" : payload.error().message;
}

// Returns the message for a capsule changed by `change`, with a corrected checksum.
template <typename Change>
std::string trouble_after(Change change) {
  Bytes file = capsule_file();
  change(file);
  repair_checksum(file);
  return trouble(file);
}

TEST(Container, PayloadsOfAllSizesComeBack) {
  Rng rng(1);
  for (const FileKind kind : kKinds) {
    for (const size_t size : {0, 1, 2, 40, 1000, 200'000}) {
      for (const uint64_t symbols : {1, 3, 256}) {
        const Bytes payload = random_payload(rng, size, symbols);
        const auto file = pack_container(kind, payload);
        ASSERT_TRUE(file.ok());
        const auto back = unpack_container(*file, kind);
        ASSERT_TRUE(back.ok()) << back.error().message;
        EXPECT_EQ(*back, payload);
        EXPECT_LE(file->size(), payload.size() + kContainerHeader);
      }
    }
  }
}

TEST(Container, WhatCompressesIsCompressed) {
  EXPECT_LT(pack_container(FileKind::Trace, Bytes(100'000, 7))->size(), 200u);
}

TEST(Container, EveryDamagedBitIsNoticed) {
  const Bytes file = capsule_file();
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    Bytes damaged = file;
    damaged[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    EXPECT_NE(trouble(damaged), "no error") << "bit " << bit;
  }
}

TEST(Container, EveryCutIsNoticed) {
  const Bytes file = capsule_file();
  for (size_t size = 1; size < file.size(); ++size)
    EXPECT_THAT(trouble(Bytes(file.begin(), file.begin() + static_cast<ptrdiff_t>(size))),
                StartsWith("truncated: "));
}

TEST(Container, ForeignFiles) {
  EXPECT_EQ(trouble({}), "empty file, not a capsule; write it again");
  EXPECT_EQ(trouble({'{', '}'}), "not a slalom file; a capsule is needed here");
  EXPECT_EQ(trouble(Bytes(1000, 0)), "not a slalom file; a capsule is needed here");
  Bytes text_mode = capsule_file();  // text mode: a newline became two characters
  text_mode.insert(text_mode.begin() + 7, '\r');
  EXPECT_EQ(trouble(text_mode), "not a slalom file; a capsule is needed here");
}

TEST(Container, WrongKindsSayWhatToDo) {
  const Bytes payload = {1, 2, 3};
  EXPECT_EQ(trouble(*pack_container(FileKind::Trace, payload)),
            "this is a trace, not a capsule; use `slalom trace` or `slalom detect` for it");
  EXPECT_EQ(trouble(*pack_container(FileKind::Capsule, payload), FileKind::Trace),
            "this is a capsule, not a trace; use `slalom replay` for it");
  EXPECT_EQ(trouble(*pack_container(FileKind::SearchState, payload)),
            "this is a search state, not a capsule; use `slalom explore --state` for it");
  EXPECT_EQ(trouble(*pack_container(FileKind::Schedule, payload)),
            "this is a schedule, not a capsule; it does not name its target; use the capsule of the finding");
  EXPECT_EQ(trouble_after([](Bytes& file) { file[8] = 200; }),
            "made by a newer slalom (file kind 200 is unknown here); update slalom");
}

TEST(Container, Versions) {
  EXPECT_EQ(trouble_after([](Bytes& file) { file[10] = 7; }),
            "made by a newer slalom (capsule version 7, this one reads up to 5); update slalom");
  EXPECT_TRUE(unpack_container(capsule_file(), FileKind::Capsule).ok());
  EXPECT_EQ(trouble_after([](Bytes& file) { ++file[10]; }).substr(0, 39),
            "made by a newer slalom (capsule version");  // true for the next version already
  EXPECT_EQ(trouble_after([](Bytes& file) { file[10] = 0; }),
            "malformed: capsule version 0 never existed; write it again");
  EXPECT_EQ(trouble_after([](Bytes& file) { file[12] = 9; }),
            "made by a newer slalom (encoding 9 is unknown here); update slalom");
}

TEST(Container, TruncatedSaysHowMuchIsThere) {
  Bytes file = capsule_file();
  const size_t contents = file.size() - kContainerHeader;
  file.pop_back();
  EXPECT_EQ(trouble(file),
            fmt::format("truncated: {} of {} bytes of contents; fetch it again", contents - 1, contents));
  file.resize(20);
  EXPECT_EQ(trouble(file), "truncated: 20 of at least 40 bytes; fetch it again");
}

TEST(Container, Corrupted) {
  Bytes file = capsule_file();
  file.back() ^= 1;
  EXPECT_EQ(trouble(file), "corrupted: its checksum does not match its contents; fetch it again");
  file = capsule_file();
  file.push_back(0);
  EXPECT_EQ(trouble(file), "corrupted: 1 bytes too many at its end; fetch it again");
}

TEST(Container, AbsurdSizesAreRefusedBeforeTheyAreAllocated) {
  EXPECT_EQ(trouble_after([](Bytes& file) { file[23] = 0x7f; }),
            "malformed: it claims 9151314442816848372 bytes of contents, more than the limit of 1073741824; "
            "write it again");
  // Within the limit, but more than the file's bytes can hold.
  EXPECT_THAT(trouble_after([](Bytes& file) { file[19] = 0x3f; }), HasSubstr("cannot expand to 1056965108;"));
  EXPECT_THAT(trouble_after([](Bytes& file) { ++file[16]; }), HasSubstr("do not decompress to 501 bytes"));
  EXPECT_THAT(trouble_after([](Bytes& file) { file[12] = 0; }),
              HasSubstr("it claims 500 bytes of contents and has"));
}

TEST(Container, FilesNameTheirPathInErrors) {
  const TemporaryDirectory directory;
  const auto path = directory / "x.slalom";
  ASSERT_TRUE(write_container(path, FileKind::Schedule, Bytes{1, 2}).ok());
  EXPECT_EQ(*read_container(path, FileKind::Schedule), Bytes({1, 2}));
  const auto wrong = read_container(path, FileKind::Capsule);
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message, StartsWith(path.string() + ": this is a schedule, not a capsule; "));
}

// The envelope, byte by byte: it never changes.
TEST(Container, Layout) {
  const Bytes header = {0x89, 's', 'l', 'a', 'l', 'o', 'm', '\n',  // magic
                        3,    0,   5,   0,   0,   0,   0,   0,     // kind, version, encoding
                        2,    0,   0,   0,   0,   0,   0,   0,     // payload size
                        2,    0,   0,   0,   0,   0,   0,   0};    // stored size
  const Bytes payload = {0xaa, 0xbb};
  Bytes all = header;
  all.insert(all.end(), payload.begin(), payload.end());
  Bytes expected = header;
  for (int i = 0; i < 8; ++i) expected.push_back(static_cast<uint8_t>(checksum(all) >> (8 * i)));
  expected.insert(expected.end(), payload.begin(), payload.end());
  EXPECT_EQ(*pack_container(FileKind::Capsule, payload), expected);
  EXPECT_EQ(checksum({}), 0x2d06800538d394c2u);  // XXH3's own value for no input
}

}  // namespace
}  // namespace slalom
