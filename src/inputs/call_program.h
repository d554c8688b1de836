// CallProgram: a list of system calls with their arguments and the memory that these point to: what a flow of
// a kernel test does, or a generated test.
//
// A value, the same for the same text; docs/howto-kernel-test.md has the readable form. Arguments may be the
// result of an earlier call, or a number that a call has written to memory. There are no branches: every call
// is made, whatever those before it gave.
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
    Load,      // what is at that place in the data, plus addend
  };
  Kind kind = Kind::Constant;
  uint8_t size = 0;        // of a load, in bytes: 1, 2, 4 or 8
  bool is_signed = false;  // a load's value is
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
  uint16_t size = 0;    // of a call: how many operands it has; of a store: bytes, 1, 2, 4 or 8
  uint32_t number = 0;  // of the call; of a store: where in the data
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
  std::vector<uint8_t> data;  // as it is at the start
  std::vector<DataObject> objects;

  // Of each call, in the user's words and numbered as in the user's file. Not part of what is executed.
  struct Source {
    std::string text;
    int line = 0;
    bool operator==(const Source&) const = default;
  };
  std::vector<Source> sources;

  size_t calls() const;
};

// `first_line` is where the text begins in the file `origin`.
Result<CallProgram> parse_calls(std::string_view text, const std::string& origin, int first_line = 1);

// A text that parse_calls() makes the same steps and data from. Names are made up: r0 is a result, d0 an
// object.
std::string to_text(const CallProgram& program);

}  // namespace slalom
