// DebugInfo: address -> source line and the functions inlined there, from DWARF.
//
// For a vmlinux, a program and its libraries, or kernel modules, as far as they were built with -g. Separate
// debug files are found by build id and by debug link, beside the file and in /usr/lib/debug. Files without
// any are no error: they are listed, and their addresses have no place. Reading is libdw's; it takes memory
// for what is asked.
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
    std::string file;  // where in it the call was that became inline code
    int line = 0;
    bool operator==(const Call&) const = default;
  };
  std::string file;
  int line = 0;
  std::string function;            // whose source line that is; empty: unknown
  std::vector<Call> inlined_into;  // innermost first: the last one is the function that exists as code
  std::string folder;              // where it was compiled: what files without a leading / are relative to

  // "queue.c:12 (push, inlined into fill at main.c:40)"
  std::string text() const;
  bool operator==(const SourcePlace&) const = default;
};

// The GNU build id of an ELF file, in hexadecimal; empty: it has none, or is no ELF file.
std::string build_id_of(const std::filesystem::path& file);

// A place where the compiler put a function's code into another's.
struct InlinedCode {
  struct Range {
    uint64_t begin = 0, end = 0;
    bool operator==(const Range&) const = default;
  };
  std::string symbol;  // as the linker would know it; of a function that it would not, the name alone
  std::vector<Range> ranges;
  bool operator==(const InlinedCode&) const = default;
};

// A source file as it was compiled.
struct CompiledUnit {
  std::string file;      // as the compiler was given it
  std::string producer;  // the compiler and, if it is gcc, its options
  bool assembler = false;
};

struct DebugFile {
  std::filesystem::path path;
  uint64_t bias = 0;  // what loading added to the addresses of a position-independent program or library
  // Of a relocatable file (a .ko): where its sections lie (locate_sections of elf_symbols.h).
  std::map<std::string, uint64_t> sections;
};

class DebugInfo {
 public:
  // `directories` are searched for debug files besides the usual places.
  static Result<DebugInfo> open(std::vector<DebugFile> files,
                                const std::vector<std::filesystem::path>& directories = {});
  ~DebugInfo();
  DebugInfo(DebugInfo&&) noexcept;
  DebugInfo& operator=(DebugInfo&&) noexcept;

  std::optional<SourcePlace> at(uint64_t address) const;
  // All of it: reads everything that there is.
  std::vector<InlinedCode> inlined_code() const;
  std::vector<CompiledUnit> units() const;
  // The files that have no debug information, here or elsewhere.
  const std::vector<std::filesystem::path>& without() const;

 private:
  struct State;
  explicit DebugInfo(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace slalom
