#include "cli/search/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "cli/core/command.h"

namespace slalom {
namespace {

std::string time_left(double seconds) {
  return fmt::format(
      ", {} left", human_duration(std::chrono::seconds(static_cast<int64_t>(std::clamp(seconds, 1.0, 1e8)))));
}

// Shows the limit that will be reached first: executions or time.
std::string searching(const Progress& progress) {
  const ExploreResult& r = progress.result;
  const double done = static_cast<double>(r.tasks);
  const double estimate = progress.coverage.estimated_total;
  double total = static_cast<double>(progress.schedules);
  const bool estimated = estimate > 0 && (total == 0 || estimate < total);
  if (estimated) total = estimate;
  std::string line = fmt::format("searching: {}", human_number(r.executions + r.truncated));
  if (total > 0)
    line += fmt::format(" of {}{} executions ({:.0f} %)", estimated ? "about " : "",
                        human_number(static_cast<uint64_t>(total)), std::min(99.0, 100 * done / total));
  else
    line += " executions";
  if (!r.found.empty()) line += fmt::format(", {}", plural(r.found.size(), "finding"));
  if (progress.seconds <= 0) return line;
  line += fmt::format(", {}/s", human_number(static_cast<uint64_t>(done / progress.seconds)));
  double left = total > 0 ? progress.seconds * (total - done) / std::max(done, 1.0) : 0;
  if (progress.time > 0) {
    const double rest = progress.time - progress.seconds;
    left = total > 0 ? std::min(left, rest) : rest;
  }
  return total > 0 || progress.time > 0 ? line + time_left(left) : line;
}

std::string finishing(const Progress& progress) {
  const std::string which =
      progress.findings == 1 ? "it"
                             : fmt::format("the {} of {}", ordinal(progress.finding + 1), progress.findings);
  std::string line = fmt::format("{}: ", plural(progress.findings, "finding"));
  if (progress.doing == Progress::Doing::Shrinking)
    line += fmt::format("shrinking {}", which);
  else if (progress.replays_wanted <= 1)
    line += fmt::format("replaying {}", which);
  else
    line += fmt::format("replaying {} for the {} time of {}", which, ordinal(progress.replays + 1),
                        progress.replays_wanted);
  return progress.time > 0 ? line + time_left(progress.time - progress.seconds) : line;
}

}  // namespace

std::string in_words(const Progress& progress) {
  return progress.doing == Progress::Doing::Searching ? searching(progress) : finishing(progress);
}

ProgressLine::ProgressLine() : on_(is_terminal(STDERR_FILENO)) {}

void ProgressLine::show(const Progress& progress) {
  if (!on_) return;
  std::cerr << "\r\033[K" << fit("  " + in_words(progress), terminal_width(STDERR_FILENO) - 1) << std::flush;
  shown_ = true;
}

void ProgressLine::clear() {
  if (shown_) std::cerr << "\r\033[K" << std::flush;
  shown_ = false;
}

}  // namespace slalom
