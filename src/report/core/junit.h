// JUnit XML, which every build server reads. A search is a suite, with a case for the search itself and a
// case for each finding.
//
// A function of its arguments. Titles do not change between runs, so a build server recognises a bug from one
// run to the next.
#pragma once

#include <string>
#include <vector>

namespace slalom {

struct JunitCase {
  std::string name;
  enum class Result : uint8_t { Passed, Failed, Error } result = Result::Passed;
  std::string type;     // kind of the bug: "deadlock"
  std::string message;  // one line
  std::string text;     // the report
};

struct JunitSuite {
  std::string name;
  double seconds = 0;
  std::vector<JunitCase> cases;
  std::string output;  // for people: what the search covered
};

std::string junit_xml(const JunitSuite& suite);

}  // namespace slalom
