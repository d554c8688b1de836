// The timeline of a kernel's execution, with its words: one column per CPU and interrupt, system calls in the
// user's words, the place where each CPU was stopped, and the accesses that matter.
//
// Everything left out is counted. report/kernels/kernel_selection.h selects what to show, and
// report/core/timeline.h lays it out.
#pragma once

#include <string>
#include <vector>

#include "finding/finding.h"
#include "report/core/timeline.h"
#include "report/kernels/kernel_trace.h"
#include "trace/names.h"
#include "trace/outcome.h"

namespace slalom {

// `switches` comes from kernel_switches(), with the reasons that choice points know.
Timeline make_kernel_timeline(const KernelTrace& trace, const Interleaving& switches, const Finding& finding,
                              const Outcome& outcome, const Names& names, TimelineDetail detail,
                              const Glyphs& glyphs);

// An order that the bug needs, in two parts: "writer's store to x at f+0x54", "reader's load of x at g+0x1c".
struct KernelOrder {
  std::string before, after;
  bool is_bookkeeping = false;  // concerns private data of a CPU, so it explains little
  auto operator<=>(const KernelOrder&) const = default;
};
KernelOrder kernel_order(const OrderConstraint& constraint, const KernelTrace& trace, const Names& names);

// Returns the part of a console report that identifies the bug: its title, the place, and the innermost
// calls. Returns other text as it is.
std::string console_summary(const std::string& text);

// Returns "0xffff888003260000: wrote 2", "jiffies: read 17, wrote 18", "calls mutex_lock". `after`: the
// second part of a read-modify-write, or nullptr.
std::string access_text(const Access& access, const Access* after, const Names& names);

}  // namespace slalom
