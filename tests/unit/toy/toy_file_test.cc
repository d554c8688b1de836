// Program files: what they may contain, and the errors for wrong ones.
#include <fstream>

#include "support/source_dir.h"
#include "unit/toy/toy_support.h"

namespace slalom::test {
namespace {

constexpr const char* kComplete = R"(name = "everything"
about = "All a file can have."

[params]
n = 2
k = 5

[shared]
x = 0
y = "n * k"
flag = { init = 1, atomic = true }
a = { size = "n+1", init = "k" }
warm = { init = 3, persistent = true }

[sync]
m = "mutex"
rw = "rwlock"
c = "condvar"
s = { kind = "semaphore", count = "n" }
b = { kind = "barrier", parties = "n" }
l = { kind = "mutex", size = 4 }
s0 = "semaphore"

[[thread]]
name = "worker"
copies = "n"
code = """
x = x + 1
arrive b
"""

[[thread]]
name = "child"
start = false
code = "x = 2"

[[interrupt]]
name = "tick"
on = "worker#1"
times = 0
code = "x = 3"

[[timer]]
name = "t"
code = "x = 4"

[final]
check = "x == n"
message = "an update was lost"

[expect]
kinds = ["assertion", "data-race"]
titles = ["a title"]
)";

TEST(ToyFile, Complete) {
  const Result<ToyProgram> parsed = parse_toy(kComplete, "test.toml");
  ASSERT_TRUE(parsed.ok()) << refusal(parsed);
  const ToyProgram& program = *parsed;
  EXPECT_EQ(program.name, "everything");
  EXPECT_EQ(program.about, "All a file can have.");
  EXPECT_EQ(program.params, (ToyParams{{"n", 2}, {"k", 5}}));
  ASSERT_EQ(program.shared.size(), 5u);
  EXPECT_EQ(program.shared[1].init, 10);
  EXPECT_TRUE(program.shared[2].atomic);
  EXPECT_EQ(program.shared[3].size, 3u);
  EXPECT_EQ(program.shared[3].init, 5);
  EXPECT_TRUE(program.shared[4].persistent);
  EXPECT_EQ(program.cells(), 7u);
  EXPECT_EQ(program.sync_objects(), 10u);
  EXPECT_EQ(program.sync[3].count, 2u);
  EXPECT_EQ(program.sync[4].count, 2u);
  EXPECT_EQ(program.expected_kinds, (std::vector<std::string>{"assertion", "data-race"}));
  EXPECT_EQ(program.expected_titles, std::vector<std::string>{"a title"});
  ToyMachine machine(program);
  EXPECT_EQ(text_of(run(machine, go_on).outcome), "exited");
  EXPECT_EQ(text_of(run(machine, scripted({{initial(0), 0}, {initial(1), 0}})).outcome),
            "assertion: final check: an update was lost");
  EXPECT_EQ(machine.names().object(toy_cell(5)), "a[2]");
  EXPECT_EQ(machine.names().agent(initial(1)), "worker#1");
  EXPECT_EQ(machine.names().role(initial(1)), "worker");
}

TEST(ToyFile, ParametersCanBeSet) {
  const Result<ToyProgram> parsed = parse_toy(kComplete, "test.toml", {{"n", 4}});
  ASSERT_TRUE(parsed.ok()) << refusal(parsed);
  EXPECT_EQ(parsed->cells(), 9u);
  EXPECT_EQ(parsed->blocks[0].copies, 4u);
  EXPECT_EQ(refusal(parse_toy(kComplete, "test.toml", {{"m", 4}})),
            "test.toml: there is no parameter `m`; the program has: n, k");
  EXPECT_EQ(refusal(parse_toy("", "test.toml", {{"m", 4}})),
            "test.toml: there is no parameter `m`: the program has none");
}

TEST(ToyFile, ProblemsNameFileLineAndWhatToDo) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"name = ", "f.toml:1: "},
      {"[(x)]", "f.toml:1: "},
      {"name = 3", "f.toml:1: `name` must be a text in quotes"},
      {"nmae = \"x\"", "f.toml:1: unknown key `nmae` in the file; it may have: name, about, params, "},
      {"\n[params]\nn = \"two\"", "f.toml:3: parameter `n` must be a number"},
      {"params = 3", "f.toml:1: `params` must be a table: write [params]"},
      {"[shared]\nx = true", "f.toml:2: shared variable `x` must be a number or an expression in quotes"},
      {"[shared]\nx = \"n\"",
       "f.toml:2: shared variable `x`: `n` is not made of numbers and parameters only"},
      {"[shared]\nx = \"1 +\"", "f.toml:2: shared variable `x`: in `1 +`: expected an expression"},
      {"[shared]\nx = { size = 0 }", "f.toml: the size of `x` is 0"},
      {"[shared]\nx = { sise = 1 }",
       "f.toml:2: unknown key `sise` in shared variable `x`; it may have: init, size, atomic, persistent"},
      {"[shared]\nx = { atomic = 1 }", "f.toml:2: `atomic` must be true or false"},
      {"[sync]\nm = \"mutexx\"", "f.toml:2: `m` must be a mutex, rwlock, condvar, semaphore or barrier"},
      {"[sync]\nm = 3", "f.toml:2: `m` must be a mutex,"},
      {"[sync]\nm = { size = 3 }", "f.toml:2: `kind` is missing: write kind = \"...\""},
      {"[sync]\nm = { kind = \"mutex\", count = 3 }",
       "f.toml:2: unknown key `count` in mutex `m`; it may have: kind, size"},
      {"[sync]\nb = \"barrier\"",
       "f.toml:2: a barrier needs its parties: b = { kind = \"barrier\", parties = 2 }"},
      {"[sync]\ns = { kind = \"semaphore\", count = -1 }", "f.toml: the count of `s` must be between 0 and "},
      {"[thread]\nname = \"t\"", "f.toml:1: `thread` must be a list of tables: write [[thread]]"},
      {"[[thread]]\ncode = \"\"", "f.toml:1: `name` is missing"},
      {"[[thread]]\nname = \"t\"", "f.toml:1: `code` is missing"},
      {"[[thread]]\nname = \"t\"\ncode = \"\"\ncopys = 2",
       "f.toml:4: unknown key `copys` in [[thread]]; it may have: name, copies, start, code"},
      {"[[thread]]\nname = \"t\"\ncode = \"x = 1; y = z\"", "f.toml:3: in `t`: nothing is called `z`"},
      {"[[thread]]\nname = \"t\"\ncode = \"\"\"\n\nr = 1\nr = z\"\"\"",
       "f.toml:6: in `t`: nothing is called `z`"},
      {"[[thread]]\nname = \"t\"\ncode = \"\"\"r = 1\nr = z\n\"\"\"",
       "f.toml:4: in `t`: nothing is called `z`"},
      {"[[thread]]\nname = \"t\"\ncode = '''\nr = 1\nr = z\n'''", "f.toml:5: in `t`: nothing is called `z`"},
      {"[[interrupt]]\nname = \"i\"\ncode = \"\"", "f.toml:1: `on` is missing"},
      {"[[interrupt]]\nname = \"i\"\non = \"t\"\ncode = \"\"",
       "f.toml: interrupt `i` is on `t`, which is not a thread that runs from the start"},
      {"[[timer]]\nname = \"i\"\non = \"t\"\ncode = \"\"",
       "f.toml:3: unknown key `on` in [[timer]]; it may have: name, code"},
      {"final = 3", "f.toml:1: `final` must be a table: write [final]"},
      {"[final]\nmessage = \"m\"", "f.toml:1: `check` is missing"},
      {"[final]\ncheck = \"z == 1\"", "f.toml:2: in `final`: nothing is called `z`"},
      {"[final]\ncheck = \"1 == 1 2\"", "f.toml:2: in `final`: `2` cannot follow a complete expression"},
      {"[expect]\nkind = []", "f.toml:2: unknown key `kind` in [expect]; it may have: kinds, titles"},
      {"[expect]\nkinds = \"assertion\"", "f.toml:2: `kinds` must be a list of texts"},
      {"[expect]\nkinds = [1]", "f.toml:2: `kinds` must be a list of texts"},
      {"[shared]\nx = 0\n[sync]\nx = \"mutex\"", "f.toml: `x` is declared twice: choose another name"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_TRUE(refusal(parse_toy(text, "f.toml")).starts_with(message))
        << text << "\nsays: " << refusal(parse_toy(text, "f.toml"));
}

