// Expectation: what a test file's [expect] says that a search finds, and how that compares with what was
// found.
//
// A finding is expected by its title; where only kinds are listed, by its kind. One bug can show under
// several titles, not all of which a short search meets: so one of those that are listed is enough, but
// nothing else may be found. Of data races count those that are listed, and all where races count by
// themselves.
//
// Not for what an execution has to do: that is the target's own to check.
#pragma once

#include <string>
#include <vector>

#include "trace/verdict.h"

namespace slalom {

// Whether a finding is one by which a search fails.
bool counts(const Verdict& verdict, bool races_count);

struct Expectation {
  std::vector<std::string> kinds;
  std::vector<std::string> titles;

  // As they are compared: titles, or else kinds.
  const std::vector<std::string>& listed() const { return titles.empty() ? kinds : titles; }
  bool lists(const Verdict& verdict) const;
};

struct Comparison {
  std::vector<std::string> found, missing;  // of those listed, as they stand there
  std::vector<std::string> unexpected;      // titles
  bool met = false;                         // nothing unexpected, and a bug that is listed, if there is one
};
Comparison compare(const Expectation& expected, const std::vector<Verdict>& verdicts, bool races_count);
std::string in_words(const Comparison& comparison);  // one line

}  // namespace slalom
