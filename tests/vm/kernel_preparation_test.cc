// Kernel tests on real kernels: preparing a test, running its flows with natural turns, and failures.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "inputs/image.h"
#include "inputs/system_calls.h"
#include "kernel_store/kernel_cache.h"
#include "vm/control/hypercall.h"
#include "vm/scenario/kernel_test.h"
#include "vm/scenario/prepare.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kMillion = 1'000'000;

// Gives the flows their programs and receives their results.
class Flows final : public Hypercalls {
 public:
  Flows(PreparedTest& test, bool has_check) : test_(test), has_check_(has_check) {
    results.resize(test.images.size());
    done.resize(test.images.size());
    test.machine.pc->set_hypercalls(this);
  }
  ~Flows() override { test_.machine.pc->set_hypercalls(nullptr); }

  bool on_hypercall(Cpu& cpu) override {
    const Hypercall call = hypercall_of(cpu);
    switch (call.number) {
      case SLALOM_PRESENT:
        answer(cpu, SLALOM_VERSION);
        return true;
      case SLALOM_PROGRAM:
        EXPECT_LT(call.a, test_.images.size());
        give_bytes(cpu, test_.images.at(call.a), call.b, call.c);
        return true;
      case SLALOM_DONE:
        EXPECT_EQ(call.a, cpu.id);
        if (const auto bytes = read_buffer(cpu, call.b, call.c, kMaxImage)) results.at(call.a) = *bytes;
        done.at(call.a) = true;
        answer(cpu, has_check_ ? 0 : 1);
        return has_check_ || std::find(done.begin(), done.end(), false) != done.end();
      case SLALOM_CHECKED:
        checked = static_cast<int64_t>(call.a);
        return false;
      case SLALOM_FAIL:
        failure = read_text(cpu, call.a, call.b);
        return false;
      default:
        return true;
    }
  }

  std::vector<std::vector<uint8_t>> results;
  std::vector<bool> done;
  std::optional<int64_t> checked;
  std::string failure;

 private:
  PreparedTest& test_;
  bool has_check_;
};

class KernelTests : public testing::TestWithParam<const char*> {
 protected:
  static bool has(const std::string& kernel) {
    const Result<KernelCache> cache = KernelCache::open();
    return cache.ok() && cache->has(kernel);
  }
  void SetUp() override {
    if (!has(GetParam()))
      GTEST_SKIP() << GetParam() << " is not in the cache: scripts/fetch-kernel fetches it";
  }
  static KernelTest parsed(const std::string& text) {
    Result<KernelTest> test = parse_kernel_test(text, "x.toml");
    CHECK(test.ok(), "{}", test.ok() ? "" : test.error().message);
    test->kernel = GetParam();
    return *std::move(test);
  }
  static PreparedTest prepared(const KernelTest& test, const PrepareOptions& options = {}) {
    Result<PreparedTest> result = prepare(test, options);
    CHECK(result.ok(), "{}", result.ok() ? "" : result.error().message);
    return *std::move(result);
  }
};

TEST_P(KernelTests, FlowsReportWhatTheKernelGaveThem) {
  const KernelTest test = parsed(R"toml(
setup = ["mkdir /tmp/there", "echo -n hello > /tmp/there/file"]
[[flow]]
calls = '''
me = getpid()
pipe2(&p, O_NONBLOCK)
write(p[1], "abc", 3)
n = read(p[0], &got, 16)
read(p[0], &got, 16)
write(99, "x", 1)
'''
[[flow]]
calls = '''
fd = open("/tmp/there/file", O_RDONLY)
pread64(fd, &b(8), 8, 1)
open("/tmp/nowhere", O_RDONLY)
s = socket(AF_INET, SOCK_STREAM, 0)
bind(s, {u16 AF_INET, u16be 8080, u32be 0x7f000001, zero(8)}, 16)
getsockname(s, &name(16), {u32 16})
e = epoll_create1(0)
epoll_ctl(e, EPOLL_CTL_ADD, s, {u32 EPOLLIN, i32 s, u32 0})
close(fd)
close(fd)
'''
)toml");
  PreparedTest ready = prepared(test);
  Flows flows(ready, false);
  ASSERT_EQ(ready.machine.pc->run(50 * kMillion), PcStop::Hypercall) << flows.failure;
  const Result<CallResults> first = decode_results(test.flows[0].calls, flows.results[0]);
  const Result<CallResults> second = decode_results(test.flows[1].calls, flows.results[1]);
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_EQ(first->values.size(), 6u);
  EXPECT_GT(first->values[0], 1);
  EXPECT_EQ(std::vector(first->values.begin() + 1, first->values.end()),
            (std::vector<int64_t>{0, 3, 3, -EAGAIN, -EBADF}));
  EXPECT_EQ(second->values, (std::vector<int64_t>{3, 4, -ENOENT, 4, 0, 0, 5, 0, 0, -EBADF}));
  // The data that the calls wrote: the pipe's descriptors, the text that went through it, the file's text,
  // the address.
  const auto text_of = [](const CallProgram& program, const CallResults& results, size_t object,
                          size_t size) {
    const DataObject& place = program.objects.at(object);
    return std::string(results.data.begin() + place.offset, results.data.begin() + place.offset + size);
  };
  EXPECT_EQ(text_of(test.flows[0].calls, *first, 0, 8), std::string("\3\0\0\0\4\0\0\0", 8));
  EXPECT_EQ(text_of(test.flows[0].calls, *first, 2, 4), std::string("abc\0", 4));
  EXPECT_EQ(text_of(test.flows[1].calls, *second, 1, 5), std::string("ello\0", 5));
  EXPECT_EQ(text_of(test.flows[1].calls, *second, 4, 8), std::string("\2\0\x1f\x90\x7f\0\0\1", 8));
}

