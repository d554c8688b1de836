// What a title takes from the text of a kernel's console: functions, "func+0x12/0x34 [module]", the one of
// them that tells most, and messages without what varies. The text is untrusted and may be cut anywhere.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace slalom {

// The function that the text begins with, as "func" or "module:func", without what compilers append
// (".isra.0", ".cold"). Empty where there is none.
std::string console_function(std::string_view text);
std::string first_function(std::string_view line);  // the first one anywhere in a line

// A message without what varies: addresses and numbers become N, "process/12" goes.
std::string stable_text(std::string_view text);

// Is it only the messenger, or where a caller's mistake surfaces: the scheduler, locks, consoles, checks of
// lists and counters, copying of memory?
bool is_machinery(std::string_view function);

// The function of a report's lines (without times): where the CPU stood ("RIP: 0010:"), or else the
// innermost caller that is no machinery. Frames with "?" are remains on the stack and do not count.
std::string telling_function(std::span<const std::string_view> texts);

// The first function of the call trace that is no machinery.
std::string telling_caller(std::span<const std::string_view> texts);

}  // namespace slalom
