// Options of the tests of slalom::check: a name of their own, and no files left behind.
#pragma once

#include <gtest/gtest.h>
#include <slalom/check.h>

inline slalom::CheckOptions options(const char* strategy = "portfolio", uint64_t schedules = 2'000) {
  slalom::CheckOptions result;
  result.name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  result.strategy = strategy;
  result.schedules = schedules;
  result.findings = "";
  return result;
}
