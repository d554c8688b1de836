// Is an execution right that has ended well by its own account? What it printed is compared with what the
// user has written down, and given to a command of the user's.
//
// Verdicts are texts: the first line is the same for the same bug, the others have the values. Not for what
// the program itself notices: assertions, crashes, its exit status.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "process/launch/program.h"

namespace slalom {

Result<std::string> read_expected_output(const std::string& file);
// None: it is as expected.
std::optional<std::string> unexpected(const Program::ExpectedOutput& expected, const std::string& output);

struct UserCheck {
  std::string command;
  std::filesystem::path folder;  // where the execution ran
  int output = -1;               // a file with what it printed,
  size_t output_size = 0;        // which is so much
  uint32_t status = 0;           // that it exited with
  uint32_t patience = 5;         // seconds that the command may take
};
// None: it says that all is well. Fails where it cannot be run, or does not end.
Result<std::optional<std::string>> run_check(const UserCheck& check);

}  // namespace slalom
