// The timeline of a kernel's execution, with its words: one column per CPU and interrupt, system calls in the
// user's words, where each CPU stood when it was stopped, and of the accesses those that matter.
//
// Everything that is left out is counted. Layout is report/core/timeline.h's; what is shown is
// report/kernels/kernel_selection.h's.
#pragma once

#include <string>
#include <vector>

#include "finding/finding.h"
#include "report/core/timeline.h"
#include "report/kernels/kernel_trace.h"
#include "trace/names.h"
#include "trace/outcome.h"

namespace slalom {

// `switches`: of kernel_switches(), with what choice points know about them.
Timeline make_kernel_timeline(const KernelTrace& trace, const Interleaving& switches, const Finding& finding,
                              const Outcome& outcome, const Names& names, TimelineDetail detail,
                              const Glyphs& glyphs);

// An order that the bug needs, in two parts: "writer's store to x at f+0x54", "reader's load of x at g+0x1c".
struct KernelOrder {
  std::string before, after;
  bool is_bookkeeping = false;  // of what a CPU keeps of itself: it explains little
  auto operator<=>(const KernelOrder&) const = default;
};
KernelOrder kernel_order(const OrderConstraint& constraint, const KernelTrace& trace, const Names& names);

// Of a report on the console, what names the bug: its title, where it happened, and the innermost calls.
// Anything else stays as it is.
std::string console_summary(const std::string& text);

// "0xffff888003260000: wrote 2", "jiffies: read 17, wrote 18", "calls mutex_lock"; `after`: the second part
// of a read-modify-write, or null.
std::string access_text(const Access& access, const Access* after, const Names& names);

}  // namespace slalom
