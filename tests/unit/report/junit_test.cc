#include "report/core/junit.h"

#include <gtest/gtest.h>

namespace slalom {
namespace {

using CaseResult = JunitCase::Result;

TEST(JunitXml, AnErrorIsNoFailureAndNeitherPasses) {
  const std::string xml = junit_xml({"suite",
                                     1.5,
                                     {{.name = "good"},
                                      {"bad", CaseResult::Failed, "deadlock", "stuck", "report"},
                                      {"worse", CaseResult::Error, "error", "no machine", "text"}},
                                     "covered"});
  EXPECT_EQ(xml,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites tests=\"3\" failures=\"1\" errors=\"1\" time=\"1.500\">\n"
            "  <testsuite name=\"suite\" tests=\"3\" failures=\"1\" errors=\"1\" time=\"1.500\">\n"
            "    <testcase classname=\"suite\" name=\"good\"/>\n"
            "    <testcase classname=\"suite\" name=\"bad\">\n"
            "      <failure type=\"deadlock\" message=\"stuck\">report</failure>\n"
            "    </testcase>\n"
            "    <testcase classname=\"suite\" name=\"worse\">\n"
            "      <error type=\"error\" message=\"no machine\">text</error>\n"
            "    </testcase>\n"
            "    <system-out>covered</system-out>\n"
            "  </testsuite>\n"
            "</testsuites>\n");
}

TEST(JunitXml, WhatATargetSaysCannotEndAnAttribute) {
  const std::string xml = junit_xml({"s", 0, {{"a\"b<c>d&e\x1b\xff", CaseResult::Passed, "", "", ""}}, ""});
  EXPECT_NE(xml.find("name=\"a&quot;b&lt;c&gt;d&amp;e??\""), std::string::npos) << xml;
}

}  // namespace
}  // namespace slalom
