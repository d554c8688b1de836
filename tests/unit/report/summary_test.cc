#include "report/core/summary.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "base/check.h"
#include "base/rng.h"

namespace slalom {
namespace {

using std::chrono::nanoseconds;

TEST(Numbers, AreGroupedByThousands) {
  EXPECT_EQ(human_number(0), "0");
  EXPECT_EQ(human_number(999), "999");
  EXPECT_EQ(human_number(1000), "1,000");
  EXPECT_EQ(human_number(1234567), "1,234,567");
  EXPECT_EQ(human_number(std::numeric_limits<uint64_t>::max()), "18,446,744,073,709,551,615");
}

TEST(Numbers, DurationsChangeTheirUnitBeforeTheyRoundUpToIt) {
  EXPECT_EQ(human_duration(nanoseconds(0)), "0 ns");
  EXPECT_EQ(human_duration(nanoseconds(999)), "999 ns");
  EXPECT_EQ(human_duration(nanoseconds(1'000)), "1.0 µs");
  EXPECT_EQ(human_duration(nanoseconds(999'949)), "999.9 µs");
  EXPECT_EQ(human_duration(nanoseconds(999'950)), "1.0 ms");
  EXPECT_EQ(human_duration(nanoseconds(12'345'678)), "12.3 ms");
  EXPECT_EQ(human_duration(nanoseconds(59'949'000'000)), "59.9 s");
  EXPECT_EQ(human_duration(nanoseconds(59'950'000'000)), "1 min 00 s");
  EXPECT_EQ(human_duration(std::chrono::seconds(200)), "3 min 20 s");
  EXPECT_EQ(human_duration(std::chrono::seconds(3599)), "59 min 59 s");
  EXPECT_EQ(human_duration(std::chrono::minutes(125)), "2 h 05 min");
  EXPECT_EQ(human_duration(std::chrono::hours(1500)), "1,500 h 00 min");
  EXPECT_EQ(human_duration(nanoseconds(-5)), "-5 ns");
}

TEST(Numbers, OrdinalsAndPlurals) {
  EXPECT_EQ(ordinal(1), "1st");
  EXPECT_EQ(ordinal(2), "2nd");
  EXPECT_EQ(ordinal(3), "3rd");
  EXPECT_EQ(ordinal(4), "4th");
  EXPECT_EQ(ordinal(11), "11th");
  EXPECT_EQ(ordinal(12), "12th");
  EXPECT_EQ(ordinal(113), "113th");
  EXPECT_EQ(ordinal(1021), "1,021st");
  EXPECT_EQ(plural(1, "step"), "1 step");
  EXPECT_EQ(plural(0, "step"), "0 steps");
  EXPECT_EQ(plural(1204, "switch", "switches"), "1,204 switches");
}

TEST(Width, CountsCodePointsAndNoEscapes) {
  EXPECT_EQ(display_width(""), 0u);
  EXPECT_EQ(display_width("größe"), 5u);
  EXPECT_EQ(display_width("→日本"), 3u);
  EXPECT_EQ(display_width("\x1b[1m\x1b[31mab\x1b[0m\x1b[0m"), 2u);
  EXPECT_EQ(display_width("\x1b["), 2u);  // an incomplete escape
}

TEST(Width, FitCutsBetweenCodePoints) {
  EXPECT_EQ(fit("größe", 5), "größe");
  EXPECT_EQ(fit("größer", 5), "größ…");
  EXPECT_EQ(fit("a bcd", 3), "a…");  // no space before the dots
  EXPECT_EQ(fit("größer", 5, "..."), "gr...");
  EXPECT_EQ(fit("abc", 1), "…");
  EXPECT_EQ(fit("abc", 2, "..."), "..");
  EXPECT_EQ(fit("abc", 0), "");
  EXPECT_EQ(pad("é", 3), "é  ");
  EXPECT_EQ(pad_left("é", 3), "  é");
  EXPECT_EQ(pad("long", 2), "long");
}

TEST(Printable, LeavesNothingThatMovesTheCursor) {
  EXPECT_EQ(printable("a\tb\r\nc"), "a b  c");
  EXPECT_EQ(printable("\x1b[31mred\x07"), "\uFFFD[31mred\uFFFD");
  EXPECT_EQ(printable("größe 日本 𝄞"), "größe 日本 𝄞");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\uFFFD\uFFFD31m");                      // a control character in two bytes
  EXPECT_EQ(printable("\xc0\xaf"), "\uFFFD\uFFFD");  // overlong
  EXPECT_EQ(printable("\xe0\x80\xaf"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(printable("ab\xe6\x97"), "ab\uFFFD\uFFFD");  // cut off
  EXPECT_EQ(printable("\u202e"), "\uFFFD\uFFFD\uFFFD");  // reverses the text after it
  for (const char* mark : {"\u200e", "\u200f", "\u2028", "\u2029", "\u2066", "\u2069"})
    EXPECT_EQ(printable(mark), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(printable("\u061c"), "\uFFFD\uFFFD");
  EXPECT_EQ(printable("\u200b\u2030\u2070"), "\u200b\u2030\u2070");
}

TEST(PrintableLines, KeepsTheLines) {
  EXPECT_EQ(printable_lines("a\n\tb\r\x1b[0m\n"), "a\n\tb \uFFFD[0m\n");
}

TEST(UnfinishedLength, CountsWhatIsStillToBeCompleted) {
  EXPECT_EQ(unfinished_length(""), 0u);
  EXPECT_EQ(unfinished_length("a"), 0u);
  EXPECT_EQ(unfinished_length("größe"), 0u);
  for (const std::string_view whole : {"ö", "日", "𝄞"})
    for (size_t size = 1; size < whole.size(); ++size)
      EXPECT_EQ(unfinished_length("x" + std::string(whole.substr(0, size))), size);
  EXPECT_EQ(unfinished_length("\x80\x80\x80\x80"), 0u);  // can never be completed
}

TEST(Wrap, KeepsIndentsAndLongWords) {
  EXPECT_EQ(wrap("one two three four", 9), "one two\nthree\nfour\n");
  EXPECT_EQ(wrap("one two three", 9, 2, 4), "  one two\n    three\n");
  EXPECT_EQ(wrap("a incomprehensibilities b", 8, 0, 2), "a\n  incomprehensibilities\n  b\n");
  EXPECT_EQ(wrap("one\n\ntwo", 20, 2, 2), "  one\n\n  two\n");
  EXPECT_EQ(wrap("", 20), "");
  EXPECT_EQ(wrap("  spread   out  ", 20), "spread out\n");
  EXPECT_EQ(wrap("größe größe", 11), "größe größe\n");
}

TEST(Wrap, LosesNoWordAndBreaksOnlyWhereItMust) {
  Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    const size_t width = 10 + rng.below(40);
    std::vector<std::string> words;
    std::string text;
    for (uint64_t i = 0, count = rng.below(60); i < count; ++i) {
      words.push_back(std::string(1 + rng.below(8), static_cast<char>('a' + rng.below(26))));
      text += words.back() + ' ';
    }
    std::istringstream lines(wrap(text, width, 1, 2));
    std::vector<std::string> seen;
    size_t previous = width;  // the first line may begin with any word
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), width);
      std::istringstream in(line);
      bool first = true;
      for (std::string word; in >> word; first = false) {
        if (first && !seen.empty()) {
          EXPECT_GT(previous + 1 + word.size(), width) << "broken too early";
        }
        seen.push_back(word);
      }
      previous = line.size();
    }
    EXPECT_EQ(seen, words);
  }
}

TEST(Style, PaintsOnlyWhenOn) {
  EXPECT_EQ(Style{false}.paint(Ink::Red, "x"), "x");
  EXPECT_EQ(Style{true}.paint(Ink::Red, "x"), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(Style{true}.paint(Ink::Red, ""), "");
}

TEST(Table, AlignsPaintedCells) {
  Table table({{"name"}, {"runs", Table::Align::Right}, {"note"}});
  table.add({"größe", "5", "é"});
  table.add({Style{true}.paint(Ink::Red, "x"), "1,000"});
  EXPECT_EQ(table.text({}, 1),
            " name    runs  note\n"
            " größe      5  é\n"
            " \x1b[31mx\x1b[0m      1,000\n");
  Table untitled({{""}, {""}});
  untitled.add({"a", "b"});
  EXPECT_EQ(untitled.text(), "a  b\n");
  EXPECT_THROW(untitled.add({"a", "b", "c"}), InternalError);
}

}  // namespace
}  // namespace slalom
