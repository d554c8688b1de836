// Kernel tests on real kernels: preparing one, running its flows by natural turns, and what goes wrong.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "inputs/image.h"
#include "inputs/system_calls.h"
#include "vm/boot/kernel_cache.h"
#include "vm/test/hypercall.h"
#include "vm/test/kernel_test.h"
#include "vm/test/prepare.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kMillion = 1'000'000;

// Gives flows their programs and takes their results.
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
  // What the calls wrote: the pipe's descriptors, the text that went through it, the file's, the address.
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

INSTANTIATE_TEST_SUITE_P(Kernels, KernelTests, testing::Values("debian:6.1", "debian:6.12", "debian:5.10"),
                         [](const auto& info) {
                           std::string name = info.param + 7;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace slalom::vm
