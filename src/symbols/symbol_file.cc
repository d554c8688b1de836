#include "symbols/symbol_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace slalom {
namespace {

using Bytes = std::vector<uint8_t>;

// Symbols below this address are not in the kernel: offsets of per-CPU variables, and constants.
constexpr uint64_t kKernel = 0xffffffff80000000;

template <typename T>
void put(Bytes& out, const T& value) {
  const size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

uint32_t put_text(Bytes& out, const std::string& text) {
  const auto at = static_cast<uint32_t>(out.size());
  out.insert(out.end(), text.begin(), text.end());
  out.push_back(0);
  return at;
}

struct Range {
  uint64_t first = ~uint64_t{0}, end = 0;
  void add(const Symbol& symbol) {
    first = std::min(first, symbol.address);
    end = std::max(end, symbol.address + std::max<uint64_t>(symbol.size, 1));
  }
  uint64_t size() const { return end > first ? end - first : 0; }
};

}  // namespace

std::vector<uint8_t> make_symbol_file(std::span<const Symbol> symbols, std::span<const UnwindRow> rows) {
  enum : uint16_t { kNone, kText, kData, kFrame, kSymbols, kStrings, kNames, kSections };
  Range text, data;
  for (const Symbol& symbol : symbols)
    if (symbol.address >= kKernel) (symbol.is_code() ? text : data).add(symbol);

  Bytes names{0}, strings{0}, table;
  put(table, Elf64_Sym{});
  for (const Symbol& symbol : symbols) {
    const bool inside = symbol.address >= kKernel;
    const bool code = symbol.is_code();
    Elf64_Sym one{};
    one.st_name = put_text(strings, symbol.name);
    one.st_info = ELF64_ST_INFO(STB_GLOBAL, code ? STT_FUNC : STT_OBJECT);
    one.st_shndx = static_cast<uint16_t>(!inside ? SHN_ABS : code ? int{kText} : int{kData});
    one.st_value = symbol.address;
    one.st_size = symbol.size;
    put(table, one);
  }

  std::vector<Elf64_Shdr> sections(kSections);
  const auto name = [&](unsigned section, const char* called) {
    sections[section].sh_name = put_text(names, called);
    sections[section].sh_addralign = 1;
  };
  name(kText, ".text");
  name(kData, ".data");
  name(kFrame, ".debug_frame");
  name(kSymbols, ".symtab");
  name(kStrings, ".strtab");
  name(kNames, ".shstrtab");
  const auto memory = [&](unsigned section, const Range& range, uint64_t flags) {
    sections[section].sh_type = SHT_NOBITS;
    sections[section].sh_flags = SHF_ALLOC | flags;
    sections[section].sh_addr = range.size() == 0 ? 0 : range.first;
    sections[section].sh_size = range.size();
  };
  memory(kText, text, SHF_EXECINSTR);
  memory(kData, data, SHF_WRITE);

  Bytes file(sizeof(Elf64_Ehdr));
  const auto contents = [&](unsigned section, uint32_t type, const Bytes& bytes) {
    file.resize((file.size() + 7) / 8 * 8);
    sections[section].sh_type = type;
    sections[section].sh_offset = file.size();
    sections[section].sh_size = bytes.size();
    file.insert(file.end(), bytes.begin(), bytes.end());
  };
  contents(kFrame, SHT_PROGBITS, make_debug_frame(rows));
  contents(kSymbols, SHT_SYMTAB, table);
  contents(kStrings, SHT_STRTAB, strings);
  contents(kNames, SHT_STRTAB, names);
  sections[kSymbols].sh_link = kStrings;
  sections[kSymbols].sh_info = 1;  // index of the first symbol that is not local
  sections[kSymbols].sh_entsize = sizeof(Elf64_Sym);

  file.resize((file.size() + 7) / 8 * 8);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shoff = file.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kSections;
  header.e_shstrndx = kNames;
  for (const Elf64_Shdr& section : sections) put(file, section);
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

}  // namespace slalom
