// LinuxModel on real kernels: locks alternate, read sections nest, and memory is allocated before it is
// freed. The functions that it reports as missing are those that the kernel has inlined. Programs start and
// end in the watched stretch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernel_store/kernel_cache.h"
#include "vm/boot/boot.h"
#include "vm/guests/linux/linux_model.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kMillion = 1'000'000;

// Formats and counts all events.
class Judge : public GuestSink {
 public:
  void on_guest_accesses(const Cpu&, std::span<const Access>, uint64_t, const GuestTask&) override {}
  void on_guest_event(const Cpu& cpu, const GuestEvent& guest) override {
    const Event& event = guest.event;
    ++count[event.op];
    ++functions[std::string(guest.function)];
    const uint64_t object = event.object.raw;
    switch (event.op) {
      case OpKind::Lock:
      case OpKind::TryLock:
      case OpKind::WriteLock:
        if (held[object]++ > 0) wrong("locked twice", guest);
        if (readers[object] > 0) wrong("written while it is read", guest);
        break;
      case OpKind::Unlock:
      case OpKind::WriteUnlock:
        // A lock that was taken before the watch began is unlocked once.
        if (known.contains(object) && held[object] <= 0) wrong("unlocked twice", guest);
        held[object] = 0;
        break;
      case OpKind::ReadLock:
        ++readers[object];
        break;
      case OpKind::ReadUnlock:
        if (readers[object] > 0)
          --readers[object];
        else
          ++unlocked_from_before;
        break;
      case OpKind::Alloc:
        if (live.contains(object)) wrong("allocated twice", guest);
        live[object] = event.value;
        if (guest.function == "__kmalloc" && static_cast<uint64_t>(event.value) != guest.arguments[0])
          wrong("another size", guest);
        sizes[std::string(event.text)].insert(event.value);
        break;
      case OpKind::Free:
        if (const auto found = live.find(object); found != live.end()) {
          if (event.value != found->second) wrong("freed with another size", guest);
          live.erase(found);
          ++paired;
        } else if (freed.contains(object)) {
          wrong("freed twice", guest);
        }
        break;
      case OpKind::ThreadSwitch:
        // Compare with the kernel's own names of its idle tasks.
        if (event.value == 0 && guest.task.comm != fmt::format("swapper/{}", cpu.id) &&
            guest.task.comm != "swapper")
          wrong("idle", guest);
        comms.insert(guest.task.comm);
        break;
      default:
        break;
    }
    known.insert(object);
    if (event.op == OpKind::Free)
      freed.insert(object);
    else if (event.op == OpKind::Alloc)
      freed.erase(object);
  }
  void wrong(const char* what, const GuestEvent& event) {
    ++errors;
    if (messages.size() < 10)
      messages.push_back(fmt::format("{}: {} {:#x} at {:#x}, step {}, {}", what, event.function,
                                     event.event.object.raw, event.event.pc.raw, event.event.step.raw,
                                     event.task.text()));
  }
  uint64_t of(OpKind kind) const {
    const auto found = count.find(kind);
    return found == count.end() ? 0 : found->second;
  }
  int64_t still_held() const {
    int64_t sum = 0;
    for (const auto& [lock, holders] : held) sum += holders;
    for (const auto& [lock, holders] : readers) sum += holders;
    return sum;
  }

  std::map<OpKind, uint64_t> count;
  std::map<std::string, uint64_t> functions;
  std::map<uint64_t, int64_t> held, readers, live;
  std::set<uint64_t> known, freed;
  std::set<std::string> comms;
  std::map<std::string, std::set<int64_t>> sizes;
  std::vector<std::string> messages;
  uint64_t errors = 0, unlocked_from_before = 0, paired = 0;
};

bool fetched(std::string_view kernel) {
  const Result<KernelCache> cache = KernelCache::open();
  return cache.ok() && cache->has(kernel);
}

// Programs start, allocate and end. Then the machine switches off.
constexpr const char* kWork =
    "echo begin; for i in 1 2 3; do ls /proc > /tmp/list; cat /tmp/list | wc -l; done; mkdir /tmp/d; rm -r "
    "/tmp/d";

// Counts the calls of functions independently of the model: from the call records in the batches.
class CallCounter : public TapSink {
 public:
  explicit CallCounter(TapSink& next) : next_(next) {}
  void on_batch(const Cpu& cpu, std::span<const Access> accesses, uint64_t first_step) override {
    for (const Access& access : accesses)
      if (access.op() == OpKind::Call) ++calls[access.address().raw];
    next_.on_batch(cpu, accesses, first_step);
  }
  void on_event(const Cpu& cpu, const CpuEvent& event, uint64_t step) override {
    next_.on_event(cpu, event, step);
  }
  std::map<uint64_t, uint64_t> calls;

 private:
  TapSink& next_;
};

struct Watched {
  Judge judge;
  std::vector<std::string> missing;
  std::map<std::string, uint64_t> calls;
};

