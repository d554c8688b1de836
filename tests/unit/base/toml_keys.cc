#include "base/toml_keys.h"

#include <gtest/gtest.h>

#include <string>

namespace slalom {
namespace {

std::string key_with(int dots) {
  std::string key = "a";
  for (int i = 0; i < dots; ++i) key += ".a";
  return key;
}

TEST(TomlKeys, LongOnesAreFoundWhereverAKeyMayBe) {
  for (const int dots : {kMostTomlDots + 1, 100'000}) {
    const std::string key = key_with(dots);
    for (const std::string& text : {key + " = 1", "[" + key + "]", "[[" + key + "]]", "x = {" + key + " = 1}",
                                    "x = [{y = 1, " + key + " = 1}]", "x.\"s\" ." + key + " = 1"})
      EXPECT_EQ(line_of_overlong_toml_key("x = 1\n# more\n" + text), 3) << text.substr(0, 50);
  }
}

TEST(TomlKeys, NothingElseIsOne) {
  const std::string dots(1000, '.');
  for (const std::string& text :
       {key_with(kMostTomlDots) + " = 1", "# " + dots, "x = \"" + dots + "\"", "x = '" + dots + "'",
        "x = \"\"\"\n" + dots + "\n\\\"\"\"" + dots + "\"\"\"\n", "x = '''\n" + dots + "\n'''",
        "x = \"\\\"" + dots + "\"", "x = [" + std::string(200, '\n') + "1.5]"})
    EXPECT_EQ(line_of_overlong_toml_key(text), 0) << text.substr(0, 50);
  std::string floats = "x = [";
  for (int i = 0; i < 1000; ++i) floats += "1.5, ";
  EXPECT_EQ(line_of_overlong_toml_key(floats + "]"), 0);
}

TEST(TomlKeys, LinesAreCountedThroughStrings) {
  EXPECT_EQ(line_of_overlong_toml_key("x = '''\n\n\n'''\ny = \"a\"\n" + key_with(60) + " = 1"), 6);
}

}  // namespace
}  // namespace slalom
