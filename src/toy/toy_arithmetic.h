// The meaning of the operators of the toy language, for the compiler's constants and for the machine.
// Arithmetic wraps around. A shift uses its count modulo 64.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/result.h"
#include "toy/toy_parser.h"
#include "toy/toy_program.h"

namespace slalom {

struct ToyOperator {
  std::string_view text;
  ToyOp op;
  bool swapped = false;  // `op` takes the operands in reverse order
};
const ToyOperator& toy_operator(std::string_view text);  // `text`: any binary operator but && and ||

const int64_t* find_toy_param(const ToyParams& params, std::string_view name);

// Returns the value of an expression of numbers and parameters; nothing if it is not one, or divides by zero.
std::optional<int64_t> fold_toy_constant(const ToyExpr& expr, const ToyParams& params);
// The same for a text, such as `size = "n+1"`.
Result<int64_t> evaluate_toy_constant(std::string_view text, const ToyParams& params);

// Returns nothing for a division by zero.
inline std::optional<int64_t> toy_arithmetic(ToyOp op, int64_t x, int64_t y) {
  const auto ux = static_cast<uint64_t>(x);
  const auto uy = static_cast<uint64_t>(y);
  const auto wrap = [](uint64_t value) { return static_cast<int64_t>(value); };
  switch (op) {
    case ToyOp::Add:
      return wrap(ux + uy);
    case ToyOp::Subtract:
      return wrap(ux - uy);
    case ToyOp::Multiply:
      return wrap(ux * uy);
    case ToyOp::Divide:
      if (y == 0) return std::nullopt;
      return y == -1 ? wrap(0 - ux) : x / y;
    case ToyOp::Remainder:
      if (y == 0) return std::nullopt;
      return y == -1 ? 0 : x % y;
    case ToyOp::BitAnd:
      return x & y;
    case ToyOp::BitOr:
      return x | y;
    case ToyOp::BitXor:
      return x ^ y;
    case ToyOp::ShiftLeft:
      return wrap(ux << (uy & 63));
    case ToyOp::ShiftRight:
      return x >> (uy & 63);
    case ToyOp::Equal:
      return x == y;
    case ToyOp::NotEqual:
      return x != y;
    case ToyOp::Less:
      return x < y;
    case ToyOp::LessEqual:
      return x <= y;
    default:
      CHECK(false, "not arithmetic: {}", static_cast<int>(op));
  }
  return std::nullopt;
}

}  // namespace slalom
