// DebugInfo: finds, in DWARF, the source line and the inlined functions of an address, or the variable and
// the member at it. Also finds the types of variables and allocations.
//
// For a vmlinux, a program and its libraries, or kernel modules that were built with -g. It finds separate
// debug files by build id and by debug link, beside the file and in /usr/lib/debug. A file without debug
// information is no error: without() lists it, and its addresses have no place. libdw reads the files, and
// uses memory only for the parts that queries need.
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
  std::string symbol;  // the linker's name of the function; its plain name if it has no linker's name
  std::vector<Range> ranges;
  bool operator==(const InlinedCode&) const = default;
};

// A source file as it was compiled.
struct CompiledUnit {
  std::string file;      // as passed to the compiler
  std::string producer;  // the compiler and, for gcc, its options
  bool assembler = false;
};

// A variable and the part of it that is at an address.
struct VariablePart {
  std::string name;      // "queue", without namespaces
  std::string part;      // ".slots[3].lock"; empty for the whole variable, and inside a library's type
  std::string function;  // the function of a local variable
  bool operator==(const VariablePart&) const = default;
};

// A function's part of a stack.
struct StackFrame {
  uint64_t pc = 0;   // inside the current instruction; in a caller, before the return address
  uint64_t cfa = 0;  // the stack pointer before the call
  // Values by DWARF's numbers. Holds only the registers that calls preserve, and the stack pointer.
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
  std::string name;     // "queue", "this"
  DebugType type;       // of the object
  uint64_t number = 0;  // the pointer's value, or its address if `in_memory`
  bool in_memory = false;
};

struct DebugFile {
  std::filesystem::path path;
  // The number that loading added to the addresses of a position-independent program or library.
  uint64_t bias = 0;
  // The addresses of the sections of a relocatable file (a .ko); see locate_sections in elf_symbols.h.
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

  // Returns the variable with a fixed address that covers `address`.
  std::optional<VariablePart> variable(uint64_t address) const;
  // Returns the variable of that frame at `address`. Empty if the debug information is not sure of it.
  std::optional<VariablePart> local(const StackFrame& frame, uint64_t address) const;
  // Returns all pointer variables in scope in that frame whose value can be found.
  std::vector<PointerVariable> pointers(const StackFrame& frame) const;
  // Returns the type that "node", "app::Queue" or a template's parameter means at `pc`; empty if the name
  // does not mean exactly one type.
  std::optional<DebugType> type_named(uint64_t pc, const std::string& name) const;
  // Returns the type that a pointer in the code at `pc` points to. `expression` is the pointer: "n",
  // "q->head", "heads[i].next", "link" (a member of *this).
  std::optional<DebugType> pointee(uint64_t pc, const std::string& expression) const;
  // Empty if there is no debug information on the type itself.
  static std::optional<uint64_t> size_of(const DebugType& type);
  static std::string name_of(const DebugType& type);  // "node"; empty if it has none or is built in
  // Returns whether the type belongs to the language's or the threading library. Reports treat such an object
  // as a whole, as users do.
  static bool is_library(const DebugType& type);
  // Returns the part at an offset in an object of that type: ".lock"; empty for the whole object. The part
  // ends with "+5" if the type has no name for the rest.
  static std::string part(const DebugType& type, uint64_t offset);

  // Returns the files without debug information, in themselves or in a separate file.
  const std::vector<std::filesystem::path>& without() const;

 private:
  struct State;
  explicit DebugInfo(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace slalom
