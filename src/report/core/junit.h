// JUnit XML, which every build server reads: a search as a suite, with a case for the search itself and one
// for each finding.
//
// A function of its arguments. Titles are stable, so a build server recognises a bug from one run to the
// next.
#pragma once

#include <string>
#include <vector>

namespace slalom {

struct JunitCase {
  std::string name;
  enum class Result : uint8_t { Passed, Failed, Error } result = Result::Passed;
  std::string type;     // of what is wrong: "deadlock"
  std::string message;  // one line
  std::string text;     // the report
};

struct JunitSuite {
  std::string name;
  double seconds = 0;
  std::vector<JunitCase> cases;
  std::string output;  // for people: what was covered
};

std::string junit_xml(const JunitSuite& suite);

}  // namespace slalom
