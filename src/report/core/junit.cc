#include "report/core/junit.h"

#include <fmt/format.h>

#include <algorithm>

namespace slalom {
namespace {

// Text may come from the program. Only characters that XML allows pass; others become '?'.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += byte == '\n' || byte == '\t' || (byte >= 0x20 && byte < 0x7f) ? c : '?';
    }
  }
  return result;
}

std::string case_xml(const JunitSuite& suite, const JunitCase& test) {
  std::string xml =
      fmt::format("    <testcase classname=\"{}\" name=\"{}\"", escaped(suite.name), escaped(test.name));
  if (test.result == JunitCase::Result::Passed) return xml + "/>\n";
  const char* element = test.result == JunitCase::Result::Failed ? "failure" : "error";
  return xml + fmt::format(">\n      <{0} type=\"{1}\" message=\"{2}\">{3}</{0}>\n    </testcase>\n", element,
                           escaped(test.type), escaped(test.message), escaped(test.text));
}

}  // namespace

std::string junit_xml(const JunitSuite& suite) {
  const auto count = [&](JunitCase::Result result) {
    return std::count_if(suite.cases.begin(), suite.cases.end(),
                         [&](const JunitCase& test) { return test.result == result; });
  };
  const std::string numbers =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3f}\"", suite.cases.size(),
                  count(JunitCase::Result::Failed), count(JunitCase::Result::Error), suite.seconds);
  std::string xml = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n  <testsuite name=\"{1}\" {0}>\n",
      numbers, escaped(suite.name));
  for (const JunitCase& test : suite.cases) xml += case_xml(suite, test);
  if (!suite.output.empty()) xml += fmt::format("    <system-out>{}</system-out>\n", escaped(suite.output));
  return xml + "  </testsuite>\n</testsuites>\n";
}

}  // namespace slalom
