// Kernel test files: their meaning, and how invalid ones are refused.
#include <gtest/gtest.h>

#include "unit/kernel_store/kernel_files.h"
#include "unit/kernel_store/scratch_directory.h"
#include "vm/scenario/kernel_test.h"
#include "vm/scenario/plan.h"
#include "vm/scenario/template.h"

namespace slalom::vm {
namespace {

KernelTest parsed(const std::string& text) {
  Result<KernelTest> test = parse_kernel_test(text, "dir/x.toml");
  CHECK(test.ok(), "{}", test.ok() ? "" : test.error().message);
  return *std::move(test);
}
std::string refused(const std::string& text) {
  const Result<KernelTest> test = parse_kernel_test(text, "dir/x.toml");
  return test.ok() ? "nothing" : test.error().message;
}
const std::string kFlow = "[[flow]]\ncalls = 'getpid()'\n";

TEST(KernelTestFile, Everything) {
  const KernelTest test = parsed(R"toml(
name = "pipes"
about = "two at one pipe"
kernel = "debian:6.12"
cpus = 4
memory = "1G"
append = "slub_debug=FZ"
modules = ["loop",
           "mine.ko size=3"]
files = ["a.img:/root/a.img"]
setup = "mkdir /tmp/a"
check = "test -d /tmp/a"

[[flow]]
name = "writer"
calls = '''
fd = open("/tmp/a", O_RDWR)

close(fd)
'''
[[flow]]
calls = "close(1)"
[[flow]]
program = "bin/mine"
[[flow]]
source = "mine.c"

[expect]
kinds = ["crash"]
titles = ["BUG in f"]

[limits]
preparation = 7
execution = 8
check = 9
)toml");
  EXPECT_EQ(test.name, "pipes");
  EXPECT_EQ(test.about, "two at one pipe");
  EXPECT_EQ(test.kernel, "debian:6.12");
  EXPECT_EQ(test.kernel_line, 4);
  EXPECT_EQ(test.cpus, 4u);
  EXPECT_EQ(test.memory, uint64_t{1} << 30);
  EXPECT_EQ(test.append, "slub_debug=FZ");
  EXPECT_EQ(test.modules, (std::vector<KernelTest::Entry>{{"loop", 8}, {"mine.ko size=3", 9}}));
  EXPECT_EQ(test.files, (std::vector<KernelTest::Entry>{{"a.img:/root/a.img", 10}}));
  EXPECT_EQ(test.setup, (std::vector<KernelTest::Entry>{{"mkdir /tmp/a", 11}}));
  EXPECT_EQ(test.check, (KernelTest::Entry{"test -d /tmp/a", 12}));
  ASSERT_EQ(test.flows.size(), 4u);
  EXPECT_EQ(test.flows[0].name, "writer");
  ASSERT_EQ(test.flows[0].calls.sources.size(), 2u);
  EXPECT_EQ(test.flows[0].calls.sources[1], (CallProgram::Source{"close(fd)", 19}));
  EXPECT_EQ(test.flows[1].name, "flow 1");
  EXPECT_EQ(test.flows[1].calls.sources.at(0).line, 22);
  EXPECT_EQ(test.flows[2].kind, KernelTest::Flow::Kind::Program);
  EXPECT_EQ(test.flows[2].path, "dir/bin/mine");
  EXPECT_EQ(test.flows[3].kind, KernelTest::Flow::Kind::Source);
  EXPECT_EQ(test.flows[3].path, "dir/mine.c");
  EXPECT_TRUE(test.expect.given);
  EXPECT_EQ(test.expect.kinds, std::vector<std::string>{"crash"});
  EXPECT_EQ(test.expect.titles, std::vector<std::string>{"BUG in f"});
  EXPECT_EQ(test.limits.preparation, 7u);
  EXPECT_EQ(test.limits.execution, 8u);
  EXPECT_EQ(test.limits.check, 9u);
}

TEST(KernelTestFile, Defaults) {
  const KernelTest test = parsed(kFlow);
  EXPECT_EQ(test.name, "x");
  EXPECT_EQ(test.kernel, "debian:6.1");
  EXPECT_EQ(test.cpus, 2u);
  EXPECT_EQ(test.memory, uint64_t{256} << 20);
  EXPECT_FALSE(test.expect.given);
  EXPECT_EQ(parsed(kFlow + kFlow + kFlow).cpus, 3u);
}

TEST(KernelTestFile, TheTemplateIsATest) {
  const std::string text = kernel_test_template("mine");
  const KernelTest test = parsed(text);
  EXPECT_EQ(test.name, "mine");
  EXPECT_EQ(test.flows.size(), 2u);
  EXPECT_EQ(text.find("{name}"), std::string::npos);
  EXPECT_TRUE(looks_like_kernel_test(text));
  EXPECT_FALSE(looks_like_kernel_test("[[thread]]\nname = \"a\"\ncode = \"\"\n"));
}

TEST(KernelTestFile, MistakesAreNamedWithTheirLine) {
  EXPECT_EQ(refused("name = \"a\"\nkernel = debian\n" + kFlow).find("dir/x.toml:2:"), 0u);
  EXPECT_EQ(refused("name = \"a\""),
            "dir/x.toml: the test has no flows: write two or more [[flow]] with calls = \"...\"");
  EXPECT_EQ(refused("\nkernl = \"x\"\n" + kFlow),
            "dir/x.toml:2: unknown key `kernl` in a kernel test; it may have: name, about, kernel, "
            "debug_info, module_directory, cpus, memory, "
            "append, modules, files, setup, check, scope, scheduler, contexts, detectors, prepare, flow, "
            "process, expect, limits");
  EXPECT_EQ(refused("cpus = 9\n" + kFlow), "dir/x.toml:1: `cpus` must be a number from 1 to 8");
  EXPECT_EQ(refused("cpus = 1\n" + kFlow + kFlow), "dir/x.toml:1: `cpus` must be a number from 2 to 8");
  EXPECT_EQ(refused("memory = \"8G\"\n" + kFlow),
            "dir/x.toml:1: `memory` must be \"64M\" to \"4G\", not \"8G\"");
  EXPECT_EQ(refused("setup = [\"a\",\n 3]\n" + kFlow),
            "dir/x.toml:2: `setup` must be a list of texts in quotes");
  EXPECT_EQ(refused("files = [\"a\"]\n" + kFlow),
            "dir/x.toml:1: a file is given as \"HOST:GUEST\", not \"a\"");
  EXPECT_EQ(refused("[flow]\ncalls = 'getpid()'\n"),
            "dir/x.toml:1: `flow` must be a list of tables: write [[flow]]");
  EXPECT_EQ(refused("[[flow]]\nname = \"a\"\n"),
            "dir/x.toml:1: a flow is one of: calls = '''...''', program = \"FILE\" or source = \"FILE.c\"");
  EXPECT_EQ(refused(kFlow + "[[flow]]\ncalls = '''\ngetpid()\n  opne(\"/a\")\n'''\n"),
            "dir/x.toml:6:3: unknown system call `opne` (did you mean open?)");
  EXPECT_EQ(refused(kFlow + "[expect]\nverdict = \"x\"\n"),
            "dir/x.toml:4: unknown key `verdict` in [expect]; it may have: kinds, titles");
  EXPECT_EQ(refused(kFlow + "[limits]\nexecution = 0\n"),
            "dir/x.toml:4: `execution` must be a number from 1 to 1000000000000");
  std::string nine;
  for (int i = 0; i < 9; ++i) nine += kFlow;
  EXPECT_EQ(refused(nine), "dir/x.toml:1: the test has 9 flows; at most 8 can run, a CPU each");
}

TEST(KernelTestFile, AKernelIsAFileBesideTheTestOrHasAName) {
  EXPECT_EQ(parsed("kernel = \"mine\"\n" + kFlow).kernel, "dir/mine");
  EXPECT_EQ(parsed("kernel = \"../a:b\"\n" + kFlow).kernel, "dir/../a:b");
  EXPECT_EQ(parsed("kernel = \"/mine\"\n" + kFlow).kernel, "/mine");
  EXPECT_EQ(parsed("kernel = \"debian:sid\"\n" + kFlow).kernel, "debian:sid");
}

TEST(TestPlan, SaysWhatTheAgentDoes) {
  KernelTest test =
      parsed("kernel = \"mine\"\nmodules = [\"crc-ccitt\"]\nsetup = [\"a b\", \"c\"]\ncheck = \"d\"\n" +
             kFlow + kFlow);
  const Result<TestPlan> plan = plan_of(test);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->text, std::string("Lcrc_ccitt\0Sa b\0Sc\0F\0F\0Cd\0", 26));
  ASSERT_EQ(plan->parts.size(), 6u);
  const auto part = [&](size_t i) { return plan->parts[i].where + ": " + plan->parts[i].what; };
  EXPECT_EQ(part(2), "dir/x.toml:3: set-up command `c`");
  EXPECT_EQ(part(4), "dir/x.toml:7: flow 1");
  EXPECT_EQ(part(5), "dir/x.toml:4: the check `d`");
  EXPECT_EQ(plan->boot.modules, std::vector<std::string>{"crc-ccitt"});
}

// A kernel of the user's own with modules, and files of modules beside the test.
class PlanOfModules : public testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("vmlinux", make_vmlinux());  // release 9.9.9
    scratch_.write("modules.order", {});
    scratch_.write("kernel/base.ko", make_module({"depends="}));
    scratch_.write("modules.builtin", text_bytes("kernel/inside.ko\n"));
    scratch_.write("first.ko", make_module({"name=first", "depends=base,inside", "parmtype=size:int"}));
    scratch_.write("second.ko", make_module({"name=second", "depends=first"}));
    scratch_.write("other.ko", make_module({"name=other", "vermagic=9.8 SMP"}));
  }
  Result<TestPlan> plan(const std::string& modules) {
    const Result<KernelTest> test = parse_kernel_test(
        "kernel = \"vmlinux\"\nmodules = [" + modules + "]\n" + kFlow, (scratch_.path() / "x.toml").string());
    if (!test.ok()) return test.error();
    return plan_of(*test);
  }
  std::string text(const std::string& modules) {
    const Result<TestPlan> made = plan(modules);
    if (!made.ok()) return made.error().message;
    std::string text = made->text;
    std::ranges::replace(text, '\0', '|');
    return text;
  }
  ScratchDirectory scratch_;
};

