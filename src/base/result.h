// Result<T>: a value, or an Error whose message tells the user what to do next.
//
// For problems with the user's input or the environment. Broken invariants use CHECK; guest faults are values
// of their own. An Error is never empty.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace slalom {

struct [[nodiscard]] Error {
  std::string message;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & {
    CHECK(ok(), "{}", error().message);
    return std::get<0>(state_);
  }
  const T& value() const& {
    CHECK(ok(), "{}", error().message);
    return std::get<0>(state_);
  }
  T&& value() && {
    CHECK(ok(), "{}", error().message);
    return std::get<0>(std::move(state_));
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

template <typename... Args>
Error error(fmt::format_string<Args...> format, Args&&... args) {
  return Error{fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace slalom

// Evaluates a Result. On error, returns the error from the enclosing function.
#define SLALOM_TRY_JOIN2(a, b) a##b
#define SLALOM_TRY_JOIN(a, b) SLALOM_TRY_JOIN2(a, b)
#define TRY(expression)                                                                   \
  do {                                                                                    \
    if (auto result = (expression); !result.ok()) return ::slalom::Error(result.error()); \
  } while (false)
#define TRY_ASSIGN(declaration, expression)                                 \
  auto SLALOM_TRY_JOIN(try_result_, __LINE__) = (expression);               \
  if (!SLALOM_TRY_JOIN(try_result_, __LINE__).ok())                         \
    return ::slalom::Error(SLALOM_TRY_JOIN(try_result_, __LINE__).error()); \
  declaration = *std::move(SLALOM_TRY_JOIN(try_result_, __LINE__))
