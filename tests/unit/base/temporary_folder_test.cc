#include "base/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

namespace slalom {
namespace {

TEST(TemporaryFolder, IsThereUntilItsLastOwnerEnds) {
  std::filesystem::path path;
  {
    std::optional<TemporaryFolder> last;
    {
      TemporaryFolder folder = TemporaryFolder::make("test").value();
      path = folder.path();
      std::ofstream(folder / "file") << "text";
      last.emplace(std::move(folder));
    }
    EXPECT_TRUE(std::filesystem::exists(path / "file"));
    EXPECT_NE(TemporaryFolder::make("test").value().path(), path);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryFolder, SaysWhatToDoWithoutAPlace) {
  const char* given = std::getenv("TMPDIR");
  const std::string before = given != nullptr ? given : "";
  setenv("TMPDIR", "/nowhere/at/all", 1);
  const Result<TemporaryFolder> made = TemporaryFolder::make("test");
  given != nullptr ? setenv("TMPDIR", before.c_str(), 1) : unsetenv("TMPDIR");
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find("TMPDIR"), std::string::npos) << made.error().message;
}

}  // namespace
}  // namespace slalom
