// The results of stat() for files that an execution, or the copy of its folder, has just made. Their times
// are the host's and their inode numbers are arbitrary. Neither may depend on when and where an execution
// runs.
#pragma once

#include <sys/stat.h>

namespace slalom::preload {

// Call on the output of a stat() that returned `result`; returns `result`. New files get the time of the
// program's start, and inode numbers in the order in which the execution first looks at them. Older files
// keep theirs.
int with_stable_identity(int result, struct stat* info);
// Notes the opening of a file of /proc whose contents differ in each execution.
void note_path(const char* path);

}  // namespace slalom::preload
