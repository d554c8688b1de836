#include "base/check.h"

#include <cstring>

namespace slalom {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  const char* source = std::strstr(file, "src/");
  throw InternalError(fmt::format("{}:{}: CHECK({}) failed{}{}", source != nullptr ? source : file, line,
                                  condition, message.empty() ? "" : ": ", message));
}

}  // namespace slalom
