#include "kernel_store/elf_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"
#include "base/rng.h"
#include "unit/kernel_store/kernel_files.h"

namespace slalom::vm {
namespace {

constexpr uint32_t kNoteType = 4;

Bytes build_id_note(uint8_t first) {
  return {4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, first, 0xbc, 0, 0x12};
}

Bytes with_note(Bytes note) {
  return make_elf64(0x1000, {{0x1000, 0x1000, text_bytes("code")}, {0, 0, std::move(note), 0, kNoteType}});
}

std::string id_of(const Bytes& file) {
  const Result<ElfFile> elf = parse_elf(file);
  EXPECT_TRUE(elf.ok());
  return elf.ok() ? build_id(*elf, file) : "";
}

// Files that end where memory ends: reading one byte more is a crash.
class EdgeOfMemory {
 public:
  explicit EdgeOfMemory(size_t most) : page_(static_cast<size_t>(::sysconf(_SC_PAGESIZE))) {
    room_ = (most + page_ - 1) / page_ * page_;
    void* memory = ::mmap(nullptr, room_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    memory_ = static_cast<uint8_t*>(memory);
    EXPECT_EQ(::mprotect(memory_ + room_, page_, PROT_NONE), 0);
  }
  ~EdgeOfMemory() { ::munmap(memory_, room_ + page_); }
  EdgeOfMemory(const EdgeOfMemory&) = delete;
  EdgeOfMemory& operator=(const EdgeOfMemory&) = delete;

  std::span<const uint8_t> put(const Bytes& file) {
    uint8_t* to = memory_ + room_ - file.size();
    std::copy(file.begin(), file.end(), to);
    return {to, file.size()};
  }

 private:
  size_t page_, room_ = 0;
  uint8_t* memory_ = nullptr;
};

bool lies_within(const ElfFile& elf, size_t size) {
  const auto fits = [&](uint64_t offset, uint64_t length) {
    return offset <= size && length <= size - offset;
  };
  for (const ElfSegment& one : elf.segments)
    if ((one.type == ElfFile::kLoad || one.type == ElfFile::kNote) && !fits(one.offset, one.file_size))
      return false;
  for (const ElfSection& one : elf.sections)
    if (one.size != 0 && !fits(one.offset, one.size)) return false;
  return true;
}

TEST(ElfFile, ATableThatTheFileDoesNotHoldIsRefused) {
  const Bytes whole = with_note(build_id_note(1));
  ASSERT_EQ(parse_elf(whole)->segments.size(), 2u);
  Bytes more = whole;
  more[0x38] = 3;  // its third entry would begin within the file and end outside
  EXPECT_FALSE(parse_elf(more).ok());
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_elf(std::span(whole).first(size)).ok()) << size;
}

TEST(ElfFile, MoreSectionsThanTheHeaderCanCountAreRefused) {
  for (const bool is_64bit : {true, false}) {
    Bytes file = is_64bit ? make_elf64(0, {}) : make_elf32(0, {});
    ASSERT_TRUE(parse_elf(file).ok());
    file[is_64bit ? 0x28 : 0x20] = 128;  // e_shoff; e_shnum stays 0
    file.resize(128 + 64 * 70'000);
    const size_t size_at = 128 + (is_64bit ? 32 : 20);  // of the first section: the number of all
    for (int i = 0; i < 4; ++i) file[size_at + i] = static_cast<uint8_t>(70'000 >> (8 * i));
    const Result<ElfFile> elf = parse_elf(file);
    ASSERT_FALSE(elf.ok());
    EXPECT_NE(elf.error().message.find("65,279 sections"), std::string::npos) << elf.error().message;
  }
}

TEST(ElfFile, BuildIds) {
  EXPECT_EQ(id_of(with_note(build_id_note(0xfa))), "fabc0012");
  Bytes other = {6, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 'L', 'i', 'n', 'u', 'x', 0, 0, 0, 1, 2, 3, 0};
  const Bytes id = build_id_note(0xfb);
  other.insert(other.end(), id.begin(), id.end());
  EXPECT_EQ(id_of(with_note(other)), "fbbc0012");
  Bytes foreign = id;
  foreign[12] = 'X';
  EXPECT_EQ(id_of(with_note(foreign)), "");
  Bytes cut = id;
  cut.pop_back();
  EXPECT_EQ(id_of(with_note(cut)), "");
  Bytes huge = id;
  huge[4] = 65;
  huge.resize(16 + 68);
  EXPECT_EQ(id_of(with_note(huge)), "");
}

// The files are not changed either.
TEST(ElfFile, NothingIsReadBeyondTheEndOfDamagedFiles) {
  Bytes program = *read_file("/bin/true");
  std::vector<Bytes> seeds = {with_note(build_id_note(1)),
                              make_elf32(0x1000, {{0x1000, 0x1000, text_bytes("code")}}), std::move(program)};
  size_t most = 0;
  for (const Bytes& seed : seeds) most = std::max(most, seed.size());
  EdgeOfMemory memory(most);
  const std::vector<ElfSection> sections = parse_elf(seeds[2])->sections;
  EXPECT_TRUE(std::ranges::any_of(sections, [](const ElfSection& one) { return one.name == ".text"; }));
  uint64_t read = 0, refused = 0;
  for (uint64_t i = 0; i < 30'000; ++i) {
    Rng rng(3, i);
    Bytes file = seeds[i % seeds.size()];
    if (rng.below(4) == 0) file.resize(file.size() - rng.below(std::min<size_t>(file.size(), 200)));
    for (uint64_t n = 1 + rng.below(4); n > 0; --n) {
      // The tables are at the beginning and at the end.
      const size_t place = rng.below(std::min<size_t>(file.size(), 1024));
      const size_t at = rng.below(3) == 0 ? file.size() - 1 - place : place;
      const uint64_t value = rng.below(2) == 0 ? file.size() - rng.below(64) : ~uint64_t{0} - rng.below(256);
      const size_t width = std::min<size_t>(file.size() - at, size_t{1} << rng.below(4));
      std::memcpy(&file[at], &value, width);
    }
    const std::span<const uint8_t> bytes = memory.put(file);
    const Result<ElfFile> elf = parse_elf(bytes);
    ++(elf.ok() ? read : refused);
    if (!elf.ok()) continue;
    ASSERT_TRUE(lies_within(*elf, bytes.size())) << i;
    build_id(*elf, bytes);
    ASSERT_TRUE(std::ranges::equal(bytes, file)) << i;
  }
  EXPECT_GT(read, 1'000u);
  EXPECT_GT(refused, 1'000u);
}

}  // namespace
}  // namespace slalom::vm
