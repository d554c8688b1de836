// DebugInfo: address -> source line and the functions inlined there, from DWARF; and the variable there, with
// the member of it.
//
// For a vmlinux, a program and its libraries, or kernel modules, as far as they were built with -g. Separate
// debug files are found by build id and by debug link, beside the file and in /usr/lib/debug. Files without
// debug information are no error: without() lists them, and their addresses have no place. libdw reads the
// files, and uses memory only for what is asked.
//
// Not for names of stripped code (symbol_table.h), nor for a kernel's types (btf.h). Not for several threads
// at once.
#pragma once

#include <array>
#include <cstddef>
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

// What lies at an address: a variable, and which part of it.
struct VariablePart {
  std::string name;  // "queue", without namespaces
  std::string
      part;  // ".slots[3].lock"; empty for all of it, or for a part that is the library's own business
  std::string function;  // of a local variable: whose
  bool operator==(const VariablePart&) const = default;
};

// A function's part of a stack.
struct StackFrame {
  uint64_t pc = 0;   // inside the instruction that it is at: in a caller, before the return address
  uint64_t cfa = 0;  // the stack pointer before it was called
  // As they are there, by DWARF's numbers; only those that calls keep, and the stack pointer.
  std::array<std::optional<uint64_t>, 16> registers;
  bool operator==(const StackFrame&) const = default;
};

// A type. Lives as long as its DebugInfo.
class DebugType {
 public:
  bool operator==(const DebugType&) const = default;

 private:
  friend struct DebugTypeAccess;
  std::array<uintptr_t, 4> die_{};  // libdw's, which this header does not include
};

// A variable that points to an object of a type with a name.
struct PointerVariable {
  std::string name;  // "queue", "this"
  DebugType type;    // of the object
  // The pointer, or where it is in memory.
  uint64_t number = 0;
  bool in_memory = false;
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

  // Of a variable with an address of its own.
  std::optional<VariablePart> variable(uint64_t address) const;
  // Of a variable in that frame. Empty if the debug information is not sure that there is one.
  std::optional<VariablePart> local(const StackFrame& frame, uint64_t address) const;
  // All those in scope in that frame whose value can be known.
  std::vector<PointerVariable> pointers(const StackFrame& frame) const;
  // What "node", "app::Queue" or a template's parameter means at a place in the code; empty if that is not
  // one type.
  std::optional<DebugType> type_named(uint64_t pc, const std::string& name) const;
  // What a pointer in the code there points to: "n", "q->head", "heads[i].next", "link" (a member of *this).
  std::optional<DebugType> pointee(uint64_t pc, const std::string& expression) const;
  // Without debug information on the type itself: empty.
  static std::optional<uint64_t> size_of(const DebugType& type);
  static std::string name_of(const DebugType& type);  // "node"; empty if it has none, and of built-in types
  // Is it one of the language's or the threading library's? These are one thing for their users.
  static bool is_library(const DebugType& type);
  // What lies at an offset in an object of that type: ".lock"; empty for all of it. It ends with "+5" where
  // the type says no more.
  static std::string part(const DebugType& type, uint64_t offset);

  // The files that have no debug information, here or elsewhere.
  const std::vector<std::filesystem::path>& without() const;

 private:
  struct State;
  explicit DebugInfo(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace slalom
