#include "symbols/code_part.h"

#include <gtest/gtest.h>

namespace slalom {
namespace {

TEST(CodePart, NamesAModuleOrFunctions) {
  const std::optional<CodePart> module = CodePart::parse("module:libfoo.so");
  ASSERT_TRUE(module);
  EXPECT_TRUE(module->is_module);
  EXPECT_EQ(module->name, "libfoo.so");
  EXPECT_FALSE(module->matches_function("libfoo.so"));

  const std::optional<CodePart> one = CodePart::parse("function:Queue::push");
  ASSERT_TRUE(one);
  EXPECT_FALSE(one->is_module);
  EXPECT_TRUE(one->matches_function("Queue::push"));
  EXPECT_FALSE(one->matches_function("Queue::push_back"));

  const std::optional<CodePart> several = CodePart::parse("function:pipe_*");
  ASSERT_TRUE(several);
  EXPECT_TRUE(several->matches_function("pipe_"));
  EXPECT_TRUE(several->matches_function("pipe_read"));
  EXPECT_FALSE(several->matches_function("pipe"));
}

TEST(CodePart, OtherTextIsRefused) {
  for (const char* text : {"", "pipe_read", "module:", "function:", "function:*", "module:*", "module:lib*",
                           "function:a*b", "function:a**", "file:a"})
    EXPECT_FALSE(CodePart::parse(text)) << text;
}

}  // namespace
}  // namespace slalom