TEST_F(PlanOfModules, NamesHaveParametersAndBuiltInOnesNeedNoLoading) {
  EXPECT_EQ(text("\"base size=1\", \"inside\""), "Lbase|F|");
  EXPECT_EQ(plan("\"base size=1\", \"inside level=2\"")->boot.modules,
            (std::vector<std::string>{"base size=1", "inside level=2"}));
}

TEST_F(PlanOfModules, FilesComeAfterWhatTheyNeed) {
  EXPECT_EQ(text("\"second.ko\", \"first.ko size=3\""),
            "M/lib/slalom/modules/0/first.ko size=3|M/lib/slalom/modules/1/second.ko|F|");
  EXPECT_EQ(plan("\"second.ko\", \"first.ko\"")->boot.modules, (std::vector<std::string>{"base", "inside"}));
}

TEST_F(PlanOfModules, WhatCannotWorkIsNamedWithItsLine) {
  EXPECT_EQ(text("\"other.ko\""),
            (scratch_.path() / "x.toml").string() +
                ":2: the module other was built for Linux 9.8, and this kernel is 9.9.9: build it "
                "for this kernel");
  EXPECT_NE(text("\"first.ko sice=3\"").find(":2: the module first has no parameter \"sice\"; it has size"),
            std::string::npos);
}