// Watches from the first line that a program prints to the end of the machine.
void watch(const std::string& name, Watched& watched) {
  Result<Booted> machine = boot({.kernel = name, .run = kWork, .pc = {.cpus = 2}});
  ASSERT_TRUE(machine.ok()) << machine.error().message;
  Pc& pc = *machine->pc;
  std::string console;
  while (console.find("begin") == std::string::npos) {
    ASSERT_EQ(pc.run(20'000), PcStop::Budget) << console;
    console += pc.devices().take_console_output();
  }
  const Result<GuestKernel> kernel = load_guest_kernel(name);
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  const GuestModelOptions options{
      .locks = true, .memory = true, .tasks = true, .panics = true, .backtraces = true};
  LinuxModel model(*kernel, options, watched.judge);
  ASSERT_TRUE(model.knows_tasks());
  watched.missing = model.missing();
  CallCounter counter(model);
  Tap tap(counter, model.filter());
  model.watch(tap);
  pc.attach(&tap);
  PcStop stop = PcStop::Budget;
  for (int i = 0; i < 300 && stop == PcStop::Budget; ++i) stop = pc.run(kMillion);
  pc.attach(nullptr);
  EXPECT_EQ(stop, PcStop::PowerOff);
  for (const auto& [entry, calls] : counter.calls)
    if (const Symbol* symbol = kernel->symbols.at(entry); symbol != nullptr && symbol->address == entry)
      watched.calls[symbol->name] += calls;
}

std::string all(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

bool has(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

void check_memory(const Judge& judge) {
  EXPECT_GT(judge.of(OpKind::Alloc), 1000u);
  EXPECT_GT(judge.paired, judge.of(OpKind::Alloc) / 2);
  // Objects of one cache have the same size.
  for (const char* cache : {"filp", "dentry", "task_struct"}) {
    ASSERT_TRUE(judge.sizes.contains(cache)) << cache;
    EXPECT_EQ(judge.sizes.at(cache).size(), 1u) << cache;
  }
  for (const auto& [cache, sizes] : judge.sizes)
    if (cache.starts_with("kmalloc-") && cache.find('k', 8) == std::string::npos) {
      EXPECT_LE(*sizes.rbegin(), std::stoll(cache.substr(cache.find_last_of('-') + 1))) << cache;
    }
}

class Kernels : public testing::TestWithParam<const char*> {};

TEST_P(Kernels, LocksAlternateAndMemoryPairsUp) {
  if (!fetched(GetParam()))
    GTEST_SKIP() << GetParam() << " is not in the cache: scripts/fetch-kernel fetches it";
  Watched watched;
  ASSERT_NO_FATAL_FAILURE(watch(GetParam(), watched));
  Judge& judge = watched.judge;
  EXPECT_EQ(judge.errors, 0u) << all(judge.messages);
  EXPECT_FALSE(has(watched.missing, "spin_unlock"));
  EXPECT_FALSE(has(watched.missing, "rcu_read_lock"));
  EXPECT_TRUE(has(watched.missing, "seqlock"));
  EXPECT_GT(judge.of(OpKind::Lock), 5'000u);
  EXPECT_GT(judge.of(OpKind::ReadLock), 1000u);
  // Every call is seen, and in addition a few jumps.
  for (const char* function :
       {"_raw_spin_lock", "_raw_spin_unlock", "mutex_lock", "mutex_unlock", "down_read", "up_read",
        "__rcu_read_lock", "__rcu_read_unlock", "kmem_cache_free"}) {
    const uint64_t calls = watched.calls[function], seen = watched.judge.functions[function];
    EXPECT_GT(calls, 100u) << function;
    EXPECT_GE(seen + 2, calls) << function;
  }
  EXPECT_LE(judge.still_held(), 3);
  EXPECT_LE(judge.unlocked_from_before, 8u);
  for (const char* comm : {"ls", "cat", "wc", "mkdir", "rm"}) EXPECT_TRUE(judge.comms.contains(comm)) << comm;
  check_memory(judge);
}

INSTANTIATE_TEST_SUITE_P(Linux, Kernels, testing::Values("debian:6.1", "debian:6.12"));

// It has inlined half of its lock functions. The model reports them as missing, and reports the other locks
// correctly.
TEST(OldKernel, SaysWhatItCannotSee) {
  if (!fetched("debian:5.10"))
    GTEST_SKIP() << "debian:5.10 is not in the cache: scripts/fetch-kernel fetches it";
  Watched watched;
  ASSERT_NO_FATAL_FAILURE(watch("debian:5.10", watched));
  for (const char* group :
       {"spin_unlock", "spin_unlock_irq", "read_unlock", "rcu_read_lock", "rcu_read_unlock"})
    EXPECT_TRUE(has(watched.missing, group)) << group;
  for (const char* group :
       {"spin_lock", "spin_unlock_irqrestore", "mutex_lock", "mutex_unlock", "kmalloc", "kfree"})
    EXPECT_FALSE(has(watched.missing, group)) << group;
  EXPECT_GT(watched.judge.errors, 1000u) << "without unlocks, every second lock is one too many";
  check_memory(watched.judge);
}

}  // namespace
}  // namespace slalom::vm
