// CHECK: an invariant of slalom itself, tested in every build.
//
// A failed CHECK throws InternalError. explore/runner.cc attaches the schedule; then main() prints the
// message and exits with code 3. Not for guest faults (values) or user errors (Result).
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace slalom {

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace slalom

#define CHECK(condition, ...)                                                                \
  do {                                                                                       \
    if (!(condition)) [[unlikely]]                                                           \
      ::slalom::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)
