// Runs the tests of one file. The exit code reports the file as skipped only if no test found a kernel. If
// some did, their results count.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  constexpr int kNothingToDo = 77;  // CMakeLists.txt
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  return all.skipped_test_count() > 0 && all.successful_test_count() == 0 && result == 0 ? kNothingToDo
                                                                                         : result;
}
