// DebugInfo: maps an address to its source line and to the functions inlined there, from DWARF.
//
// For a vmlinux, a program and its libraries, or kernel modules, as far as they were built with -g. Separate
// debug files are found by build id and by debug link, beside the file and in /usr/lib/debug. Files without
// debug information are no error: without() lists them, and their addresses have no place. libdw reads the
// files, and uses memory only for what is asked.
//
// Not for names of stripped code (symbol_table.h), nor for types (btf.h). Not for several threads at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace slalom {

struct SourcePlace {
  struct Call {
    std::string function;
    std::string file;  // the file of the call that was inlined
    int line = 0;
    bool operator==(const Call&) const = default;
  };
  std::string file;
  int line = 0;
  std::string function;            // the function of that source line; empty if unknown
  std::vector<Call> inlined_into;  // innermost first; the last one is the function that exists as code
  std::string folder;              // where it was compiled; relative files are relative to it

  // "queue.c:12 (push, inlined into fill at main.c:40)"
  std::string text() const;
  bool operator==(const SourcePlace&) const = default;
};

// Returns the GNU build id of an ELF file, in hexadecimal; empty if it has none or is no ELF file.
std::string build_id_of(const std::filesystem::path& file);

// A place where the compiler inlined a function into another.
struct InlinedCode {
  struct Range {
    uint64_t begin = 0, end = 0;
    bool operator==(const Range&) const = default;
  };
  std::string symbol;  // the linker's name of the function; else its name alone
  std::vector<Range> ranges;
  bool operator==(const InlinedCode&) const = default;
};

// A source file as it was compiled.
struct CompiledUnit {
  std::string file;      // as passed to the compiler
  std::string producer;  // the compiler and, for gcc, its options
  bool assembler = false;
};

struct DebugFile {
  std::filesystem::path path;
  // The number that loading added to the addresses of a position-independent program or library.
  uint64_t bias = 0;
  // Of a relocatable file (a .ko): the addresses of its sections (locate_sections of elf_symbols.h).
  std::map<std::string, uint64_t> sections;
};

class DebugInfo {
 public:
  // Searches `directories` for debug files, besides the usual places.
  static Result<DebugInfo> open(std::vector<DebugFile> files,
                                const std::vector<std::filesystem::path>& directories = {});
  ~DebugInfo();
  DebugInfo(DebugInfo&&) noexcept;
  DebugInfo& operator=(DebugInfo&&) noexcept;

  std::optional<SourcePlace> at(uint64_t address) const;
  // Reads all debug information.
  std::vector<InlinedCode> inlined_code() const;
  std::vector<CompiledUnit> units() const;
  // Returns the files for which there is no debug information.
  const std::vector<std::filesystem::path>& without() const;

 private:
  struct State;
  explicit DebugInfo(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace slalom