TEST_P(KernelTests, TheCheckRunsAfterTheFlows) {
  const std::string flows = R"toml(
[[flow]]
calls = "mkdir(\"/tmp/one\", 0755)"
[[flow]]
calls = "mkdir(\"/tmp/two\", 0755)"
)toml";
  for (const auto& [check, status] : {std::pair("test -d /tmp/one -a -d /tmp/two", 0), {"exit 7", 7}}) {
    PreparedTest ready = prepared(parsed(fmt::format("check = \"{}\"\n{}", check, flows)));
    Flows watch(ready, true);
    ASSERT_EQ(ready.machine.pc->run(500 * kMillion), PcStop::Hypercall);
    EXPECT_EQ(watch.failure, "");
    EXPECT_EQ(watch.checked, status);
  }
}

TEST_P(KernelTests, TheThreadsOfTheKernelAreListed) {
  const PreparedTest ready =
      prepared(parsed("cpus = 3\n[[flow]]\ncalls = \"getpid()\"\n[[flow]]\ncalls = \"getpid()\"\n"));
  const auto find = [&](const std::string& name) -> const KernelThread* {
    for (const KernelThread& thread : ready.threads)
      if (thread.name == name) return &thread;
    return nullptr;
  };
  ASSERT_NE(find("ksoftirqd/1"), nullptr);
  EXPECT_EQ(*find("ksoftirqd/1"), (KernelThread{"ksoftirqd/1", 1, KernelThread::Where::Bound}));
  ASSERT_NE(find("kswapd0"), nullptr);
  EXPECT_EQ(*find("kswapd0"), (KernelThread{"kswapd0", 2, KernelThread::Where::Pinned}));
}

// Failures, on one kernel.
class Preparation : public KernelTests {
 protected:
  void SetUp() override {
    KernelTests::SetUp();
    std::string path = testing::TempDir() + "slalom-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    directory_ = path;
  }
  void TearDown() override {
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }
  void write(const std::string& name, const std::string& text) {
    const Result<void> written = write_file(directory_ / name, text);
    ASSERT_TRUE(written.ok());
  }
  Result<PreparedTest> prepare_text(const std::string& text,
                                    const PrepareOptions& options = {.use_cache = false}) {
    TRY_ASSIGN(KernelTest test, parse_kernel_test(text, (directory_ / "x.toml").string()));
    test.limits.preparation = 600 * kMillion;
    return prepare(test, options);
  }
  // Returns the message of a test that cannot start, without the directory and the console output.
  std::string refused(const std::string& text) {
    const Result<PreparedTest> result = prepare_text(text);
    if (result.ok()) return "nothing";
    console_ = result.error().message;
    std::string line = console_.substr(0, console_.find('\n'));
    const std::string prefix = directory_.string() + "/";
    if (line.starts_with(prefix)) line.erase(0, prefix.size());
    return line;
  }
  std::filesystem::path directory_;
  std::string console_;
};

const std::string kTwo = "[[flow]]\ncalls = 'getpid()'\n[[flow]]\ncalls = 'getpid()'\n";

TEST_P(Preparation, ASetUpCommandFails) {
  EXPECT_EQ(refused("setup = [\"true\",\n\"echo about to fail; exit 3\"]\n" + kTwo),
            "x.toml:2: set-up command `echo about to fail; exit 3` ended with status 3");
  EXPECT_NE(console_.find("\n    about to fail"), std::string::npos) << console_;
}

