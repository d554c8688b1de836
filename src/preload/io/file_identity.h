// What stat() says of files that an execution, or the copy of its folder, has just made: their times are the
// host's, and their numbers are whatever the file system had free. Neither may depend on when and where an
// execution runs.
#pragma once

#include <sys/stat.h>

namespace slalom::preload {

// Of a call that gave `result`, which it returns. New files have the time of the program's start and numbers
// in the order in which the execution first looks at them; older ones keep what they have.
int with_stable_identity(int result, struct stat* info);
// Reading such a file of /proc says what no execution repeats.
void note_path(const char* path);

}  // namespace slalom::preload
