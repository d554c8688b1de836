#include "kernel_store/cache_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "unit/base/temporary_directory.h"

namespace slalom::vm {
namespace {

TEST(CacheFiles, TheOldestAreForgottenAndUseMakesYoung) {
  const TemporaryDirectory directory;
  const std::filesystem::path& folder = directory.path();
  const auto now = std::filesystem::file_time_type::clock::now();
  for (int i = 0; i < 5; ++i) {
    const std::filesystem::path file = folder / (std::to_string(i) + ".cpio");
    std::ofstream(file) << i;
    std::filesystem::last_write_time(file, now - std::chrono::hours(10 - i));
  }
  std::ofstream(folder / "other.notes") << "not one of these";
  std::filesystem::last_write_time(folder / "other.notes", now - std::chrono::hours(20));
  using Paths = std::vector<std::filesystem::path>;
  EXPECT_EQ(files_to_forget(folder, ".cpio", 3), (Paths{folder / "0.cpio", folder / "1.cpio"}));
  mark_used(folder / "0.cpio");
  EXPECT_EQ(files_to_forget(folder, ".cpio", 3), (Paths{folder / "1.cpio", folder / "2.cpio"}));
  EXPECT_EQ(files_to_forget(folder, ".cpio", 5), Paths());
  EXPECT_EQ(files_to_forget(folder / "none", ".cpio", 0), Paths());
}

}  // namespace
}  // namespace slalom::vm
