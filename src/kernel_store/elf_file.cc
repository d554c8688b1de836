#include "kernel_store/elf_file.h"

#include <gelf.h>
#include <libelf.h>

#include <cstddef>
#include <cstring>
#include <memory>

#include "base/little_endian.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kMaxBuildId = 64;
constexpr size_t kMaxSectionName = 256;

using ElfHandle = std::unique_ptr<Elf, decltype(&elf_end)>;

ElfHandle open_elf(std::span<const uint8_t> bytes) {
  elf_version(EV_CURRENT);
  // libelf takes writable memory, but writes to it only when asked to update a file.
  return {elf_memory(reinterpret_cast<char*>(const_cast<uint8_t*>(bytes.data())), bytes.size()), &elf_end};
}

// Returns whether the number of sections is in the first section, as if it were too large for the header.
// libelf would take memory for as many as the file has room for: gigabytes, for a large file of zeros.
bool numbers_are_elsewhere(std::span<const uint8_t> bytes) {
  const bool is_64bit = bytes[EI_CLASS] == ELFCLASS64;
  const uint64_t table = is_64bit ? get_le<uint64_t>(bytes, offsetof(Elf64_Ehdr, e_shoff)).value_or(0)
                                  : get_le<uint32_t>(bytes, offsetof(Elf32_Ehdr, e_shoff)).value_or(0);
  const size_t count = is_64bit ? offsetof(Elf64_Ehdr, e_shnum) : offsetof(Elf32_Ehdr, e_shnum);
  return table != 0 && get_le<uint16_t>(bytes, count) == 0;
}

Error truncated() {
  return error("it is cut short or damaged (an ELF table or segment lies outside the file)");
}

Result<void> read_segments(std::span<const uint8_t> bytes, Elf* in, size_t wanted, ElfFile& elf) {
  if (wanted == 0) return {};
  size_t count = 0;
  // libelf leaves out the end of a table that lies outside the file.
  if (elf_getphdrnum(in, &count) != 0 || count != wanted) return truncated();
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(in, static_cast<int>(i), &header) == nullptr) return truncated();
    const bool has_contents = header.p_type == PT_LOAD || header.p_type == PT_NOTE;
    if (has_contents && !part_of(bytes, header.p_offset, header.p_filesz)) return truncated();
    if (header.p_type == PT_LOAD && header.p_filesz > header.p_memsz)
      return error("it is damaged: a segment has {} bytes in the file and {} in memory", header.p_filesz,
                   header.p_memsz);
    elf.segments.push_back({.type = header.p_type,
                            .virtual_address = header.p_vaddr,
                            .physical_address = header.p_paddr,
                            .offset = header.p_offset,
                            .file_size = header.p_filesz,
                            .memory_size = header.p_memsz});
  }
  return {};
}

// Loading needs no sections, and kernels are shipped without their section tables.
void read_sections(std::span<const uint8_t> bytes, Elf* in, ElfFile& elf) {
  size_t names = 0;
  if (elf_getshdrstrndx(in, &names) != 0) names = SHN_UNDEF;
  size_t count = 0;
  if (elf_getshdrnum(in, &count) != 0) return;
  for (size_t i = 0; i < count; ++i) {
    GElf_Shdr header;
    if (gelf_getshdr(elf_getscn(in, i), &header) == nullptr) return elf.sections.clear();
    ElfSection section{.type = header.sh_type, .offset = header.sh_offset, .size = header.sh_size};
    if (header.sh_type == SHT_NOBITS || !part_of(bytes, section.offset, section.size)) section.size = 0;
    // Limited, because thousands of sections could share one long name.
    if (const char* name = names != SHN_UNDEF ? elf_strptr(in, names, header.sh_name) : nullptr)
      section.name.assign(name, strnlen(name, kMaxSectionName));
    elf.sections.push_back(std::move(section));
  }
}

}  // namespace

bool is_elf(std::span<const uint8_t> bytes) {
  return get_le<uint32_t>(bytes, 0) == 0x464c457fu;
}

Result<ElfFile> parse_elf(std::span<const uint8_t> bytes) {
  if (!is_elf(bytes) || bytes.size() < sizeof(Elf32_Ehdr)) return error("it is no ELF file");
  if (bytes[EI_DATA] != ELFDATA2LSB || (bytes[EI_CLASS] != ELFCLASS32 && bytes[EI_CLASS] != ELFCLASS64))
    return error("it is an ELF file for another kind of machine; slalom runs x86 kernels");
  if (numbers_are_elsewhere(bytes))
    return error("it is damaged, or has more than 65,279 sections, which no kernel or module has");
  const ElfHandle in = open_elf(bytes);
  GElf_Ehdr header;
  if (gelf_getehdr(in.get(), &header) == nullptr) return truncated();
  ElfFile elf{.is_64bit = bytes[EI_CLASS] == ELFCLASS64,
              .type = header.e_type,
              .machine = header.e_machine,
              .entry = header.e_entry};
  TRY(read_segments(bytes, in.get(), header.e_phnum, elf));
  read_sections(bytes, in.get(), elf);
  return elf;
}

std::string build_id(const ElfFile& elf, std::span<const uint8_t> bytes) {
  const ElfHandle in = open_elf(bytes);
  for (const ElfSegment& segment : elf.segments) {
    if (segment.type != PT_NOTE || segment.file_size == 0) continue;
    Elf_Data* notes =
        elf_getdata_rawchunk(in.get(), static_cast<int64_t>(segment.offset), segment.file_size, ELF_T_NHDR);
    if (notes == nullptr) continue;
    GElf_Nhdr note;
    size_t name = 0, contents = 0;
    for (size_t at = 0; (at = gelf_getnote(notes, at, &note, &name, &contents)) > 0;) {
      const auto* data = static_cast<const char*>(notes->d_buf);
      if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || std::memcmp(data + name, "GNU", 4) != 0 ||
          note.n_descsz == 0 || note.n_descsz > kMaxBuildId)
        continue;
      std::string text;
      for (size_t i = 0; i < note.n_descsz; ++i)
        text += fmt::format("{:02x}", static_cast<uint8_t>(data[contents + i]));
      return text;
    }
  }
  return {};
}

}  // namespace slalom::vm
