#include "symbols/elf_symbols.h"

#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/little_endian.h"
#include "symbols/kallsyms.h"

namespace slalom {
namespace {

struct CloseElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};

// libelf takes writable memory, but writes to it only when asked to update a file.
class ElfInMemory {
 public:
  static Result<ElfInMemory> open(std::span<const uint8_t> file) {
    elf_version(EV_CURRENT);
    Elf* elf = elf_memory(reinterpret_cast<char*>(const_cast<uint8_t*>(file.data())), file.size());
    std::unique_ptr<Elf, CloseElf> handle(elf);
    if (elf == nullptr || elf_kind(elf) != ELF_K_ELF)
      return error("not an ELF file; give a vmlinux, a module or a program");
    return ElfInMemory(file, std::move(handle));
  }

  Elf* get() const { return elf_.get(); }
  std::optional<std::span<const uint8_t>> bytes(uint64_t offset, uint64_t size) const {
    return part_of(file_, offset, size);
  }
  std::string_view name_of(const GElf_Shdr& header) const {
    size_t names = 0;
    if (elf_getshdrstrndx(elf_.get(), &names) != 0) return {};
    const char* name = elf_strptr(elf_.get(), names, header.sh_name);
    return name != nullptr ? name : std::string_view{};
  }

 private:
  ElfInMemory(std::span<const uint8_t> file, std::unique_ptr<Elf, CloseElf> elf)
      : file_(file), elf_(std::move(elf)) {}

  std::span<const uint8_t> file_;
  std::unique_ptr<Elf, CloseElf> elf_;
};

// Returns the letter that nm prints, for functions and variables.
char type_letter(const ElfInMemory& elf, const GElf_Sym& symbol) {
  const bool global = GELF_ST_BIND(symbol.st_info) != STB_LOCAL;
  if (GELF_ST_BIND(symbol.st_info) == STB_WEAK) return 'W';
  GElf_Shdr section;
  Elf_Scn* scn = elf_getscn(elf.get(), symbol.st_shndx);
  char letter = 'd';
  if (symbol.st_shndx == SHN_ABS || scn == nullptr || gelf_getshdr(scn, &section) == nullptr) {
    letter = 'a';
  } else if ((section.sh_flags & SHF_EXECINSTR) != 0) {
    letter = 't';
  } else if (section.sh_type == SHT_NOBITS) {
    letter = 'b';
  } else if ((section.sh_flags & SHF_WRITE) == 0) {
    letter = 'r';
  }
  return global ? static_cast<char>(letter - 'a' + 'A') : letter;
}

std::vector<GElf_Sym> entries_of(Elf_Scn* section) {
  std::vector<GElf_Sym> entries;
  GElf_Shdr header;
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || gelf_getshdr(section, &header) == nullptr || header.sh_entsize == 0) return entries;
  const uint64_t count = std::min<uint64_t>(data->d_size / header.sh_entsize, INT32_MAX);
  for (uint64_t i = 0; i < count; ++i) {
    GElf_Sym entry;
    if (gelf_getsym(data, static_cast<int>(i), &entry) == nullptr) break;
    entries.push_back(entry);
  }
  return entries;
}

std::vector<Symbol> symbols_of(const ElfInMemory& elf, Elf_Scn* section, uint64_t names, uint64_t bias,
                               std::string_view module) {
  std::vector<Symbol> symbols;
  for (const GElf_Sym& entry : entries_of(section)) {
    const int type = GELF_ST_TYPE(entry.st_info);
    const bool wanted = type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE || type == STT_GNU_IFUNC;
    if (entry.st_shndx == SHN_UNDEF || !wanted) continue;
    const char* name = elf_strptr(elf.get(), names, entry.st_name);
    if (name == nullptr || *name == 0) continue;
    const char letter = type_letter(elf, entry);
    const bool is_offset = letter == 'a' || letter == 'A';
    symbols.push_back({.address = entry.st_value + (is_offset ? 0 : bias),
                       .size = entry.st_size,
                       .name = name,
                       .module = std::string(module),
                       .type = letter,
                       .is_offset = is_offset});
  }
  return symbols;
}

}  // namespace

