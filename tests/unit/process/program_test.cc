#include "process/launch/program.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/rng.h"

namespace slalom {
namespace {

TEST(Program, IsFoundByPathAndInPath) {
  const Result<Program> self = find_program({"/proc/self/exe", "--flag", "two words"});
  ASSERT_TRUE(self.ok()) << self.error().message;
  EXPECT_EQ(self->arguments.size(), 3u);
  EXPECT_EQ(self->hash.size(), 16u);
  EXPECT_TRUE(check_unchanged(*self).ok());
  const Result<Program> listing = find_program({"ls"});
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  EXPECT_EQ(listing->name(), "ls");
  EXPECT_EQ(listing->path.front(), '/');
}

TEST(Program, SurvivesItsText) {
  Program program{"/usr/bin/x", {"./x", "", "\"quoted\"\n", "\xc3\xa4"}, "0123456789abcdef"};
  program.timeouts = Program::Timeouts::Idle;
  program.statuses = Program::Statuses::AnyGood;
  program.spurious = 3;
  program.scope = {"module:libx.so", "function:X::*"};
  program.atomic = {"function:log"};
  program.check = "grep -q '\"x\"'";
  program.expected_output = {"expected.txt", "one\ntwo"};
  const Result<Program> again = parse_program(to_text(program));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, program);
}

TEST(Program, ReadsNothingFromNonsense) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"path":"x","arguments":["x"]})", R"({"path":"/x","arguments":[]})",
        R"({"path":"/x","arguments":[1]})", R"({"path":"/x","arguments":{"a":"b"}})",
        R"({"path":1,"arguments":["x"]})", R"({"path":"/x","arguments":["x"],"scope":"y"})",
        R"({"path":"/x","arguments":["x"],"expected_output":"y"})",
        R"({"path":"/x","arguments":["x"],"expected_output":{"file":"y"}})"})
    EXPECT_FALSE(parse_program(text).ok()) << text;
  const std::string good = to_text({"/usr/bin/x", {"x", "y"}, "0123456789abcdef"});
  Rng rng(1, 0);
  for (int i = 0; i < 2000; ++i) {
    std::string text = good;
    text[rng.below(text.size())] = static_cast<char>(rng.below(256));
    if (const Result<Program> parsed = parse_program(text); parsed.ok()) {
      EXPECT_FALSE(parsed->arguments.empty());
      EXPECT_EQ(parsed->path.front(), '/');
    }
  }
}

TEST(Program, NoticesAnotherFile) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "slalom-program-test";
  std::filesystem::copy_file("/proc/self/exe", path, std::filesystem::copy_options::overwrite_existing);
  chmod(path.c_str(), 0755);
  const Result<Program> program = find_program({path.string()});
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_TRUE(check_unchanged(*program).ok());
  std::ofstream(path, std::ios::app) << "x";
  EXPECT_FALSE(check_unchanged(*program).ok());
  std::filesystem::remove(path);
  EXPECT_FALSE(check_unchanged(*program).ok());
}

}  // namespace
}  // namespace slalom
