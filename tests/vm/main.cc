// Runs the tests of one file. It is skipped as a whole, which its exit code says, only where no kernel was
// there for any of them: that one of them had none does not hide what became of the others.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  constexpr int kNothingToDo = 77;  // CMakeLists.txt
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  return all.skipped_test_count() > 0 && all.successful_test_count() == 0 && result == 0 ? kNothingToDo
                                                                                         : result;
}