Result<std::vector<ElfPiece>> loaded_pieces(std::span<const uint8_t> file) {
  TRY_ASSIGN(const ElfInMemory elf, ElfInMemory::open(file));
  size_t count = 0;
  if (elf_getphdrnum(elf.get(), &count) != 0)
    return error("malformed ELF file: its program headers lie outside of it");
  std::vector<ElfPiece> pieces;
  for (size_t i = 0; i < std::min<size_t>(count, INT32_MAX); ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf.get(), static_cast<int>(i), &header) == nullptr)
      return error("malformed ELF file: its program headers lie outside of it");
    if (header.p_type != PT_LOAD) continue;
    const auto bytes = elf.bytes(header.p_offset, header.p_filesz);
    if (!bytes) return error("malformed ELF file: a segment lies outside of it; was it cut short?");
    pieces.push_back({header.p_vaddr, *bytes});
  }
  return pieces;
}

Result<ElfPiece> elf_section(std::span<const uint8_t> file, std::string_view name) {
  TRY_ASSIGN(const ElfInMemory elf, ElfInMemory::open(file));
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf.get(), section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || elf.name_of(header) != name) continue;
    if (header.sh_type == SHT_NOBITS) return ElfPiece{header.sh_addr, {}};
    const auto bytes = elf.bytes(header.sh_offset, header.sh_size);
    if (!bytes) return error("malformed ELF file: {} lies outside of it; was it cut short?", name);
    return ElfPiece{header.sh_addr, *bytes};
  }
  return ElfPiece{};
}

Result<SymbolTable> read_elf_symbols(std::span<const uint8_t> file, uint64_t bias, std::string_view module) {
  TRY_ASSIGN(const ElfInMemory elf, ElfInMemory::open(file));
  std::vector<Symbol> found;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf.get(), section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if (header.sh_type != SHT_SYMTAB && (header.sh_type != SHT_DYNSYM || !found.empty())) continue;
    found = symbols_of(elf, section, header.sh_link, bias, module);
    // A section's start mark without a size (__bss_start, __TMC_END__) comes after a variable at the same
    // address.
    std::ranges::stable_sort(found, {}, [](const Symbol& symbol) {
      return symbol.size == 0 && symbol.type != 't' && symbol.type != 'T';
    });
    if (header.sh_type == SHT_SYMTAB) break;
  }
  return SymbolTable(std::move(found));
}

Result<SymbolTable> read_vmlinux_symbols(std::span<const uint8_t> vmlinux) {
  TRY_ASSIGN(SymbolTable own, read_elf_symbols(vmlinux));
  if (own.size() != 0) return own;
  TRY_ASSIGN(const std::vector<ElfPiece> pieces, loaded_pieces(vmlinux));
  Error last = error("this kernel has no loaded segments; give a vmlinux");
  for (const ElfPiece& piece : pieces) {
    Result<SymbolTable> symbols = read_kallsyms(piece.bytes, piece.address);
    if (symbols.ok()) return symbols;
    last = symbols.error();
  }
  return last;
}

Result<std::map<std::string, uint64_t>> locate_sections(std::span<const uint8_t> file,
                                                        const std::vector<Symbol>& loaded) {
  TRY_ASSIGN(const ElfInMemory elf, ElfInMemory::open(file));
  std::map<std::string_view, std::optional<uint64_t>> addresses;  // no value if the name occurs twice
  for (const Symbol& symbol : loaded) {
    const auto [known, is_new] = addresses.try_emplace(symbol.name, symbol.address);
    if (!is_new) known->second.reset();
  }
  std::map<std::string, uint64_t> sections;
  for (Elf_Scn* table = nullptr; (table = elf_nextscn(elf.get(), table)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(table, &header) == nullptr || header.sh_type != SHT_SYMTAB) continue;
    for (const GElf_Sym& symbol : entries_of(table)) {
      const char* name = elf_strptr(elf.get(), header.sh_link, symbol.st_name);
      GElf_Shdr section;
      Elf_Scn* scn = symbol.st_shndx == SHN_UNDEF ? nullptr : elf_getscn(elf.get(), symbol.st_shndx);
      if (name == nullptr || scn == nullptr || gelf_getshdr(scn, &section) == nullptr) continue;
      const auto known = addresses.find(name);
      if (known != addresses.end() && known->second)
        sections.try_emplace(std::string(elf.name_of(section)), *known->second - symbol.st_value);
    }
  }
  return sections;
}

}  // namespace slalom
