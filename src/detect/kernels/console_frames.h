// Parts of titles from the text of a kernel's console: functions ("func+0x12/0x34 [module]"), the function
// that says most about the bug, and messages without their variable parts. The text is untrusted and may be
// cut anywhere.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace slalom {

// Returns the function with which the text begins, as "func" or "module:func", without suffixes that
// compilers append (".isra.0", ".cold"). Empty if there is none.
std::string console_function(std::string_view text);
std::string first_function(std::string_view line);  // the first function anywhere in a line

// Returns a message without its variable parts: addresses and numbers become N, "process/12" is removed.
std::string stable_text(std::string_view text);

// Returns whether the function only reports a bug, or only runs into a caller's mistake: the scheduler,
// locks, consoles, checks of lists and counters, copying of memory.
bool is_machinery(std::string_view function);

// Returns the function that a report's lines (without times) blame: where the CPU stood ("RIP: 0010:"), or
// else the innermost caller that is no machinery. Ignores frames with "?", which are remains on the stack.
std::string telling_function(std::span<const std::string_view> texts);

// Returns the first function of the call trace that is no machinery.
std::string telling_caller(std::span<const std::string_view> texts);

}  // namespace slalom
