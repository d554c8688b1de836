#include "toy/toy_arithmetic.h"

#include <algorithm>
#include <array>

namespace slalom {
namespace {

constexpr std::array<ToyOperator, 16> kOperators = {{
    {"+", ToyOp::Add},
    {"-", ToyOp::Subtract},
    {"*", ToyOp::Multiply},
    {"/", ToyOp::Divide},
    {"%", ToyOp::Remainder},
    {"&", ToyOp::BitAnd},
    {"|", ToyOp::BitOr},
    {"^", ToyOp::BitXor},
    {"<<", ToyOp::ShiftLeft},
    {">>", ToyOp::ShiftRight},
    {"==", ToyOp::Equal},
    {"!=", ToyOp::NotEqual},
    {"<", ToyOp::Less},
    {"<=", ToyOp::LessEqual},
    {">", ToyOp::Less, true},
    {">=", ToyOp::LessEqual, true},
}};

}  // namespace

const ToyOperator& toy_operator(std::string_view text) {
  const auto found = std::find_if(kOperators.begin(), kOperators.end(),
                                  [&](const ToyOperator& entry) { return entry.text == text; });
  CHECK(found != kOperators.end(), "no operator {}", text);
  return *found;
}

const int64_t* find_toy_param(const ToyParams& params, std::string_view name) {
  for (const auto& [key, value] : params)
    if (key == name) return &value;
  return nullptr;
}

std::optional<int64_t> fold_toy_constant(const ToyExpr& expr, const ToyParams& params) {
  switch (expr.kind) {
    case ToyExpr::Kind::Number:
      return expr.number;
    case ToyExpr::Kind::Name: {
      const int64_t* param = find_toy_param(params, expr.name);
      return param ? std::optional(*param) : std::nullopt;
    }
    case ToyExpr::Kind::Unary: {
      const auto value = fold_toy_constant(expr.args[0], params);
      if (!value) return std::nullopt;
      return expr.name == "!" ? int64_t{*value == 0} : toy_arithmetic(ToyOp::Subtract, 0, *value);
    }
    case ToyExpr::Kind::Binary: {
      const auto left = fold_toy_constant(expr.args[0], params);
      const auto right = fold_toy_constant(expr.args[1], params);
      if (!left || !right) return std::nullopt;
      if (expr.name == "&&") return int64_t{*left != 0 && *right != 0};
      if (expr.name == "||") return int64_t{*left != 0 || *right != 0};
      const ToyOperator& op = toy_operator(expr.name);
      return op.swapped ? toy_arithmetic(op.op, *right, *left) : toy_arithmetic(op.op, *left, *right);
    }
    default:
      return std::nullopt;
  }
}

Result<int64_t> evaluate_toy_constant(std::string_view text, const ToyParams& params) {
  const ToyExprSyntax syntax = parse_toy_expr(text);
  if (syntax.problem) return error("in `{}`: {}", text, syntax.problem->message);
  const auto value = fold_toy_constant(syntax.expr, params);
  if (!value) return error("`{}` is not made of numbers and parameters only (or divides by zero)", text);
  return *value;
}

}  // namespace slalom
