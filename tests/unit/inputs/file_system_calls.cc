// Generated file-system calls: the same seed gives the same text, and the parser accepts all of them.
#include "inputs/file_system_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "inputs/call_program.h"
#include "inputs/system_calls.h"

namespace slalom {
namespace {

TEST(FileSystemCalls, AreSoManyAndUnderstood) {
  for (const bool everything : {false, true})
    for (uint64_t seed = 1; seed <= 200; ++seed)
      for (const unsigned calls : {1u, 8u, 40u}) {
        const FileSystemCallsOptions options{.unix_files = everything,
                                             .clones = everything,
                                             .subvolumes = everything,
                                             .calls = calls,
                                             .seed = seed};
        const std::string text = file_system_calls(options, 0);
        EXPECT_EQ(std::ranges::count(text, '\n'), calls);
        const Result<CallProgram> program = parse_calls(text, "x.toml");
        ASSERT_TRUE(program.ok()) << program.error().message << "\n" << text;
        EXPECT_EQ(program->sources.size(), calls) << text;
        if (!everything) {
          EXPECT_EQ(text.find("BTRFS"), std::string::npos);
          EXPECT_EQ(text.find("link(\"/mnt/a\", "), std::string::npos);
        }
      }
}

TEST(FileSystemCalls, DependOnSeedAndFlowOnly) {
  std::set<std::string> texts;
  for (uint64_t seed = 1; seed <= 50; ++seed)
    for (unsigned flow = 0; flow < 4; ++flow) {
      const FileSystemCallsOptions options{.calls = 12, .seed = seed};
      const std::string text = file_system_calls(options, flow);
      EXPECT_EQ(file_system_calls(options, flow), text);
      texts.insert(text);
    }
  EXPECT_EQ(texts.size(), 200u);
}

// The text must never change: files and benchmark results identify calls by their seed.
TEST(FileSystemCalls, AreTheSameOnEveryMachine) {
  EXPECT_EQ(file_system_calls({.clones = true, .subvolumes = true, .calls = 6, .seed = 7}, 1),
            R"(rename("/mnt/b", "/mnt/c")
f0 = open("/mnt/e/a", O_RDWR | O_CREAT, 0644)
root = open("/mnt", O_RDONLY | O_DIRECTORY)
ioctl(root, BTRFS_IOC_ADD_DEV, {i64 0, text(4088, "/dev/ram1")})
f1 = open("/mnt/e/a", O_RDWR | O_CREAT | O_TRUNC, 0644)
ioctl(f0, BTRFS_IOC_DEFRAG, 0)
)");
}

}  // namespace
}  // namespace slalom
