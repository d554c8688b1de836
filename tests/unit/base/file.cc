#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

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
  // rename() is the last step, and fails because a file cannot replace a directory.
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

TEST(File, OutputGoesThroughLinksAndIntoFifos) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "inner");
  std::filesystem::create_symlink("../target", directory / "inner/link");
  std::filesystem::create_symlink("inner/link", directory / "chain");
  for (const char* path : {"inner/link", "chain"})
    for (const bool dangles : {true, false}) {
      if (dangles) std::filesystem::remove(directory / "target");
      ASSERT_TRUE(write_output(directory / path, fmt::format("by {}", path)).ok());
      EXPECT_EQ(text_of(directory / "target"), fmt::format("by {}", path));
      EXPECT_TRUE(std::filesystem::is_symlink(directory / path));
    }
  EXPECT_EQ(files_in(directory / "inner"), 1u);

  ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
  const int reader = ::open((directory / "fifo").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(write_output(directory / "fifo", "through").ok());
  std::string got(16, '\0');
  got.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(reader, got.data(), got.size()))));
  ::close(reader);
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(directory / "fifo"));
}

TEST(File, OutputGoesToADescriptorOfThisProcess) {
  const TemporaryDirectory directory;
  const int file = ::open((directory / "file").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::write(file, "one ", 4), 4);
  ASSERT_TRUE(write_output(fmt::format("/dev/fd/{}", file), "two ").ok());
  ASSERT_TRUE(write_output(fmt::format("/proc/self/fd/{}", file), "three ").ok());
  ASSERT_EQ(::write(file, "four", 4), 4);
  ::close(file);
  EXPECT_EQ(text_of(directory / "file"), "one two three four");
  EXPECT_EQ(files_in(directory.path()), 1u);
}

TEST(File, WhatSlalomKeepsReplacesALinkInsteadOfFollowingIt) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(write_file(directory / "mine", "precious").ok());
  std::filesystem::create_symlink("mine", directory / "planted");
  ASSERT_TRUE(write_file(directory / "planted", "new").ok());
  EXPECT_EQ(text_of(directory / "mine"), "precious");
  EXPECT_FALSE(std::filesystem::is_symlink(directory / "planted"));
}

TEST(File, AnAbsurdlyLargeFileIsRefused) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(write_file(directory / "large", "x").ok());
  std::filesystem::resize_file(directory / "large", kMaxFileSize + 1);  // sparse: takes no space
  EXPECT_THAT(text_of(directory / "large"), HasSubstr("more than any file of slalom has"));
}

}  // namespace
}  // namespace slalom
