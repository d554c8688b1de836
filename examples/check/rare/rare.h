// The search for the rare bugs of this folder: the default strategy, for ten minutes at most.
#pragma once

#include <slalom/check.h>

#include <cstdio>
#include <functional>

// Returns the exit status of a program that checks `body`. SLALOM_STRATEGY and the like are honoured
// (docs/howto-check.md).
inline int search(const char* name, const std::function<void()>& body) {
  slalom::CheckOptions options;
  options.name = name;
  options.schedules = 0;
  options.seconds = 600;
  const slalom::CheckResult result = slalom::check(options, body);
  std::printf("%s%llu executions, %.1f s\n", result.report.c_str(),
              static_cast<unsigned long long>(result.executions), result.seconds);
  return result.ok ? 0 : 1;
}
