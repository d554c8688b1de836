// Program: what `slalom run -- ./prog args...` names: an ordinary executable that slalom can control, how it
// is to be run, and which files it consists of.
//
// A value that a capsule holds as text. find_program() refuses, with the reason and what to do, whatever a
// preloaded library could not control.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace slalom {

struct Program {
  std::string path;                    // absolute
  std::vector<std::string> arguments;  // the first is the name it is called by
  std::string hash;                    // of the file's bytes, 16 hex digits

  // When a wait with a time limit runs out.
  enum class Timeouts : uint8_t {
    Any,   // at any moment: the schedule decides
    Idle,  // only when nothing else can run
  } timeouts = Timeouts::Any;
  uint32_t spurious = 0;  // how often each thread may wake from a condition variable by itself
  // Which exit statuses are failures of the program.
  enum class Statuses : uint8_t { ZeroOnly, AnyGood } statuses = Statuses::ZeroOnly;

  // Parts of it ("module:NAME", "function:NAME*"), with what these call: where the search switches threads
  // (empty: everywhere), and where it does not. The innermost one decides (process/program_scope.h).
  std::vector<std::string> scope, atomic;

  // What else must be right at the end of an execution: what it has printed, and what a command of the user's
  // says that is given it (process/judge.h).
  struct ExpectedOutput {
    std::string file;  // where it was written down, for messages
    std::string text;
    bool operator==(const ExpectedOutput&) const = default;
  };
  std::optional<ExpectedOutput> expected_output;
  std::string check;  // for a shell; empty: there is none
  bool is_judged() const { return expected_output || !check.empty(); }

  std::string
      scratch;  // absolute: each execution starts in a fresh copy of that folder; empty: where slalom is

  std::string name() const;  // without its folder
  bool operator==(const Program&) const = default;
};

// `command`: a path, or a name that is searched for in PATH, and its arguments.
Result<Program> find_program(const std::vector<std::string>& command);
// Of a program that was found before: is it still the same file?
Result<void> check_unchanged(const Program& program);
bool is_instrumented(const Program& program);  // by -fsanitize=thread
bool is_instrumented(std::span<const uint8_t> elf);

std::string to_text(const Program& program);
Result<Program> parse_program(const std::string& text);

}  // namespace slalom