TEST(ToyFile, MissingFile) {
  EXPECT_EQ(refusal(load_toy_file("no/such.toml")),
            "cannot read no/such.toml: check that the file exists and may be read");
}

// The example in the language's documentation is a program, and has the bug that the page promises.
TEST(ToyFile, TheDocumentedExample) {
  std::ifstream file(source_dir() + "/docs/toy-language.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t begin = text.find("```toml\n") + 8;
  const Result<ToyProgram> program =
      parse_toy(text.substr(begin, text.find("```", begin) - begin), "example");
  ASSERT_TRUE(program.ok()) << refusal(program);
  EXPECT_EQ(program->expected_kinds, std::vector<std::string>{"deadlock"});
  ToyMachine machine(*program);
  std::set<std::string> outcomes;
  for (uint64_t seed = 0; seed < 500; ++seed) outcomes.insert(text_of(run(machine, randomly(seed)).outcome));
  EXPECT_EQ(outcomes, (std::set<std::string>{"deadlocked", "exited"}));
}

uint64_t executions(const std::string& name, const ToySettings& settings) {
  ToyMachine machine(*load_toy_file(source_dir() + "/examples/toy/" + name + ".toml", settings));
  uint64_t exited = 0;
  for (uint64_t seed = 0; seed < 20; ++seed)
    exited += text_of(run(machine, randomly(seed)).outcome) == "exited" ? 1 : 0;
  return exited;
}

TEST(ToyFile, TheCountedExamplesRunForEveryN) {
  for (int64_t n = 1; n <= 20; ++n)
    for (const std::string name : {"readers", "lastzero", "indexer", "filesystem"})
      EXPECT_EQ(executions(name, {{"n", n}}), 20u) << name << " " << n;
}

TEST(ToyFile, TheCountedExamplesDoWhatTheySay) {
  const auto last_state = [](const std::string& name, const ToySettings& settings) {
    ToyMachine machine(*load_toy_file(source_dir() + "/examples/toy/" + name + ".toml", settings));
    run(machine, go_on);
    return machine.state().cells;
  };
  EXPECT_EQ(last_state("lastzero", {}), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  // Word w of the indexer is at 7w mod 128, or after it if that place was taken.
  const std::vector<int64_t> table = last_state("indexer", {});
  for (int64_t t = 0; t < 12; ++t)
    for (int64_t m = 1; m <= 4; ++m) {
      const int64_t w = 11 * m + t;
      size_t h = static_cast<size_t>(7 * w % 128);
      while (table[h] != w && table[h] != 0) h = (h + 1) % 128;
      EXPECT_EQ(table[h], w);
    }
  EXPECT_EQ(std::count_if(table.begin(), table.end(), [](int64_t w) { return w != 0; }), 48);
  // Each of the 14 inodes of the filesystem has a block of its own, and that block is busy.
  const std::vector<int64_t> disk = last_state("filesystem", {});
  std::set<int64_t> blocks;
  for (size_t i = 0; i < 14; ++i) blocks.insert(disk[i]);
  EXPECT_EQ(blocks.size(), 14u);
  for (int64_t block : blocks) EXPECT_EQ(disk.at(32 + static_cast<size_t>(block) - 1), 1);
}

}  // namespace
}  // namespace slalom::test
