// Text from a target, a capsule or any other file, made safe to show: on a terminal it could otherwise move
// the cursor, change what was shown before, or send answers as if the user had typed them.
//
// Control characters (C0, DEL, and C1 also as U+0080 to U+009F), broken UTF-8, line separators and marks that
// turn the direction of text become U+FFFD. Not for text that slalom has painted: sanitise first, paint last.
#pragma once

#include <string>
#include <string_view>

namespace slalom {

std::string printable(std::string_view text);        // one line: white space becomes a space
std::string printable_lines(std::string_view text);  // newlines and tabs stay

// The length of the code point that `text` starts with; 0: broken UTF-8, or one of the above.
size_t printable_length(std::string_view text);
// How many bytes at the end of `text` begin a code point that is not complete yet.
size_t unfinished_length(std::string_view text);

}  // namespace slalom