TEST_F(PlanOfModules, TheirDirectoryCanBeGiven) {
  scratch_.write("elsewhere/kernel/far.ko", make_module({"depends="}));
  const auto test = [&](const std::string& directory) {
    return parse_kernel_test(
        "kernel = \"vmlinux\"\nmodule_directory = \"" + directory + "\"\nmodules = \"far\"\n" + kFlow,
        (scratch_.path() / "x.toml").string());
  };
  EXPECT_EQ(plan_of(*test("elsewhere"))->boot.module_directory, scratch_.path() / "elsewhere");
  const Result<TestPlan> none = plan_of(*test("nowhere"));
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("x.toml:2: there are no modules in "), std::string::npos);
}

TEST(KernelTestFile, ContradictionsAreNamed) {
  EXPECT_EQ(
      refused("module_directory = \"m\"\n" + kFlow),
      "dir/x.toml:1: `module_directory` is for a kernel of your own, and debian:6.1 comes with its modules");
  EXPECT_EQ(refused("scope = \"module:a\"\nscheduler = true\n" + kFlow),
            "dir/x.toml:2: `scheduler` has no effect with `scope`, whose functions it could not add to: "
            "leave out one");
  EXPECT_NE(refused("kernel = \"debian:7.1\"\n" + kFlow).find("dir/x.toml:1: there is no kernel called"),
            std::string::npos);
  EXPECT_NE(
      refused("kernel = \"debian:6.1:x\"\n" + kFlow).find("dir/x.toml:1: \"debian:6.1:x\": Debian has no"),
      std::string::npos);
}

TEST(KernelTestFile, AnotherKernelTakesNothingOverFromTheFiles) {
  const std::string text = "kernel = \"debian:6.1\"\ndebug_info = \"v\"\n" + kFlow;
  KernelTest test = parsed(text);
  use_kernel(test, "debian:6.1=6.1.5-1", "");
  EXPECT_EQ(test.kernel, "debian:6.1=6.1.5-1");
  EXPECT_EQ(test.debug_info.text, "v");
  use_kernel(test, "/my/vmlinux", "/my/modules");
  EXPECT_EQ(test.kernel, "/my/vmlinux");
  EXPECT_EQ(test.debug_info.text, "");
  EXPECT_EQ(test.module_directory.text, "/my/modules");
  test = parsed(text);
  use_kernel(test, "", "");
  EXPECT_EQ(test.kernel, "debian:6.1");
  EXPECT_EQ(parsed("detectors = [\"kernel-leak\"]\n" + kFlow).detectors,
            (std::vector<KernelTest::Entry>{{"kernel-leak", 1}}));
}

TEST(TestPlan, WhatIsMissingIsNamed) {
  const auto refused_plan = [](const std::string& text) {
    const Result<TestPlan> plan = plan_of(parsed(text));
    return plan.ok() ? "nothing" : plan.error().message;
  };
  EXPECT_EQ(refused_plan("[[flow]]\nprogram = \"none\"\n"),
            "dir/x.toml:1: there is no file dir/none; paths are relative to the test's file");
  EXPECT_EQ(refused_plan("files = [\"no:/a\"]\n" + kFlow),
            "dir/x.toml:1: there is no file dir/no; paths are relative to the test's file");
  EXPECT_EQ(refused_plan("kernel = \"mine\"\nmodules = [\"none.ko\"]\n" + kFlow),
            "dir/x.toml:2: there is no module dir/none.ko: build it first (for slalom's examples: "
            "scripts/build-modules dir/mine)");
}

}  // namespace
}  // namespace slalom::vm