TEST_P(Preparation, TheKernelPanics) {
  EXPECT_EQ(refused("kernel = \"debian:6.1\"\nsetup = \"echo c > /proc/sysrq-trigger\"\n" + kTwo),
            "x.toml:1: the kernel debian:6.1 has panicked before the test could begin");
  EXPECT_NE(console_.find("Kernel panic - not syncing: sysrq triggered crash"), std::string::npos)
      << console_;
}

TEST_P(Preparation, AModuleIsNoModule) {
  write("bad.ko", "not a module");
  EXPECT_EQ(refused("modules = [\"bad.ko\"]\n" + kTwo),
            "x.toml:1: module bad.ko: the kernel does not load the module: Exec format error");
}

TEST_P(Preparation, AFlowNeverGetsReady) {
  write("sleeps.c", "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n");
  EXPECT_EQ(refused("[[flow]]\ncalls = 'getpid()'\n[[flow]]\nname = \"sleeper\"\nsource = \"sleeps.c\"\n"),
            "x.toml:3: sleeper never got ready");
}

TEST_P(Preparation, AFlowCrashesFirst) {
  write("aborts.c", "#include <stdlib.h>\nint main(void) { abort(); }\n");
  EXPECT_EQ(refused("[[flow]]\nsource = \"aborts.c\"\n"), "x.toml:1: flow 0 was ended by signal 6 (Aborted)");
  write("wrong.c", "int main(void) { return undeclared; }\n");
  EXPECT_EQ(refused("[[flow]]\nsource = \"wrong.c\"\n"),
            "x.toml:1: " + (directory_ / "wrong.c").string() + " does not compile:");
}

TEST_P(Preparation, ProgramsAreFlows) {
  write("counts.c",
        "#include <stdlib.h>\n#include <unistd.h>\n#include \"slalom.h\"\n"
        "int main(int count, char** arguments) {\n"
        "  const long flow = atol(arguments[1]);\n"
        "  long results[2] = {count, 0};\n"
        "  slalom_begin(flow);\n"
        "  results[1] = getppid();\n"
        "  slalom_done(flow, results, sizeof results);\n"
        "  return 0;\n}\n");
  Result<PreparedTest> ready =
      prepare_text("[[flow]]\ncalls = 'getppid()'\n[[flow]]\nsource = \"counts.c\"\n");
  ASSERT_TRUE(ready.ok()) << ready.error().message;
  EXPECT_TRUE(ready->images[1].empty());
  Flows flows(*ready, false);
  ASSERT_EQ(ready->machine.pc->run(50 * kMillion), PcStop::Hypercall) << flows.failure;
  ASSERT_EQ(flows.results[1].size(), 16u);
  EXPECT_EQ(flows.results[1][0], 2);
  EXPECT_EQ(flows.results[1][8], 1);  // the agent is the first process
  EXPECT_EQ(flows.results[0][0], 1);
}

TEST_P(Preparation, MachinesAreKeptAndMadeAgainWhenDamaged) {
  // A private cache that contains the kernels of the usual one.
  const char* before = std::getenv("SLALOM_CACHE");
  const std::string own = before != nullptr ? before : "";
  const Result<std::filesystem::path> usual = cache_directory();
  ASSERT_TRUE(usual.ok());
  std::filesystem::create_directory_symlink(*usual / "kernels", directory_ / "kernels");
  ASSERT_EQ(::setenv("SLALOM_CACHE", directory_.c_str(), 1), 0);
  const auto at_start = [&](const std::string& text, bool from_cache) {
    Result<PreparedTest> ready = prepare_text(text, {});
    CHECK(ready.ok(), "{}", ready.ok() ? "" : ready.error().message);
    EXPECT_EQ(ready->from_cache, from_cache);
    EXPECT_GT(ready->threads.size(), 10u);
    return std::pair(ready->machine.pc->state_hash(), ready->content);
  };
  const auto first = at_start(kTwo, false);
  EXPECT_EQ(at_start(kTwo, true), first);
  // Other calls use the same machine.
  EXPECT_EQ(at_start("[[flow]]\ncalls = 'getppid()'\n[[flow]]\ncalls = 'sync()'\n", true), first);
  const std::filesystem::path file = directory_ / "snapshots" / (first.second + ".machine");
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  EXPECT_EQ(at_start(kTwo, false), first);
  EXPECT_EQ(at_start(kTwo, true), first);
  ASSERT_EQ(own.empty() ? ::unsetenv("SLALOM_CACHE") : ::setenv("SLALOM_CACHE", own.c_str(), 1), 0);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Preparation, testing::Values("debian:6.1"),
                         [](const auto&) { return "6_1"; });

INSTANTIATE_TEST_SUITE_P(Kernels, KernelTests, testing::Values("debian:6.1", "debian:6.12", "debian:5.10"),
                         [](const auto& info) {
                           std::string name = info.param + 7;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace slalom::vm
