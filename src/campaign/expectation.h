// Expectation: the findings that a test file's [expect] lists, and their comparison with the findings of a
// search.
//
// A finding is expected by its title, or by its kind if the file lists only kinds. One bug can show under
// several titles, and a short search may not meet all of them. So one listed title suffices, but an unlisted
// finding fails the comparison. Data races count if they are listed, or if races count as findings.
//
// Not for requirements on an execution: the target checks those itself.
#pragma once

#include <string>
#include <vector>

#include "trace/verdict.h"

namespace slalom {

// Returns whether a search fails because of such a finding.
bool counts(const Verdict& verdict, bool races_count);

struct Expectation {
  std::vector<std::string> kinds;
  std::vector<std::string> titles;

  // Returns the entries to compare with: the titles, or the kinds if there are no titles.
  const std::vector<std::string>& listed() const { return titles.empty() ? kinds : titles; }
  bool lists(const Verdict& verdict) const;
};

struct Comparison {
  std::vector<std::string> found, missing;  // entries of the list, as written there
  std::vector<std::string> unexpected;      // titles
  bool met = false;  // no unexpected finding, and a listed bug was found if the file lists one
};
Comparison compare(const Expectation& expected, const std::vector<Verdict>& verdicts, bool races_count);
std::string in_words(const Comparison& comparison);  // one line

}  // namespace slalom
