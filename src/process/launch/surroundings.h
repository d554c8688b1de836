// What a program's executions depend on besides the program itself and its arguments: the libraries that are
// loaded with it, the folder that it starts in, its environment, and slalom's version.
//
// Kept with a finding, as text, and compared when a replay does not show it: then, and only then, what
// differs may be why. Values of variables are not kept, only short hashes of them.
#pragma once

#include <string>
#include <vector>

#include "process/launch/program.h"
#include "process/launch/zygote.h"

namespace slalom {

std::string surroundings_of(const Program& program, const std::vector<Zygote::Module>& modules,
                            const std::string& version);
// What differs, a sentence each. Text that is none of these says nothing.
std::vector<std::string> differences(const std::string& then, const std::string& now);

// The variables that a program gets from slalom's own environment: "NAME=value".
std::vector<std::string> inherited_environment();

}  // namespace slalom
