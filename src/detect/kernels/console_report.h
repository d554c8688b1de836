// ConsoleReport: a report of a Linux kernel on its console about its own failure.
//
// The functions depend on the text alone: no events, no names, no machine. The text is untrusted and may be
// cut anywhere. Missing text makes a title shorter, never wrong. A title has a kind and a function, and
// nothing that differs between two executions: no addresses, processes, CPUs, devices, times or line numbers.
// Lines that a module or a driver prints for its own purposes are no reports.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/verdict.h"

namespace slalom {

struct ConsoleReport {
  BugKind kind = BugKind::Crash;
  Severity severity = Severity::Failure;
  std::string title;  // "NULL pointer dereference in module:function"
  size_t line = 0;    // its first line
  size_t lines = 0;
};

// Returns a line without its log level, time and caller: "<4>[    1.234567][  T12] text" -> "text".
std::string_view console_text(std::string_view line);

// Returns whether a report begins at this line, or may begin at the next lines ("cut here"); whether the line
// is a report's last.
bool starts_report(std::string_view text);
bool ends_report(std::string_view text);

// Returns the reports in some lines of a console, in order. A panic is a report only if nothing failed before
// it.
std::vector<ConsoleReport> find_reports(std::span<const std::string_view> lines);

}  // namespace slalom
