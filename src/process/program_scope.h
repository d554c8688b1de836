// Where a search switches the threads of a program: in the parts that the user names, or everywhere but
// there.
//
// A part is "module:libfoo.so" (a loaded file, with or without its folder and what follows its name), or
// "function:push", "function:Queue::push", "function:log_*", also where it was inlined. What it calls belongs
// to it. Of a program with an allocator of its own, linked into it, that is one more part without switches:
// libc calls it while it holds locks of its own.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "preload/protocol.h"
#include "process/program.h"
#include "process/program_names.h"
#include "process/zygote.h"

namespace slalom {

Result<void> check_scope(std::string_view text);  // as far as it can be judged without the program

// Sorted, without overlaps; empty: the search switches everywhere. Fails where a name is nobody's.
Result<std::vector<preload::ScopedCode>> find_scope(const Program& program, const ProgramNames& names,
                                                    const Zygote& zygote);

// Parts of a program's code that may overlap: the smaller one covers the larger one, and of two of a size the
// one that is named, atomic rather than not.
std::vector<preload::ScopedCode> without_overlaps(std::vector<preload::ScopedCode> parts);

}  // namespace slalom
