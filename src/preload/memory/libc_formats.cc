// The memory that snprintf() and its kin read (the text of a %s) and write, for an instrumented program.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "preload/memory/accesses.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

// Walks through the arguments that the format describes. Stops at an unknown conversion, because the
// arguments after it cannot be found.
class Format {
 public:
  Format(const char* format, va_list arguments, void* return_address)
      : at_(format), return_address_(return_address) {
    va_copy(arguments_, arguments);
  }
  ~Format() { va_end(arguments_); }
  Format(const Format&) = delete;
  Format& operator=(const Format&) = delete;

  void tell() {
    for (; *at_ != 0; ++at_)
      if (*at_ == '%' && !conversion()) return;
  }

 private:
  static bool is_flag(char c) {
    return c == '-' || c == '+' || c == ' ' || c == '#' || c == '0' || c == '\'' || c == 'I';
  }

  bool conversion() {
    ++at_;
    while (is_flag(*at_)) ++at_;
    number();
    int64_t most = INT64_MAX;
    if (*at_ == '.') {
      ++at_;
      most = number();
      if (most < 0) most = INT64_MAX;
    }
    int longs = 0;
    bool wide = false;
    for (;; ++at_) {
      if (*at_ == 'l')
        ++longs;
      else if (*at_ == 'L')
        wide = true;
      else if (*at_ == 'z' || *at_ == 'j' || *at_ == 't' || *at_ == 'q')
        longs = 2;
      else if (*at_ != 'h')
        break;
    }
    switch (*at_) {
      case '%':
      case 'm':
        return true;
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
      case 'c':
        if (longs > 0)
          static_cast<void>(va_arg(arguments_, long));
        else
          static_cast<void>(va_arg(arguments_, int));
        return true;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        if (wide)
          static_cast<void>(va_arg(arguments_, long double));
        else
          static_cast<void>(va_arg(arguments_, double));
        return true;
      case 'p':
        static_cast<void>(va_arg(arguments_, void*));
        return true;
      case 's': {
        const char* text = va_arg(arguments_, const char*);
        if (longs > 0 || text == nullptr) return true;
        const size_t whole = SLALOM_REAL(strnlen)(text, static_cast<size_t>(most));
        formats(text, whole < static_cast<size_t>(most) ? whole + 1 : whole, return_address_);
        return true;
      }
      default:
        return false;
    }
  }

  int64_t number() {
    if (*at_ == '*') {
      ++at_;
      return va_arg(arguments_, int);
    }
    int64_t value = 0;
    for (; *at_ >= '0' && *at_ <= '9'; ++at_) value = value * 10 + (*at_ - '0');
    return value;
  }

  const char* at_;
  void* return_address_;
  va_list arguments_;
};

template <typename Print>
int print(char* to, size_t room, const char* format, va_list arguments, void* from, Print real) {
  if (!runtime().sees_accesses()) return real();
  Format(format, arguments, from).tell();
  const int length = real();
  if (length < 0 || room == 0) return length;
  const size_t size = static_cast<size_t>(length) + 1;
  formatted(to, size < room ? size : room, from);
  return length;
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

#define FROM __builtin_return_address(0)
#define REST(last)   \
  va_list arguments; \
  va_start(arguments, last)

SLALOM_EXPORT int vsnprintf(char* to, size_t room, const char* format, va_list arguments) noexcept {
  return print(to, room, format, arguments, FROM,
               [&] { return SLALOM_REAL(vsnprintf)(to, room, format, arguments); });
}
SLALOM_EXPORT int snprintf(char* to, size_t room, const char* format, ...) noexcept {
  REST(format);
  const int result = print(to, room, format, arguments, FROM,
                           [&] { return SLALOM_REAL(vsnprintf)(to, room, format, arguments); });
  va_end(arguments);
  return result;
}
SLALOM_EXPORT int vsprintf(char* to, const char* format, va_list arguments) noexcept {
  return print(to, SIZE_MAX, format, arguments, FROM,
               [&] { return SLALOM_REAL(vsprintf)(to, format, arguments); });
}
SLALOM_EXPORT int sprintf(char* to, const char* format, ...) noexcept {
  REST(format);
  const int result = print(to, SIZE_MAX, format, arguments, FROM,
                           [&] { return SLALOM_REAL(vsprintf)(to, format, arguments); });
  va_end(arguments);
  return result;
}

// The same functions, as called by a program built with -D_FORTIFY_SOURCE.
extern "C" {
int __vsnprintf_chk(char*, size_t, int, size_t, const char*, va_list) noexcept;
int __snprintf_chk(char*, size_t, int, size_t, const char*, ...) noexcept;
int __vsprintf_chk(char*, int, size_t, const char*, va_list) noexcept;
int __sprintf_chk(char*, int, size_t, const char*, ...) noexcept;
}
SLALOM_EXPORT int __vsnprintf_chk(char* to, size_t most, int flag, size_t room, const char* format,
                                  va_list arguments) noexcept {
  return print(to, most, format, arguments, FROM,
               [&] { return SLALOM_REAL(__vsnprintf_chk)(to, most, flag, room, format, arguments); });
}
SLALOM_EXPORT int __snprintf_chk(char* to, size_t most, int flag, size_t room, const char* format,
                                 ...) noexcept {
  REST(format);
  const int result = print(to, most, format, arguments, FROM, [&] {
    return SLALOM_REAL(__vsnprintf_chk)(to, most, flag, room, format, arguments);
  });
  va_end(arguments);
  return result;
}
SLALOM_EXPORT int __vsprintf_chk(char* to, int flag, size_t room, const char* format,
                                 va_list arguments) noexcept {
  return print(to, SIZE_MAX, format, arguments, FROM,
               [&] { return SLALOM_REAL(__vsprintf_chk)(to, flag, room, format, arguments); });
}
SLALOM_EXPORT int __sprintf_chk(char* to, int flag, size_t room, const char* format, ...) noexcept {
  REST(format);
  const int result = print(to, SIZE_MAX, format, arguments, FROM,
                           [&] { return SLALOM_REAL(__vsprintf_chk)(to, flag, room, format, arguments); });
  va_end(arguments);
  return result;
}
