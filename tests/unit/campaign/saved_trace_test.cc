// Detectors give the same verdicts live and on a trace that was saved and read again, for every toy program.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/rng.h"
#include "detect/detector_set.h"
#include "explore/runner.h"
#include "support/source_dir.h"
#include "toy/toy_file.h"
#include "toy/toy_machine.h"
#include "trace/files/trace_stream.h"
#include "unit/base/temporary_directory.h"

namespace slalom {
namespace {

// Chooses at random; every choice is equally probable.
class CoinWalker final : public Walker {
 public:
  explicit CoinWalker(uint64_t seed) : rng_(77, seed) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    if (point.kind == ChoiceKind::Data)
      return Decision{.next = point.current, .value = static_cast<uint32_t>(rng_.below(point.arity))};
    return Decision{.next = options[rng_.below(options.size())].agent};
  }

 private:
  Rng rng_;
};

std::string in_words(const std::vector<Verdict>& verdicts, const Names& names) {
  std::string text;
  for (const Verdict& verdict : verdicts) {
    text += fmt::format("{} {} {}\n  {}\n", name(verdict.kind), name(verdict.severity), verdict.title,
                        verdict.detail);
    for (const Evidence& item : verdict.evidence)
      text += fmt::format("  {} {} {} {}\n", item.step.raw, item.agent ? names.agent(item.agent) : "-",
                          names.place(item.pc), item.text);
  }
  return text;
}

// Returns how many executions had a verdict.
uint64_t compare_verdicts(const std::filesystem::path& file, uint64_t executions) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  const auto program = std::make_shared<const ToyProgram>(parse_toy(text.str(), file.string()).value());
  const TemporaryDirectory directory;
  uint64_t found = 0;
  for (uint64_t i = 0; i < executions; ++i) {
    ToyMachine machine(program, ToyMachine::SnapshotMode::Off);
    const auto live = select_detectors(machine.names(), "all").value();
    RunnerOptions options;
    options.inputs.max_steps = 2000;
    Runner runner(machine, live.get(), options);
    const auto writer = TraceWriter::create(directory / "t.slalom", {}, machine.names()).value();
    runner.set_extra_sink(writer.get());
    CoinWalker walker(i);
    const Execution& execution = runner.run(Task{}, walker);
    EXPECT_TRUE(writer->close().ok());

    auto trace = TraceReader::open(directory / "t.slalom").value();
    const auto offline = select_detectors(trace.names(), "all").value();
    const auto end = trace.read_into(*offline);
    EXPECT_TRUE(end.ok() && end->missing.empty());
    std::vector<Verdict> verdicts;
    offline->harvest(verdicts);
    EXPECT_EQ(in_words(verdicts, trace.names()), in_words(execution.verdicts, machine.names()));
    found += !verdicts.empty();
  }
  return found;
}

TEST(SavedTrace, GivesTheVerdictsOfTheLiveExecution) {
  uint64_t programs = 0, with_verdicts = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(source_dir()) / "examples/toy")) {
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path().string());
    ++programs;
    with_verdicts += compare_verdicts(entry.path(), 8) > 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(programs, 60u);
  EXPECT_GT(with_verdicts, 30u);
}

}  // namespace
}  // namespace slalom
