#include "kernel_store/elf_file.h"

#include <algorithm>

#include "base/little_endian.h"

namespace slalom::vm {
namespace {

constexpr uint32_t kNoBits = 8;  // a section without contents in the file
constexpr uint32_t kBuildIdNote = 3;
constexpr uint64_t kMaxBuildId = 64;
constexpr size_t kMaxSectionName = 256;

// Reads fields whose offset and width depend on the file's class. A missing field clears ok().
class Fields {
 public:
  Fields(std::span<const uint8_t> bytes, bool is_64bit) : bytes_(bytes), is_64bit_(is_64bit) {}

  uint16_t half(uint64_t offset) { return checked(get_le<uint16_t>(bytes_, offset)); }
  uint32_t word(uint64_t offset) { return checked(get_le<uint32_t>(bytes_, offset)); }
  // An address, offset or size: 4 or 8 bytes.
  uint64_t wide(uint64_t offset32, uint64_t offset64) {
    return is_64bit_ ? checked(get_le<uint64_t>(bytes_, offset64)) : word(offset32);
  }
  bool ok() const { return ok_; }

 private:
  template <class T>
  T checked(std::optional<T> value) {
    ok_ = ok_ && value.has_value();
    return value.value_or(0);
  }
  std::span<const uint8_t> bytes_;
  bool is_64bit_;
  bool ok_ = true;
};

Error truncated() {
  return error("it is cut short or damaged (an ELF table or segment lies outside the file)");
}

Result<void> read_segments(std::span<const uint8_t> bytes, Fields& in, ElfFile& elf) {
  const uint64_t table = in.wide(0x1c, 0x20);
  const uint16_t entry_size = in.half(elf.is_64bit ? 0x36 : 0x2a);
  const uint16_t count = in.half(elf.is_64bit ? 0x38 : 0x2c);
  if (count == 0) return {};
  if (entry_size < (elf.is_64bit ? 56 : 32) || !part_of(bytes, table, uint64_t{entry_size} * count))
    return truncated();
  for (uint16_t i = 0; i < count; ++i) {
    Fields entry(bytes.subspan(table + uint64_t{entry_size} * i), elf.is_64bit);
    ElfSegment segment;
    segment.type = entry.word(0);
    segment.offset = entry.wide(4, 8);
    segment.virtual_address = entry.wide(8, 16);
    segment.physical_address = entry.wide(12, 24);
    segment.file_size = entry.wide(16, 32);
    segment.memory_size = entry.wide(20, 40);
    if (!entry.ok()) return truncated();
    const bool has_contents = segment.type == ElfFile::kLoad || segment.type == ElfFile::kNote;
    if (has_contents && !part_of(bytes, segment.offset, segment.file_size)) return truncated();
    if (segment.type == ElfFile::kLoad && segment.file_size > segment.memory_size)
      return error("it is damaged: a segment has {} bytes in the file and {} in memory", segment.file_size,
                   segment.memory_size);
    elf.segments.push_back(segment);
  }
  return {};
}

std::string name_at(std::span<const uint8_t> names, uint32_t offset) {
  std::string name;
  // Limited, because thousands of sections could share one long name.
  for (uint64_t i = offset; i < names.size() && names[i] != 0 && name.size() < kMaxSectionName; ++i)
    name += static_cast<char>(names[i]);
  return name;
}

Result<void> read_sections(std::span<const uint8_t> bytes, Fields& in, ElfFile& elf) {
  const uint64_t table = in.wide(0x20, 0x28);
  const uint16_t entry_size = in.half(elf.is_64bit ? 0x3a : 0x2e);
  const uint16_t count = in.half(elf.is_64bit ? 0x3c : 0x30);
  const uint16_t name_section = in.half(elf.is_64bit ? 0x3e : 0x32);
  if (table == 0 || count == 0) return {};
  // Loading needs no sections, and kernels are shipped without their section tables.
  if (entry_size < (elf.is_64bit ? 64 : 40) || !part_of(bytes, table, uint64_t{entry_size} * count))
    return {};
  std::vector<uint32_t> names;
  for (uint16_t i = 0; i < count; ++i) {
    Fields entry(bytes.subspan(table + uint64_t{entry_size} * i), elf.is_64bit);
    ElfSection section;
    names.push_back(entry.word(0));
    section.type = entry.word(4);
    section.offset = entry.wide(16, 24);
    section.size = section.type == kNoBits ? 0 : entry.wide(20, 32);
    if (!entry.ok()) return truncated();
    if (section.size != 0 && !part_of(bytes, section.offset, section.size)) section.size = 0;
    elf.sections.push_back(section);
  }
  if (name_section >= count || elf.sections[name_section].size == 0) return {};
  const ElfSection& texts = elf.sections[name_section];
  const std::span<const uint8_t> all = bytes.subspan(texts.offset, texts.size);
  for (uint16_t i = 0; i < count; ++i) elf.sections[i].name = name_at(all, names[i]);
  return {};
}

}  // namespace

bool is_elf(std::span<const uint8_t> bytes) {
  return get_le<uint32_t>(bytes, 0) == 0x464c457fu;
}

Result<ElfFile> parse_elf(std::span<const uint8_t> bytes) {
  if (!is_elf(bytes) || bytes.size() < 0x34) return error("it is no ELF file");
  ElfFile elf;
  if (bytes[5] != 1 || (bytes[4] != 1 && bytes[4] != 2))
    return error("it is an ELF file for another kind of machine; slalom runs x86 kernels");
  elf.is_64bit = bytes[4] == 2;
  Fields in(bytes, elf.is_64bit);
  elf.type = in.half(0x10);
  elf.machine = in.half(0x12);
  elf.entry = in.wide(0x18, 0x18);
  TRY(read_segments(bytes, in, elf));
  TRY(read_sections(bytes, in, elf));
  if (!in.ok()) return truncated();
  return elf;
}

std::string build_id(const ElfFile& elf, std::span<const uint8_t> bytes) {
  for (const ElfSegment& segment : elf.segments) {
    if (segment.type != ElfFile::kNote) continue;
    const auto notes = part_of(bytes, segment.offset, segment.file_size);
    if (!notes) continue;
    for (uint64_t at = 0; at + 12 <= notes->size();) {
      const uint64_t name_size = *get_le<uint32_t>(*notes, at);
      const uint64_t size = *get_le<uint32_t>(*notes, at + 4);
      const uint32_t type = *get_le<uint32_t>(*notes, at + 8);
      const uint64_t contents = at + 12 + ((name_size + 3) & ~uint64_t{3});
      const auto id = part_of(*notes, contents, size);
      if (!id) break;
      const bool gnu =
          name_size == 4 && (*notes)[at + 12] == 'G' && (*notes)[at + 13] == 'N' && (*notes)[at + 14] == 'U';
      if (gnu && type == kBuildIdNote && size > 0 && size <= kMaxBuildId) {
        std::string text;
        for (const uint8_t byte : *id) text += fmt::format("{:02x}", byte);
        return text;
      }
      at = contents + ((size + 3) & ~uint64_t{3});
    }
  }
  return {};
}

}  // namespace slalom::vm
