#include "base/toml_check.h"

#include <gtest/gtest.h>

#include <string>

namespace slalom {
namespace {

std::string key_with(int dots) {
  std::string key = "a";
  for (int i = 0; i < dots; ++i) key += ".a";
  return key;
}

// Returns the wrong line and the reason; empty if nothing is wrong.
std::string trouble(const std::string& text) {
  const Result<void> checked = check_toml(text, "x");
  return checked.ok() ? "" : checked.error().message;
}

const std::string kDots = ": a key may have 50 dots, and this one has more";
const std::string kLetter = ": a letter that is not ASCII may only be in a comment or in a text in quotes";

TEST(TomlCheck, LongOnesAreFoundWhereverAKeyMayBe) {
  for (const int dots : {kMostTomlDots + 1, 100'000}) {
    const std::string key = key_with(dots);
    for (const std::string& text : {key + " = 1", "[" + key + "]", "[[" + key + "]]", "x = {" + key + " = 1}",
                                    "x = [{y = 1, " + key + " = 1}]", "x.\"s\" ." + key + " = 1"})
      EXPECT_EQ(trouble("x = 1\n# more\n" + text), "x:3" + kDots) << text.substr(0, 50);
  }
}

TEST(TomlCheck, NothingElseIsOne) {
  const std::string dots(1000, '.');
  for (const std::string& text :
       {key_with(kMostTomlDots) + " = 1", "# " + dots, "x = \"" + dots + "\"", "x = '" + dots + "'",
        "x = \"\"\"\n" + dots + "\n\\\"\"\"" + dots + "\"\"\"\n", "x = '''\n" + dots + "\n'''",
        "x = \"\\\"" + dots + "\"", "x = [" + std::string(200, '\n') + "1.5]"})
    EXPECT_EQ(trouble(text), "") << text.substr(0, 50);
  std::string floats = "x = [";
  for (int i = 0; i < 1000; ++i) floats += "1.5, ";
  EXPECT_EQ(trouble(floats + "]"), "");
}

TEST(TomlCheck, LinesAreCountedThroughStrings) {
  EXPECT_EQ(trouble("x = '''\n\n\n'''\ny = \"a\"\n" + key_with(60) + " = 1"), "x:6" + kDots);
}

// The parser has undefined behaviour for these, which the sanitizers report.
TEST(TomlCheck, LettersThatAreNotAsciiAreForTextsAndComments) {
  for (const std::string text : {"\xc3\xa9 = 1", "x\xc3\xa9 = 1", "x = \xc3\xa9", "x = 1 \xef\xac\x81",
                                 "[\xd0\xb1]", "x = \"\"\"a \\\\ \\  \r\n  \xc3\xa9\"\"\""})
    EXPECT_TRUE(trouble("y = 1\n" + text).ends_with(kLetter)) << text;
  for (const std::string text :
       {"# \xc3\xa9\nx = 1", "x = \"\xc3\xa9\"", "x = '\xc3\xa9'", "\"\xc3\xa9\" = 1",
        "x = \"\"\"\n\xc3\xa9 \\\\\n\xc3\xa9 \\\n  a\xc3\xa9\"\"\"", "\xef\xbb\xbfx = 1"})
    EXPECT_EQ(trouble(text), "") << text;
}

}  // namespace
}  // namespace slalom
