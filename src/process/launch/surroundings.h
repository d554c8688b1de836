// The surroundings of a program's executions, besides the program itself and its arguments: the libraries
// that are loaded with it, its working folder, its environment, and slalom's version.
//
// Kept with a finding, as text. Compared if a replay does not show the finding, because differences may then
// be the reason. Holds short hashes of the values of variables, not the values.
#pragma once

#include <string>
#include <vector>

#include "process/launch/program.h"
#include "process/launch/zygote.h"

namespace slalom {

std::string surroundings_of(const Program& program, const std::vector<Zygote::Module>& modules,
                            const std::string& version);
// Returns the differences, a sentence each. Returns none for texts in another format.
std::vector<std::string> differences(const std::string& then, const std::string& now);

// The variables that a program inherits from slalom's environment, as "NAME=value".
std::vector<std::string> inherited_environment();

}  // namespace slalom
