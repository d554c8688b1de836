// Files that do not fit: a limit of the process simulates a full disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "unit/base/file_size_limit.h"
#include "unit/base/temporary_directory.h"

namespace slalom {
namespace {

TEST(FullDisk, AFileThatFitsInPartIsAnErrorAndLeavesTheOldOne) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory / "a";
  ASSERT_TRUE(write_file(path, "old").ok());
  {
    const FileSizeLimit limit(5000);
    const Result<void> written = write_file(path, std::string(8000, 'x'));
    ASSERT_FALSE(written.ok());
    EXPECT_THAT(written.error().message, testing::HasSubstr("cannot write " + path.string()));
  }
  const Result<std::vector<uint8_t>> kept = read_file(path);
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(std::string(kept->begin(), kept->end()), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(FullDisk, AFileThatJustFitsIsWritten) {
  const TemporaryDirectory directory;
  const FileSizeLimit limit(5000);
  ASSERT_TRUE(write_file(directory / "a", std::string(5000, 'x')).ok());
  EXPECT_EQ(std::filesystem::file_size(directory / "a"), 5000u);
}

}  // namespace
}  // namespace slalom
