// Program: the program of `slalom run -- ./prog args...`: an ordinary executable that slalom can control, and
// how to run it.
//
// A plain value that a capsule holds as text. find_program() refuses any program that a preloaded library
// could not control, and says why and what to do.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace slalom {

struct Program {
  std::string path;                    // absolute
  std::vector<std::string> arguments;  // the first is the name that it is called by
  std::string hash;                    // of the file's bytes, 16 hex digits

  // When a wait with a time limit runs out.
  enum class Timeouts : uint8_t {
    Any,   // at any moment, which the schedule decides
    Idle,  // only when no other thread can run
  } timeouts = Timeouts::Any;
  uint32_t spurious = 0;  // spurious wake-ups that each thread may have from condition variables
  // Which exit statuses are failures of the program.
  enum class Statuses : uint8_t { ZeroOnly, AnyGood } statuses = Statuses::ZeroOnly;

  // Parts of the program ("module:NAME", "function:NAME*") including the functions that they call. `scope`:
  // where the search switches threads; empty means everywhere. `atomic`: where it does not. The innermost
  // part decides (process/program_scope.h).
  std::vector<std::string> scope, atomic;

  // Further conditions at the end of an execution: its output, and the result of a user's command that gets
  // the output (process/judge.h).
  struct ExpectedOutput {
    std::string file;  // file that it was read from, for messages
    std::string text;
    bool operator==(const ExpectedOutput&) const = default;
  };
  std::optional<ExpectedOutput> expected_output;
  std::string check;  // a shell command; empty if there is none
  bool is_judged() const { return expected_output || !check.empty(); }

  std::string
      // Absolute path: each execution starts in a fresh copy of this folder. Empty: in slalom's working
      // folder.
      scratch;

  std::string name() const;  // without the folder
  bool operator==(const Program&) const = default;
};

// `command` is a path, or a name to search in PATH, and its arguments.
Result<Program> find_program(const std::vector<std::string>& command);
// Fails if the program's file has changed since it was found.
Result<void> check_unchanged(const Program& program);
bool is_instrumented(const Program& program);  // built with -fsanitize=thread
bool is_instrumented(std::span<const uint8_t> elf);

std::string to_text(const Program& program);
Result<Program> parse_program(const std::string& text);

}  // namespace slalom
