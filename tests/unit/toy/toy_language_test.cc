// The language: what each construct computes, and the errors for wrong code.
#include "unit/toy/toy_support.h"

namespace slalom::test {
namespace {

// Returns the value of an expression in a program with a few names to use.
int64_t value_of(const std::string& expression) {
  ToyBuilder b;
  b.param("n", 7).shared("x", {.init = 5}).shared("a", {.size = 4}).shared("result");
  b.thread("t", "i = 2\na[3] = 30\nresult = " + expression);
  ToyMachine machine(built(b));
  EXPECT_EQ(text_of(run(machine, go_on).outcome), "exited") << expression;
  return machine.state().cells[5];
}

TEST(ToyLanguage, Expressions) {
  const std::vector<std::pair<std::string, int64_t>> cases = {
      {"1 + 2 * 3", 7},
      {"(1 + 2) * 3", 9},
      {"10 - 4 - 3", 3},
      {"100 / 10 / 5", 2},
      {"-7 / 2", -3},
      {"-7 % 3", -1},
      {"1 << 4 + 1", 32},
      {"-16 >> 2", -4},
      {"6 & 3 == 3", 0},  // == binds tighter than &
      {"(6 & 3) == 2", 1},
      {"1 | 6 ^ 5 & 4", 1 | (6 ^ (5 & 4))},
      {"1 < 2 == 1", 1},
      {"3 > 2", 1},
      {"2 >= 3", 0},
      {"2 <= 2", 1},
      {"2 != 2", 0},
      {"!5", 0},
      {"!0", 1},
      {"!!5", 1},
      {"--5", 5},
      {"- -5 - -5", 10},
      {"2 && 0", 0},
      {"2 && 3", 1},
      {"0 || 4", 1},
      {"1 || 1 / 0", 1},
      {"0 && 1 / 0", 0},
      {"1 || 0 && 0", 1},
      {"n * 2", 14},
      {"x + n", 12},
      {"a[i + 1]", 30},
      {"a[a[0] + 3] + x", 35},
      {"i * i + (i << i)", 12},
      {"0x10 + 1", 17},
      {"9223372036854775807 + 1", INT64_MIN},
      {"(-9223372036854775807 - 1) / -1", INT64_MIN},
      {"id", 0},
      {"(1 +\n 2)", 3},
      {"load(x) + 1", 6},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(value_of(text), expected) << text;
}

// Random expressions, printed with as few parentheses as C needs, compared with C++'s own arithmetic.
struct RandomExpression {
  std::string text;
  int64_t value = 0;
  int binding = 0;
};
RandomExpression random_expression(Rng& rng, int depth) {
  if (depth == 0 || rng.below(5) == 0) {
    const auto value = static_cast<int64_t>(rng.below(20));
    if (rng.below(3) == 0) return {"i", 2, 100};
    if (rng.below(3) == 0) return {"x", 5, 100};
    return {fmt::format("{}", value), value, 100};
  }
  static const std::vector<std::pair<std::string, int>> kOperators = {
      {"||", 1}, {"&&", 2}, {"|", 3}, {"^", 4}, {"&", 5}, {"==", 6},
      {"<", 7},  {">=", 7}, {"+", 9}, {"-", 9}, {"*", 10}};
  const auto& [op, binding] = kOperators[rng.below(kOperators.size())];
  const RandomExpression l = random_expression(rng, depth - 1);
  const RandomExpression r = random_expression(rng, depth - 1);
  const auto wrapped = [](const RandomExpression& e, bool wrap) {
    return wrap ? "(" + e.text + ")" : e.text;
  };
  RandomExpression e{wrapped(l, l.binding < binding) + " " + op + " " + wrapped(r, r.binding <= binding), 0,
                     binding};
  if (op == "||") e.value = l.value || r.value;
  if (op == "&&") e.value = l.value && r.value;
  if (op == "|") e.value = l.value | r.value;
  if (op == "^") e.value = l.value ^ r.value;
  if (op == "&") e.value = l.value & r.value;
  if (op == "==") e.value = l.value == r.value;
  if (op == "<") e.value = l.value < r.value;
  if (op == ">=") e.value = l.value >= r.value;
  if (op == "+") e.value = l.value + r.value;
  if (op == "-") e.value = l.value - r.value;
  if (op == "*") e.value = l.value * r.value;
  return e;
}

TEST(ToyLanguage, RandomExpressionsAgreeWithTheHost) {
  Rng rng(1);
  for (int i = 0; i < 2000; ++i) {
    const RandomExpression expression = random_expression(rng, 4);
    ASSERT_EQ(value_of(expression.text), expression.value) << expression.text;
  }
}

// Returns the notes of a thread's code, in order of execution.
std::string notes_of(const std::string& code) {
  ToyBuilder b;
  b.shared("x").thread("t", code);
  std::string notes;
  for (const std::string& line : run(b).lines)
    if (const size_t at = line.find(" note \""); at != std::string::npos)
      notes += line.substr(at + 7, line.size() - at - 8);
  return notes;
}

TEST(ToyLanguage, ControlFlow) {
  EXPECT_EQ(notes_of("if 1 { note \"a\" } else { note \"b\" }"), "a");
  EXPECT_EQ(notes_of("if 0 { note \"a\" }\nelse if 0 { note \"b\" }\nelse { note \"c\" }"), "c");
  EXPECT_EQ(notes_of("if 0 { note \"a\" } else if 1 { note \"b\" } else { note \"c\" }; note \"d\""), "bd");
  EXPECT_EQ(notes_of("i = 0; while i < 3 { note \"a\"; i = i + 1 }"), "aaa");
  EXPECT_EQ(notes_of("for i in 1..4 { note \"a\" }"), "aaa");
  EXPECT_EQ(notes_of("for i in 4..4 { note \"a\" }"), "");
  EXPECT_EQ(notes_of("for i in 0..9 { if i == 1 { continue }; if i == 3 { break }; note \"a\" }"), "aa");
  EXPECT_EQ(notes_of("for i in 0..2 { for j in 0..2 { note \"a\" }; note \"b\" }"), "aabaab");
  EXPECT_EQ(notes_of("i = 3; for j in 0..i { i = 1; note \"a\" }"), "aaa");  // the bound is evaluated once
  EXPECT_EQ(notes_of("i = 0\nagain: note \"a\"\ni = i + 1\nif i < 3 { goto again }\nnote \"b\""), "aaab");
  EXPECT_EQ(notes_of("goto end\nnote \"a\"\nend:"), "");
  EXPECT_EQ(notes_of("note \"a\"; exit; note \"b\""), "a");
  EXPECT_EQ(notes_of("if r == 0 { note \"a\" }\nr = 1  # r is 0 before"), "a");
  EXPECT_EQ(notes_of("r = 1; r = r && x || r; if r { note \"a\" }"), "a");
}

TEST(ToyLanguage, EachSharedAccessIsOneOperationFromLeftToRight) {
  ToyBuilder b;
  b.shared("x", {.init = 1}).shared("a", {.size = 2}).shared("f", {.atomic = true});
  b.thread("t",
           "a[x] = x + a[1]\nf = f\nstore(x, load(x))\nr = cas(x, 1, 9); r = cas(x, 1, 9); r = xchg(x, 4); r "
           "= fetch_add(x, 2)");
  const std::vector<std::string> expected = {"0 t load x 1",
                                             "1 t load x 1",
                                             "2 t load a[1] 0",
                                             "3 t store a[1] 1 w",
                                             "4 t atomic load f 0",
                                             "5 t atomic store f 0 w",
                                             "6 t atomic load x 1",
                                             "7 t atomic store x 1 w",
                                             "8 t compare-exchange x 1 w",
                                             "9 t compare-exchange x 9",
                                             "10 t read-modify-write x 4 w",
                                             "11 t read-modify-write x 6 w",
                                             "11 t exit t state=0 other=t"};
  EXPECT_EQ(run(b).lines, expected);
}

TEST(ToyLanguage, ProblemsNameTheLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"r = y", "t:1: nothing is called `y`"},
      {"x = 1\n\nr = zz + 1", "t:3: nothing is called `zz`"},
      {"n = 3", "t:1: `n` is a parameter"},
      {"m = 3", "t:1: `m` is a synchronisation object"},
      {"r = m", "t:1: `m` is a mutex, not a value"},
      {"r = a", "t:1: `a` is an array: write a[index]"},
      {"x[1] = 2", "t:1: `x` is not an array; to use it as a heap handle"},
      {"x = 1 +", "t:1: expected an expression, found the end of the code"},
      {"x = (1", "t:1: expected `)` after the expression in parentheses"},
      {"x = 1 2", "t:1: expected a newline or `;` before `2`"},
      {"x = 99999999999999999999", "t:1: `99999999999999999999` is not a 64-bit integer"},
      {"x = 12q", "t:1: `12q` is not a 64-bit integer"},
      {"x = 1 ? 2", "t:1: the character `?` has no meaning here"},
      {"note \"abc", "t:1: the text that begins here has no closing quote"},
      {"note abc", "t:1: write the text of a note in quotes"},
      {"while 1 {\nx = 1", "t:1: the `{` that begins here has no `}`"},
      {"x = 1\n}", "t:2: there is a `}` without its `{`"},
      {"if x\nx = 1", "t:1: expected `{` after the condition"},
      {"lock x", "t:1: `lock` needs a mutex, and `x` is not one"},
      {"lock", "t:1: `lock` must be followed by a name"},
      {"lock(m)", "t:1: `lock` is a statement: write it without parentheses"},
      {"wait m m", "t:1: `wait` needs a condvar, and `m` is not one"},
      {"lock l", "t:1: `l` is an array: write l[index]"},
      {"lock m[1]", "t:1: `m` is not an array"},
      {"lokc m", "t:1: expected `=` after `lokc`, found `m`: is the statement's word misspelt?"},
      {"frob(x)", "t:1: there is no function `frob`"},
      {"r = cas(x, 1)", "t:1: cas takes 3 arguments, not 2"},
      {"r = free(1)", "t:1: free() gives no value"},
      {"r = 1; r = load(r)", "t:1: `r` is a local"},
      {"r = load(1 + 1)", "t:1: expected a shared variable"},
      {"goto nowhere", "t:1: there is no label `nowhere`"},
      {"a1: x = 1\na1: x = 2", "t:2: the label `a1` appears twice"},
      {"break", "t:1: `break` outside of a loop"},
      {"spawn nobody", "t:1: there is no thread `nobody`: declare it with [[thread]]"},
      {"raise t", "t:1: there is no interrupt `t`"},
      {"arm t", "t:1: there is no timer `t`"},
      {"join nobody", "t:1: cannot join `nobody`"},
      {"for x in 0..2 { }", "t:1: the loop variable `x` must be a local"},
      {"for i of 0..2 { }", "t:1: expected `in` after `for i`"},
      {"for i in 0 { }", "t:1: expected `..` after the first value"},
      {"cas(x,1,2) = 1", "t:1: cannot assign to the result of a call"},
      {"1 = x", "t:1: a statement cannot begin with `1`"},
      {"if = 1", "t:1: expected an expression, found `=`"},
      {"x = lock", "t:1: expected a name, found `lock`"},
  };
  for (const auto& [code, message] : cases) {
    ToyBuilder b;
    b.param("n", 2).shared("x").shared("a", {.size = 3});
    b.sync("m", ToySyncKind::Mutex).sync("l", ToySyncKind::Mutex, {.size = 2}).thread("t", code);
    EXPECT_TRUE(refusal(b.build()).starts_with(message)) << code << "\nsays: " << refusal(b.build());
  }
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// Returns parse_toy()'s error for a thread with this code.
std::string verdict_on(const std::string& code) {
  ToyBuilder b;
  b.shared("x").thread("t", code);
  return refusal(b.build());
}

TEST(ToyLanguage, WhatIsTooDeepOrTooLongNamesTheLine) {
  const auto nested = [](int depth) { return repeated("while x == 1 {\n", depth) + repeated("}\n", depth); };
  const auto chain = [](int parts) { return "if x == 1 {}" + repeated("\nelse if x == 2 {}", parts); };
  const auto sum = [](int operands) { return "x = 1" + repeated(" + 1", operands - 1); };
  const auto brackets = [](int depth) { return "x = " + repeated("(", depth) + "1" + repeated(")", depth); };
  for (const std::string& fits : {nested(200), chain(199), sum(1000), brackets(199)})
    EXPECT_EQ(verdict_on(fits), "no error");
  // Blocks nested to the limit, with sums of the greatest length: nothing overflows.
  EXPECT_EQ(verdict_on(repeated("while x == 1 {\n", 199) + sum(1000) + repeated("\n}", 199)), "no error");
  for (const int more : {1, 20'000}) {
    EXPECT_TRUE(verdict_on(nested(200 + more)).starts_with("t:201: blocks may be nested 200 deep"))
        << verdict_on(nested(200 + more));
    EXPECT_TRUE(verdict_on(chain(199 + more)).starts_with("t:201: blocks may be nested 200 deep"))
        << verdict_on(chain(199 + more));
    EXPECT_TRUE(verdict_on(sum(1000 + more)).starts_with("t:1: an expression may have 1000 operands"))
        << verdict_on(sum(1000 + more));
    EXPECT_TRUE(verdict_on(brackets(200 + more)).starts_with("t:1: this expression is nested too deeply"))
        << verdict_on(brackets(200 + more));
  }
}

TEST(ToyLanguage, ProblemsOfDeclarations) {
  const auto message = [](const std::function<void(ToyBuilder&)>& declare) {
    ToyBuilder b;
    declare(b);
    return refusal(b.build());
  };
  EXPECT_EQ(message([](ToyBuilder& b) { b.shared("lock"); }),
            "`lock` is a word of the language: choose another name");
  EXPECT_EQ(message([](ToyBuilder& b) { b.shared("1x"); }),
            "`1x` is not a name: use letters, digits and _, and no digit first");
  EXPECT_EQ(message([](ToyBuilder& b) { b.shared("x").thread("x", ""); }),
            "`x` is declared twice: choose another name");
  EXPECT_TRUE(message([](ToyBuilder& b) { b.shared("x", {.size = 0}); }).starts_with("the size of `x` is 0"));
  EXPECT_TRUE(message([](ToyBuilder& b) {
                b.sync("b", ToySyncKind::Barrier);
              }).starts_with("the parties of `b` must be"));
  EXPECT_TRUE(message([](ToyBuilder& b) {
                b.thread("t", "", {.copies = -1});
              }).starts_with("the copies of thread `t`"));
  EXPECT_TRUE(message([](ToyBuilder& b) {
                b.thread("t", "", {.copies = 2, .start = false});
              }).starts_with("thread `t` does not start by itself"));
  EXPECT_TRUE(message([](ToyBuilder& b) {
                b.interrupt("i", "t", "");
              }).starts_with("interrupt `i` is on `t`, which is not"));
  EXPECT_TRUE(message([](ToyBuilder& b) {
                b.final_check("1").final_check("2");
              }).starts_with("there are two final checks"));
  EXPECT_EQ(message([](ToyBuilder& b) { b.shared("x").final_check("cas(x, 0, 1)"); }),
            "final:1: the final check may only read");
}

}  // namespace
}  // namespace slalom::test
