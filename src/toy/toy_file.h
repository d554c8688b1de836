// Loads toy programs from TOML files. docs/toy-language.md describes the format. Errors name the file and the
// line, and say what to do.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "toy/toy_program.h"

namespace slalom {

// Values for the program's [params], instead of the file's defaults.
using ToySettings = std::map<std::string, int64_t>;

Result<ToyProgram> load_toy_file(const std::string& path, const ToySettings& settings = {});
// `origin` is the file's name in errors.
Result<ToyProgram> parse_toy(std::string_view text, const std::string& origin,
                             const ToySettings& settings = {});

}  // namespace slalom
