#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "unit/base/temporary_directory.h"

namespace slalom {
namespace {

using testing::HasSubstr;

size_t files_in(const std::filesystem::path& directory) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

std::string text_of(const std::filesystem::path& path) {
  const auto bytes = read_file(path);
  return bytes.ok() ? std::string(bytes->begin(), bytes->end()) : bytes.error().message;
}

TEST(File, WrittenIsReadAndReplaced) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(write_file(directory / "a", std::string_view("one\0two", 7)).ok());
  EXPECT_EQ(text_of(directory / "a"), std::string("one\0two", 7));
  ASSERT_TRUE(write_file(directory / "a", "").ok());
  EXPECT_EQ(text_of(directory / "a"), "");
  EXPECT_EQ(files_in(directory.path()), 1u);
}

TEST(File, ATemporaryFileLeftByACrashIsNotInTheWay) {
  const TemporaryDirectory directory;
  const std::string left = fmt::format("a.tmp-{}-0", ::getpid());
  ASSERT_TRUE(write_file(directory / left, "left").ok());
  ASSERT_TRUE(write_file(directory / "a", "new").ok());
  EXPECT_EQ(text_of(directory / "a"), "new");
  EXPECT_EQ(text_of(directory / left), "left");
}

TEST(File, AFailedWriteLeavesTheOldContentsAndNothingElse) {
  const TemporaryDirectory directory;
  // rename() fails last of all: a directory cannot be replaced by a file.
  ASSERT_TRUE(std::filesystem::create_directories(directory / "taken/inside"));
  const auto written = write_file(directory / "taken", "text");
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().message, HasSubstr("cannot write " + (directory / "taken").string()));
  EXPECT_EQ(files_in(directory.path()), 1u);
  EXPECT_TRUE(std::filesystem::exists(directory / "taken/inside"));
}

TEST(File, ErrorsNameTheFileAndTheReason) {
  const TemporaryDirectory directory;
  EXPECT_THAT(text_of(directory / "missing"),
              HasSubstr("missing: No such file or directory; check the path"));
  EXPECT_THAT(text_of(directory.path()), HasSubstr("is a directory; name a file in it"));
  ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(text_of(directory / "fifo"), HasSubstr("is not a regular file"));
  const auto written = write_file(directory / "missing/a", "text");
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().message, HasSubstr("missing/a: No such file or directory; check the path"));
}

TEST(File, AnAbsurdlyLargeFileIsRefused) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(write_file(directory / "large", "x").ok());
  std::filesystem::resize_file(directory / "large", kMaxFileSize + 1);  // sparse: takes no space
  EXPECT_THAT(text_of(directory / "large"), HasSubstr("more than any file of slalom has"));
}

}  // namespace
}  // namespace slalom
