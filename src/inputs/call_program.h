// CallProgram: a list of system calls with their arguments and the memory to which these point. A flow of a
// kernel test executes one; tests also generate them.
//
// A value: the same text gives the same value. docs/howto-kernel-test.md describes the readable form.
// Arguments may be the result of an earlier call, or a number that a call has written to memory. There are no
// branches: every call is made, whatever the calls before it returned.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slalom {

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
  int32_t addend = 0;
  uint64_t value = 0;

  bool operator==(const Operand&) const = default;
};

struct CallStep {
  static constexpr unsigned kOperands = 6;
  enum class Kind : uint8_t {
    Call,
    Store,  // writes its first operand to the data
  };
  Kind kind = Kind::Call;
  uint16_t size = 0;    // of a call: number of operands; of a store: 1, 2, 4 or 8 bytes
  uint32_t number = 0;  // of a call: its number; of a store: the place in the data
  std::array<Operand, kOperands> operands{};

  bool operator==(const CallStep&) const = default;
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

  // The user's text of each call, with its line in the user's file. Not part of what is executed.
  struct Source {
    std::string text;
    int line = 0;
    bool operator==(const Source&) const = default;
  };
  std::vector<Source> sources;

  size_t calls() const;
};

// The text begins at `first_line` of the file `origin`.
Result<CallProgram> parse_calls(std::string_view text, const std::string& origin, int first_line = 1);

// Returns a text from which parse_calls() makes the same steps and data. Names are invented: r0 is a result,
// d0 an object.
std::string to_text(const CallProgram& program);

}  // namespace slalom
