#include "base/log.h"

#define SPDLOG_PREVENT_CHILD_FD  // child processes must not inherit the file
#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/text/printable.h"

namespace slalom {
namespace {

constexpr std::array<std::string_view, kLogFolders> kFolderNames = {"campaign",     "explore", "finding",
                                                                    "kernel_store", "process", "vm"};
constexpr std::array<std::string_view, 3> kLevelNames = {"off", "debug", "trace"};  // of LogLevel

using Levels = std::array<LogLevel, kLogFolders>;

// One for each folder; empty if all are off. Never destroyed, since threads may still log when main() has
// ended.
std::vector<spdlog::logger>& loggers() {
  static auto* const all = new std::vector<spdlog::logger>();
  return *all;
}

template <size_t n>
std::optional<size_t> index_of(const std::array<std::string_view, n>& names, std::string_view name) {
  const auto at = std::ranges::find(names, name);
  if (at == names.end()) return std::nullopt;
  return at - names.begin();
}

Result<Levels> parse_levels(std::string_view text) {
  Levels levels = {};
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const size_t equals = item.find('=');
    const bool for_all = equals == std::string_view::npos;
    const std::optional<size_t> folder =
        for_all ? std::optional<size_t>(0) : index_of(kFolderNames, item.substr(0, equals));
    const std::optional<size_t> level = index_of(kLevelNames, for_all ? item : item.substr(equals + 1));
    if (!folder || !level)
      return error(
          "SLALOM_LOG has the item \"{}\", which names no {}\n  Each item is FOLDER=LEVEL, or a LEVEL for "
          "all "
          "folders; for example SLALOM_LOG=explore=debug,vm=trace\n  Folders: {}\n  Levels: {}",
          item, folder ? "level" : "folder that has a log", fmt::join(kFolderNames, " "),
          fmt::join(kLevelNames, " "));
    for (size_t i = 0; i < kLogFolders; ++i)
      if (for_all || i == *folder) levels[i] = static_cast<LogLevel>(*level);
  }
  return levels;
}

}  // namespace

Result<void> start_logs(std::string_view levels, const std::string& file) {
  TRY_ASSIGN(const Levels parsed, parse_levels(levels));
  std::vector<spdlog::logger> made;
  if (std::ranges::any_of(parsed, [](LogLevel level) { return level != LogLevel::Off; })) {
    spdlog::sink_ptr sink;
    try {
      if (file.empty())
        sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
      else
        sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
    } catch (const spdlog::spdlog_ex& failure) {
      return error("{}; set SLALOM_LOG_FILE to a file that can be written", failure.what());
    }
    sink->set_pattern("[%n] %v");
    for (const std::string_view name : kFolderNames) {
      spdlog::logger& logger = made.emplace_back(std::string(name), sink);
      logger.set_level(spdlog::level::trace);  // is_logged() decides
      logger.flush_on(spdlog::level::trace);   // the last messages before a crash matter most
    }
  }
  for (std::atomic<LogLevel>& level : log_levels) level = LogLevel::Off;
  loggers() = std::move(made);
  for (size_t i = 0; i < kLogFolders; ++i) log_levels[i] = parsed[i];
  return {};
}

void write_log(LogFolder folder, LogLevel level, std::string_view message) {
  const auto severity = level == LogLevel::Trace ? spdlog::level::trace : spdlog::level::debug;
  const std::string text = printable(message);
  loggers()[static_cast<size_t>(folder)].log(severity, spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace slalom
