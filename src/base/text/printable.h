// Makes text from a target, a capsule or another file safe to show. Raw text could move a terminal's cursor,
// change what was shown before, or send answers as if the user had typed them.
//
// Control characters (C0, DEL, and C1 also as U+0080 to U+009F), broken UTF-8, line separators, and marks
// that change the direction of text become U+FFFD. Not for text with slalom's own colours: sanitise first,
// paint last.
#pragma once

#include <string>
#include <string_view>

namespace slalom {

std::string printable(std::string_view text);        // one line: white space becomes a space
std::string printable_lines(std::string_view text);  // newlines and tabs stay

// Returns the length of the code point with which `text` starts; 0 if it is broken UTF-8 or one of the above.
size_t printable_length(std::string_view text);
// Returns the number of bytes at the end of `text` that begin an incomplete code point.
size_t unfinished_length(std::string_view text);

}  // namespace slalom
