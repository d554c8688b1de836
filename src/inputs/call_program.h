// CallProgram: a list of system calls with their arguments and the memory to which these point. A flow of a
// kernel test executes one; tests also generate them.
//
// A value: the same text gives the same value. docs/howto-kernel-test.md describes the readable form.
// Arguments may be the result of an earlier call, or a number that a call has written to memory. There are no
// branches: every call is made, whatever the calls before it returned.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slalom {

// The list whose results or data an argument uses. A flow has a list of its own, and may have calls that are
// made before it starts: prepared for this flow, or once for all flows.
enum class CallList : uint8_t { Own, OfFlow, OfAll };

struct Operand {
  enum class Kind : uint8_t {
    Constant,  // value
    Result,    // of the call with that ordinal, plus addend
    Pointer,   // to that place in the data
    Load,      // the number at that place in the data, plus addend
  };
  Kind kind = Kind::Constant;
  uint8_t size = 0;        // of a Load, in bytes: 1, 2, 4 or 8
  bool is_signed = false;  // of a Load: its value is signed
  CallList list = CallList::Own;
  int32_t addend = 0;
  uint64_t value = 0;

  bool operator==(const Operand&) const = default;
};

struct CallStep {
  static constexpr unsigned kOperands = 6;
  enum class Kind : uint8_t {
    Call,
    Store,   // writes its first operand to the data
    Choose,  // writes a number below its first operand, a constant, to the data; the search chooses it
    Write,   // copies from the data to the address that is the sum of two operands
    Read,    // copies from there to the data
  };
  static constexpr uint8_t kKinds = 5;
  static constexpr uint32_t kMostChoices = 1024;
  Kind kind = Kind::Call;
  CallList list = CallList::Own;  // of others than calls: whose data
  uint16_t size = 0;              // of a call: number of operands; of others: bytes
  uint32_t number = 0;            // of a call: its number; of others: the place in the data
  std::array<Operand, kOperands> operands{};

  bool operator==(const CallStep&) const = default;

  // Copies between data and an address that only the guest knows.
  bool copies() const { return kind == Kind::Write || kind == Kind::Read; }
  unsigned used_operands() const { return kind == Kind::Call ? size : copies() ? 2 : 1; }
  // Returns true if it changes the data of its list.
  bool changes_data() const { return kind == Kind::Store || kind == Kind::Choose || kind == Kind::Read; }
};

// A piece of the data: a buffer, a text, a structure.
struct DataObject {
  uint32_t offset = 0;
  uint32_t size = 0;
  bool operator==(const DataObject&) const = default;
};

struct CallProgram {
  std::vector<CallStep> steps;
  std::vector<uint8_t> data;  // at the start
  std::vector<DataObject> objects;
  // What arguments may use of the lists OfFlow and OfAll.
  struct Extent {
    uint32_t calls = 0, data = 0;
    bool operator==(const Extent&) const = default;
  };
  std::array<Extent, 2> prepared{};

  // The user's text of each call, with its line in the user's file. Not part of what is executed.
  struct Source {
    std::string text;
    int line = 0;
    bool operator==(const Source&) const = default;
  };
  std::vector<Source> sources;

  size_t calls() const;
};

// A list of calls that others may refer to, with the names that it has given.
struct NamedCalls {
  CallProgram program;
  std::map<std::string, Operand, std::less<>> names;
  std::map<std::string, std::string, std::less<>> types;  // of names that are structures
};

// Lists that are prepared before the one that is parsed; nullptr if there is none.
struct PreparedCalls {
  const NamedCalls* of_flow = nullptr;
  const NamedCalls* of_all = nullptr;
};

// The text begins at `first_line` of the file `origin`.
Result<CallProgram> parse_calls(std::string_view text, const std::string& origin, int first_line = 1);
Result<NamedCalls> parse_named_calls(std::string_view text, const std::string& origin, int first_line,
                                     const PreparedCalls& prepared);

// Returns a text from which parse_calls() makes the same steps and data. Names are invented: r0 is a result,
// d0 an object. The program must not refer to prepared lists.
std::string to_text(const CallProgram& program);

}  // namespace slalom
