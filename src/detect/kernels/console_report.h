// ConsoleReport: what a Linux kernel says on its console about its own trouble, told apart line by line.
//
// A pure function of text: no events, no names, no machine. The text is untrusted and may be cut anywhere;
// what is missing makes a title shorter, never wrong. A title has a kind and a function, and nothing that
// differs between two executions: no addresses, processes, CPUs, devices, times or line numbers.
// Lines that a module or a driver prints for its own reasons are no reports.
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
  size_t line = 0;    // its first one
  size_t lines = 0;
};

// A line without its log level, time and caller: "<4>[    1.234567][  T12] text" -> "text".
std::string_view console_text(std::string_view line);

// Does a report begin at this line, or perhaps at the next ones ("cut here")? And is it the last of one?
bool starts_report(std::string_view text);
bool ends_report(std::string_view text);

// The reports in some lines of a console, in their order. A panic is one only if nothing went wrong before.
std::vector<ConsoleReport> find_reports(std::span<const std::string_view> lines);

}  // namespace slalom
