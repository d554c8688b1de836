#include "detect/core/failure.h"

#include <algorithm>

#include "detect/core/titles.h"

namespace slalom {

void FailureDetector::on_end(const Outcome& outcome) {
  const auto* fault = std::get_if<Faulted>(&outcome);
  if (fault == nullptr) return;
  if (fault->kind == Faulted::Kind::Crash && !fault->agent && fault->what.empty())
    return;  // the kernel's console says more
  const bool assertion = fault->kind == Faulted::Kind::Assertion;
  // The text of an assertion is part of the program. The text of a crash is made at run time and contains
  // values. Its first line says what is wrong; further lines say with which values.
  const size_t line = std::min(fault->what.find('\n'), fault->what.size());
  const std::string first = fault->what.substr(0, line);
  const std::string what = assertion ? first : generic_text(first);
  // A check after all agents have ended has no place.
  const std::string where = fault->agent ? fmt::format(" at {}", names_.place(fault->pc)) : "";

  Verdict verdict;
  verdict.kind = assertion ? BugKind::Assertion : BugKind::Crash;
  verdict.title = fmt::format("{}{}{}{}", assertion ? "assertion failed" : "crash", where,
                              what.empty() ? "" : ": ", what);
  if (line < fault->what.size()) verdict.detail = fault->what.substr(line + 1);
  if (fault->agent) {
    const std::string source = names_.source(fault->pc);
    std::string all = fault->what;
    if (!assertion && line < all.size()) all.replace(line, 1, ". ");
    verdict.detail =
        fmt::format("{} {}{}{}{}.", names_.agent(fault->agent), assertion ? "failed an assertion" : "crashed",
                    source.empty() ? "" : fmt::format(" in `{}`", source), all.empty() ? "" : ": ", all);
    // The fault is no event of its own.
    verdict.evidence.push_back({last_step(), fault->agent, fault->pc, assertion ? fault->what : first});
  }
  report(std::move(verdict));
}

}  // namespace slalom
