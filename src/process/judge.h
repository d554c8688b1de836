// Judges an execution that has ended without a failure of its own: compares its output with the user's
// expected output, and passes it to a command of the user's.
//
// A verdict is a text. Its first line is equal for the same bug, the other lines have the values. Not for
// failures that the program itself shows: assertions, crashes, its exit status.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "process/launch/program.h"

namespace slalom {

Result<std::string> read_expected_output(const std::string& file);
// Returns a verdict; empty if the output is as expected.
std::optional<std::string> unexpected(const Program::ExpectedOutput& expected, const std::string& output);

struct UserCheck {
  std::string command;
  std::filesystem::path folder;  // folder of the execution
  int output = -1;               // file with its output
  size_t output_size = 0;        // size of its output
  uint32_t status = 0;           // its exit status
  uint32_t patience = 5;         // time limit of the command in seconds
};
// Returns a verdict; empty if the command accepts the execution. Fails if the command cannot be run or does
// not end in time.
Result<std::optional<std::string>> run_check(const UserCheck& check);

}  // namespace slalom
