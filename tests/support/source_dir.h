// Where the source tree is, for tests and benchmarks that read files of it. Its path is compiled into one
// small file only, so that all others compile to the same in every clone.
#pragma once

#include <string>

namespace slalom {

std::string source_dir();

}  // namespace slalom
