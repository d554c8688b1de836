// Files that do not fit: a limit of the process takes the place of a disk that is full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <string>

#include "base/file.h"
#include "unit/base/temporary_directory.h"

namespace slalom {
namespace {

// While it lives, a file of this process has at most so many bytes: a write() that passes the limit writes
// what fits, and the next one fails with EFBIG.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : signal_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, signal_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  sighandler_t signal_;
  rlimit before_ = {};
};

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
