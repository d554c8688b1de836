#include "support/source_dir.h"

namespace slalom {

std::string source_dir() {
  return SLALOM_SOURCE_DIR;
}

}  // namespace slalom
