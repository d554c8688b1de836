#include "report/text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/rng.h"
#include "report/kernels/kernel_trace.h"
#include "unit/report/scene.h"

namespace slalom::test {
namespace {

std::string report(const Scene& scene) {
  return text_report(scene.finding, scene.log, scene.names, scene.options);
}

std::string without_escapes(const std::string& text) {
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b') {
      at = text.find('m', at);
    } else {
      result += text[at];
    }
  }
  return result;
}

TEST(TextReport, KeepsToTheWidth) {
  for (const auto& [name, make] : scenes())
    for (size_t width = 50; width <= 160; ++width) {
      Scene scene = make();
      scene.options.width = width;
      scene.options.replay_command.clear();  // the only line that may be longer
      scene.options.ascii = width % 2 == 0;
      scene.options.detail =
          width % 3 == 0 ? TextOptions::Detail::Everything : TextOptions::Detail::Essential;
      std::istringstream lines(report(scene));
      for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(display_width(line), width) << name << ": " << line;
        EXPECT_FALSE(line.ends_with(' ')) << name << ": '" << line << "'";
      }
    }
}

// The report says "every time" only if all replays were the same.
TEST(TextReport, OneReplayThatDiffersIsSaid) {
  Scene scene = scenes().begin()->second();
  for (uint32_t same = 0; same <= 10; ++same) {
    scene.finding.replays_tried = 10;
    scene.finding.replays_same = same;
    const std::string text = report(scene);
    EXPECT_EQ(text.find("every time") != std::string::npos, same == 10) << same;
    EXPECT_NE(text.find(fmt::format("{}/10", same)), std::string::npos) << text;
  }
}

TEST(TextReport, ColourChangesNothingElse) {
  for (const auto& [name, make] : scenes())
    for (size_t width : {60, 80, 120}) {
      Scene scene = make();
      scene.options.width = width;
      const std::string plain = report(scene);
      scene.options.colour = true;
      const std::string painted = report(scene);
      EXPECT_NE(painted, plain);
      std::istringstream lines(without_escapes(painted));
      std::string stripped;
      for (std::string line; std::getline(lines, line);) {
        while (line.ends_with(' ')) line.pop_back();  // a space may precede an escape
        stripped += line + '\n';
      }
      EXPECT_EQ(stripped, plain) << name;
    }
}

TEST(TextReport, AsciiIsAscii) {
  for (const auto& [name, make] : scenes()) {
    if (name == "unicode") continue;  // its names are not ASCII
    Scene scene = make();
    scene.options.ascii = true;
    for (char c : report(scene)) ASSERT_LT(static_cast<unsigned char>(c), 0x80) << name;
  }
}

// An execution in which every operation reads another value, so that none is merged.
Scene random_scene(uint64_t seed) {
  Rng rng(seed);
  Scene s;
  const uint64_t agents = 1 + rng.below(5);
  const uint64_t steps = 1 + rng.below(400);
  const uint64_t stay = 1 + rng.below(40);
  uint64_t current = 0;
  for (uint64_t i = 0; i < steps; ++i) {
    if (rng.below(stay) == 0) current = rng.below(agents);
    s.event(OpKind::Choose, fmt::format("agent#{}", current), 1, "", {0, "", static_cast<int64_t>(i)});
    if (rng.below(10) == 0)
      s.finding.verdict.evidence.push_back(s.evidence(i, fmt::format("agent#{}", current), 1, "chosen"));
  }
  s.end(Exited{});
  return s;
}

TEST(Timeline, EveryOperationIsShownFoldedOrDropped) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Scene scene = random_scene(seed);
    const Interleaving all = read_interleaving(scene.log, scene.names);
    for (auto detail : {TextOptions::Detail::Essential, TextOptions::Detail::Everything}) {
      const Timeline timeline =
          make_timeline(all, scene.finding, scene.log.outcome(), scene.names, detail, glyphs(true));
      uint64_t shown = 0;
      uint64_t folded = 0;
      uint64_t dropped = 0;
      for (const TimelineRow& row : timeline.rows) {
        if (row.text.starts_with("... ")) {
          folded += std::stoul(row.text.substr(4));
        } else if (row.what == TimelineRow::What::Cell) {
          ++shown;
        }
      }
      for (const auto& [agent, operations] : timeline.dropped) dropped += operations;
      EXPECT_EQ(shown + folded + dropped, all.operations.size());
      if (detail == TextOptions::Detail::Everything) {
        EXPECT_EQ(shown, all.operations.size());
      } else {
        EXPECT_LE(shown, 240u);  // 120, and single operations between them that are not worth a fold
      }
    }
  }
}

TEST(Timeline, EvidenceIsAlwaysShown) {
  for (const auto& [name, make] : scenes()) {
    SCOPED_TRACE(name);
    const Scene scene = make();
    if (is_kernel_trace(scene.log)) continue;  // see kernel_test.cc
    const Timeline timeline =
        make_timeline(read_interleaving(scene.log, scene.names), scene.finding, scene.log.outcome(),
                      scene.names, TextOptions::Detail::Essential, glyphs(false));
    for (const Evidence& evidence : scene.finding.verdict.evidence)
      EXPECT_TRUE(std::any_of(timeline.rows.begin(), timeline.rows.end(), [&](const TimelineRow& row) {
        return row.mark == TimelineRow::Mark::Evidence && row.agent == evidence.agent;
      })) << evidence.text;
  }
}

TEST(TextReport, ChoicePointsKnowBetterThanTheLog) {
  Scene scene;
  scene.load("a", 1, "x", 0).load("b", 1, "x", 0);
  scene.end(Faulted{Faulted::Kind::Crash, scene.agent("b"), scene.place("b", 1), "broken"});
  EXPECT_NE(report(scene).find("Between 0 and 1 preemption;"), std::string::npos) << report(scene);
  scene.options.switch_kinds = {ChoiceKind::Start, ChoiceKind::Running};
  EXPECT_NE(report(scene).find("  1 preemption;"), std::string::npos);
  scene.options.switch_kinds = {ChoiceKind::Start, ChoiceKind::Blocked};
  EXPECT_NE(report(scene).find("  0 preemptions;"), std::string::npos);
  EXPECT_NE(report(scene).find("blocked after its 1st operation"), std::string::npos);
}

TEST(TextReport, AForeignLogIsNotMistakenForTheSchedule) {
  Scene scene = scenes().at("lost_update")();
  scene.finding.schedule.switches.back().from_ops = 17;
  const std::string text = report(scene);
  EXPECT_NE(text.find("after its 17th operation → worker#0"), std::string::npos) << text;
  EXPECT_NE(text.find("  3 switches; minimum"), std::string::npos) << text;
}

TEST(TextReport, OfNothingAtAll) {
  Scene scene;
  scene.end(Exited{});
  const std::string text = report(scene);
  EXPECT_NE(text.find("nothing was recorded"), std::string::npos);
  EXPECT_EQ(text.find("Why"), std::string::npos);
}

}  // namespace
}  // namespace slalom::test
