#include "base/log.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "unit/base/temporary_directory.h"

namespace slalom {
namespace {

class Log : public ::testing::Test {
 protected:
  ~Log() override { EXPECT_TRUE(start_logs("", "").ok()); }
  Result<void> start(std::string_view levels) { return start_logs(levels, file()); }
  std::string file() const { return (directory_ / "log").string(); }
  std::string written() const {
    std::stringstream text;
    text << std::ifstream(file()).rdbuf();
    return text.str();
  }
  std::string trouble(std::string_view levels) {
    const Result<void> started = start(levels);
    return started.ok() ? "" : started.error().message;
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(Log, OffWritesNothingAndEvaluatesNothing) {
  int evaluated = 0;
  for (const char* levels : {"", "off", "explore=off", "debug,explore=off"}) {
    ASSERT_TRUE(start(levels).ok());
    DEBUG_LOG(Explore, "{}", ++evaluated);
    TRACE_LOG(Explore, "{}", ++evaluated);
  }
  EXPECT_EQ(evaluated, 0);
  EXPECT_EQ(written(), "");
}

TEST_F(Log, EachFolderHasItsOwnLevel) {
  ASSERT_TRUE(start("explore=debug,vm=trace").ok());
  DEBUG_LOG(Explore, "execution {}", 1);
  TRACE_LOG(Explore, "more than asked for");
  TRACE_LOG(Vm, "page {:#x}", 0x1000);
  DEBUG_LOG(Process, "another folder");
  EXPECT_EQ(written(), "[explore] execution 1\n[vm] page 0x1000\n");
}

TEST_F(Log, ALevelAloneIsForAllFoldersAndLaterItemsOverride) {
  ASSERT_TRUE(start("debug,vm=off,finding=trace").ok());
  DEBUG_LOG(Campaign, "a");
  DEBUG_LOG(Explore, "b");
  TRACE_LOG(Finding, "c");
  DEBUG_LOG(KernelStore, "d");
  DEBUG_LOG(Process, "e");
  DEBUG_LOG(Vm, "f");
  EXPECT_EQ(written(), "[campaign] a\n[explore] b\n[finding] c\n[kernel_store] d\n[process] e\n");
}

TEST_F(Log, AMessageIsOnePrintableLine) {
  ASSERT_TRUE(start("process=debug").ok());
  DEBUG_LOG(Process, "a\x1b[2J\x9b{}", "b\nc {} %v");
  EXPECT_EQ(written(), "[process] a\uFFFD[2J\uFFFDb c {} %v\n");
}

TEST_F(Log, AFileIsContinued) {
  ASSERT_TRUE(start("debug").ok());
  DEBUG_LOG(Vm, "first");
  ASSERT_TRUE(start("debug").ok());
  DEBUG_LOG(Vm, "second");
  EXPECT_EQ(written(), "[vm] first\n[vm] second\n");
}

TEST_F(Log, WrongValuesAreRefusedWithWhatThereIs) {
  ASSERT_TRUE(start("vm=debug").ok());
  for (const char* levels : {"explorer=debug", "=debug", "explore", "explore=loud", "explore=debug,,vm=debug",
                             "debug ", "explore=debug=trace"}) {
    const std::string message = trouble(levels);
    EXPECT_NE(message.find("Folders: campaign explore finding kernel_store process vm"), std::string::npos)
        << levels << ": " << message;
    EXPECT_NE(message.find("Levels: off debug trace"), std::string::npos) << message;
  }
  EXPECT_NE(trouble("explorer=debug").find("\"explorer=debug\", which names no folder"), std::string::npos);
  EXPECT_NE(trouble("explore=loud").find("\"explore=loud\", which names no level"), std::string::npos);
  DEBUG_LOG(Vm, "as before");
  EXPECT_EQ(written(), "[vm] as before\n");
}

TEST_F(Log, AFileThatCannotBeWrittenIsRefused) {
  const Result<void> started = start_logs("debug", "/dev/null/log");
  ASSERT_FALSE(started.ok());
  EXPECT_NE(started.error().message.find("/dev/null/log"), std::string::npos) << started.error().message;
  EXPECT_NE(started.error().message.find("SLALOM_LOG_FILE"), std::string::npos);
}

}  // namespace
}  // namespace slalom
