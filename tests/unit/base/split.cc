#include "base/text/split.h"

#include <gtest/gtest.h>

namespace slalom {
namespace {

using Parts = std::vector<std::string_view>;

TEST(Split, GivesOnePartMoreThanSeparators) {
  EXPECT_EQ(split("race,heap", ','), (Parts{"race", "heap"}));
  EXPECT_EQ(split("race", ','), Parts{"race"});
  EXPECT_EQ(split("", ','), Parts{""});
  EXPECT_EQ(split(",a,,b,", ','), (Parts{"", "a", "", "b", ""}));
}

}  // namespace
}  // namespace slalom
