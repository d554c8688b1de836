// Debug logs: what slalom does, for engineers who debug a divergence or slalom itself.
//
//   SLALOM_LOG=explore=debug,vm=trace slalom run -- ./queue
//
// A log that is off costs a relaxed load and a branch, and its arguments are not evaluated. Even so, logs do
// not belong into the interpreter, into the explorer's inner loop, or into preload/. A message is one line
// without time, thread or process, so that diff compares the logs of two runs with one worker. Control
// characters of targets are replaced here. Not for users: information for them belongs into reports, warnings
// and error messages.
#pragma once

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace slalom {

enum class LogFolder : uint8_t { Campaign, Explore, Finding, KernelStore, Process, Vm };
inline constexpr size_t kLogFolders = 6;

enum class LogLevel : uint8_t { Off, Debug, Trace };

// Switches logs on and off as `levels` says: the value of SLALOM_LOG, such as "explore=debug,vm=trace", or
// "debug" for all folders; "" means none. Later items override earlier ones. Logs are appended to `file`, or
// go to standard error if it is "". Call it before there are other threads.
Result<void> start_logs(std::string_view levels, const std::string& file);

// Set by start_logs() only.
inline constinit std::array<std::atomic<LogLevel>, kLogFolders> log_levels = {};

inline bool is_logged(LogFolder folder, LogLevel level) {
  return log_levels[static_cast<size_t>(folder)].load(std::memory_order_relaxed) >= level;
}

void write_log(LogFolder folder, LogLevel level, std::string_view message);

}  // namespace slalom

#define LOG_AT_LEVEL(level, folder, ...)                                                          \
  do {                                                                                            \
    if (::slalom::is_logged(::slalom::LogFolder::folder, ::slalom::LogLevel::level)) [[unlikely]] \
      ::slalom::write_log(::slalom::LogFolder::folder, ::slalom::LogLevel::level,                 \
                          ::fmt::format(__VA_ARGS__));                                            \
  } while (false)
// DEBUG_LOG(Explore, "round of {} tasks", tasks): for events that happen at most a few times per execution.
#define DEBUG_LOG(folder, ...) LOG_AT_LEVEL(Debug, folder, __VA_ARGS__)
// TRACE_LOG: for frequent details.
#define TRACE_LOG(folder, ...) LOG_AT_LEVEL(Trace, folder, __VA_ARGS__)
