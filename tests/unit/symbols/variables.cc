// Variables, their members and elements, and the types at allocations, of small programs that are compiled
// here in all the usual ways: against the addresses that the running program prints for what its source calls
// them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "base/file.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/dwarf/stacks.h"
#include "symbols/elf_symbols.h"
#include "unit/base/temporary_directory.h"

namespace slalom {
namespace {

// SHOW prints what the part of an object should be called; AS does when its source calls it something else.
constexpr const char* kCProgram = R"(#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#define AS(name, object) printf("%s %p\n", name, (void *)&(object))
#define SHOW(object) AS(#object, object)
#define BYTE(object, offset) printf("%s+%d %p\n", #object, offset, (void *)((char *)&(object) + (offset)))
typedef struct { int x, y; } point;
struct link { struct link *next; };
struct queue {
  struct link links;
  pthread_mutex_t lock;
  int count, slots[4];
  point corners[2][3];
  _Atomic int users;
  union { int number; float fraction; };
  union { long whole; char bytes[8]; } either;
  struct { int inner; };
  unsigned first : 3, second : 3;
  sem_t *ready;
};
struct queue q, *heap;
static struct queue all[3];
const volatile int plain = 3;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void *run(void *passed) {
  struct queue of_thread, *mine = passed;
  AS("pointer mine", *mine);
  AS("of_thread.slots[3] in run", of_thread.slots[3]);
  pthread_mutex_init(&of_thread.lock, 0);
  AS("of_thread.lock in run", of_thread.lock);
  fflush(stdout);
  pause();
  SHOW(of_thread.lock);
  SHOW(mine->count);
  return passed;
}
static inline __attribute__((always_inline)) void inlined(int start) {
  int values[5] = {start};
  AS("values[2] in inlined", values[2]);
  fflush(stdout);
  pause();
  SHOW(values[2]);
}
int main() {
  static int calls;
  struct { point at; int *heads[3]; } local;
  SHOW(q.links.next); SHOW(q.lock); SHOW(q.count); SHOW(q.slots[3]); SHOW(q.corners[1][2].y); SHOW(q.users);
  AS("q.either", q.either); SHOW(q.inner); SHOW(q.ready); SHOW(all[2].count); SHOW(plain); SHOW(changed);
  BYTE(q.count, 1); SHOW(calls);
  printf("q+%d %p\n", (int)__builtin_offsetof(struct queue, number), (void *)&q.number);
  printf("q.either+2 %p\n", (void *)((char *)&q.either + 2));
  printf("q.lock %p\n", (void *)((char *)&q.lock + 8));
  printf("main() %p\n", (void *)main);
  AS("local.at.y in main", local.at.y); AS("local.heads[1] in main", local.heads[1]);
  pthread_t thread;
  AS("thread in main", thread);
  pthread_create(&thread, 0, run, &q);
  usleep(1000);
  inlined(getpid());
  SHOW(local.at.y);
  return calls;
}
)";

constexpr const char* kCppProgram = R"(#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>
#include <unistd.h>
#define AS(name, object) printf("%s %p\n", name, (const void *)&(object))
#define SHOW(object) AS(#object, object)
namespace app {
struct Empty {};
struct Base { virtual ~Base() = default; int in_base = 0; };
template <typename T> struct Queue : Empty, Base {
  std::mutex lock;
  std::atomic<int> counter{0};
  std::vector<T> items;
  std::array<std::atomic<T>, 4> slots{};
  std::pair<int, std::atomic<long>> pair{};
  static int made;
};
template <typename T> int Queue<T>::made = 0;
struct Cell : std::mutex { int value = 0; };
Queue<int> queue;
Cell cells[2];
std::atomic<long> total;
}
struct Counter { std::mutex own; int value = 0; };
int main() {
  using namespace app;
  SHOW(queue.in_base); SHOW(queue.lock); SHOW(queue.counter); SHOW(queue.items); AS("queue.slots[2]", queue.slots[2]);
  SHOW(queue.pair.first); SHOW(queue.pair.second); AS("made", Queue<int>::made); SHOW(cells[1].value); SHOW(total);
  AS("cells[1]", static_cast<std::mutex &>(cells[1]));
  AS("queue.vptr", queue);
  printf("queue.items %p\n", (void *)((char *)&queue.items + 8));
  printf("main() %p\n", (void *)main);
  std::mutex m;
  std::atomic<int> ready{0};
  Counter counter;
  AS("m in main", m); AS("ready in main", ready); AS("counter.value in main", counter.value);
  auto body = [&, number = 7]() mutable __attribute__((noinline)) { m.lock(); m.unlock(); ++number; ++ready; AS("body.number in main", number); fflush(stdout); pause(); };
  std::thread first([&] { std::lock_guard guard(m); ++ready; });
  first.join();
  std::vector<std::thread> others;
  AS("others in main", others);
  body();
  return ready + counter.value + others.size();
}
)";

class Variables : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  void build(const std::string& program, bool cpp, const std::string& flags) {
    std::ofstream(path(cpp ? "program.cc" : "program.c")) << program;
    const std::string command = "cd " + directory_.path().string() + " && " +
                                (cpp ? "g++ -std=c++20 " : "gcc -std=c11 -D_GNU_SOURCE ") + "-pthread " +
                                flags + " " + (cpp ? "program.cc" : "program.c") + " -o program";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  // What the program prints until it waits: names and addresses.
  std::vector<std::pair<std::string, uint64_t>> run() {
    const std::string said = path("said");
    process_ = fork();
    if (process_ == 0) {
      const int out = ::open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(out, STDOUT_FILENO);
      execl(path("program").c_str(), "program", nullptr);
      _exit(127);
    }
    // It waits in pause() when its state says so and it has printed all.
    for (int i = 0; i < 5000 && !waits(); ++i) usleep(1000);
    std::vector<std::pair<std::string, uint64_t>> all;
    std::ifstream in(said);
    for (std::string line; std::getline(in, line);) {
      const size_t space = line.rfind(' ');
      all.emplace_back(line.substr(0, space), std::strtoull(line.c_str() + space, nullptr, 16));
    }
    return all;
  }
  std::vector<pid_t> threads() const {
    std::vector<pid_t> all;
    std::error_code gone;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(process_) + "/task", gone))
      all.push_back(std::stoi(task.path().filename()));
    return all;
  }
  bool waits() const {
    for (pid_t thread : threads()) {
      std::ifstream call("/proc/" + std::to_string(process_) + "/task/" + std::to_string(thread) +
                         "/syscall");
      int number = -1;
      if (!(call >> number) || number != 34 /* pause */) return false;
    }
    return true;
  }
  uint64_t value_of(const PointerVariable& pointer) const {
    if (!pointer.in_memory) return pointer.number;
    uint64_t value = 0;
    iovec here{&value, sizeof value}, there{reinterpret_cast<void*>(pointer.number), sizeof value};
    return process_vm_readv(process_, &here, 1, &there, 1, 0) == sizeof value ? value : 0;
  }
  void TearDown() override {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }

  TemporaryDirectory directory_;
  pid_t process_ = -1;
};

std::string in_words(const std::optional<VariablePart>& part) {
  if (!part) return "nothing";
  return part->name + part->part + (part->function.empty() ? "" : " in " + part->function);
}

struct Way {
  const char* name;
  bool cpp;
  const char* flags;
};
class VariablesEachWay : public Variables, public testing::WithParamInterface<Way> {};

TEST_P(VariablesEachWay, AreCalledAsTheSourceCallsThem) {
  build(GetParam().cpp ? kCppProgram : kCProgram, GetParam().cpp, GetParam().flags);
  const auto shown = run();
  ASSERT_GT(shown.size(), 10u);
  uint64_t bias = 0;
  const SymbolTable symbols = *read_elf_symbols(*read_file(path("program")));
  for (const auto& [name, address] : shown)
    if (name == "main()") bias = address - symbols.address_of("main").value();
  const Result<DebugInfo> info = DebugInfo::open({{.path = path("program"), .bias = bias}});
  ASSERT_TRUE(info.ok()) << info.error().message;
  Stacks stacks(process_);
  std::vector<StackFrame> frames;
  for (pid_t thread : threads())
    for (const StackFrame& frame : stacks.frames(thread)) frames.push_back(frame);
  size_t locals = 0;
  for (const auto& [name, address] : shown) {
    if (name == "main()") continue;
    if (name == "pointer mine") {
      std::vector<std::string> found;
      for (const StackFrame& frame : frames)
        for (const PointerVariable& pointer : info->pointers(frame))
          if (value_of(pointer) == address && pointer.name == "mine")
            found.push_back(DebugInfo::name_of(pointer.type));
      EXPECT_EQ(found, std::vector<std::string>{"queue"});
      continue;
    }
    if (name.find(" in ") == std::string::npos) {
      EXPECT_EQ(in_words(info->variable(address)), name);
      continue;
    }
    ++locals;
    EXPECT_EQ(info->variable(address), std::nullopt);
    std::vector<std::string> found;
    for (const StackFrame& frame : frames)
      if (const auto part = info->local(frame, address)) found.push_back(in_words(part));
    EXPECT_EQ(found, std::vector<std::string>{name});
  }
  EXPECT_GT(locals, 3u);
}

// The line numbers do not matter: all of main() sees the same types.
constexpr const char* kTypes = R"(#include <stdlib.h>
struct node { int value; struct node *next; };
typedef struct { struct node *head; struct node **heads; void *data; } list;
typedef struct item { long id; } item;
struct unknown;
struct unknown *hidden;
int main(int argc, char **argv) {
  struct node *n = malloc(sizeof *n);
  list lists[3] = {{n}}, *l = &lists[argc - 1];
  item *i = malloc(sizeof(item));
  const volatile int *numbers = calloc(3, sizeof *numbers);
  l->heads = &l->head;
  l->data = i;
  return numbers != 0 && argv != 0 && hidden == 0;
}
)";

TEST_F(Variables, TypesAreWhatTheCodeThereMeans) {
  for (const char* flags : {"-g -O0", "-g -O2"}) {
    SCOPED_TRACE(flags);
    build(kTypes, false, flags);
    const uint64_t pc = (*read_elf_symbols(*read_file(path("program")))).address_of("main").value() + 4;
    const Result<DebugInfo> info = DebugInfo::open({{.path = path("program")}});
    ASSERT_TRUE(info.ok()) << info.error().message;
    const auto words = [](const std::optional<DebugType>& type) {
      if (!type) return std::string("nothing");
      const std::optional<uint64_t> size = DebugInfo::size_of(*type);
      return DebugInfo::name_of(*type) + " " + (size ? std::to_string(*size) : "?");
    };
    const std::pair<const char*, const char*> pointers[] = {{"n", "node 16"},
                                                            {"n->next", "node 16"},
                                                            {"l", "list 24"},
                                                            {"l->head", "node 16"},
                                                            {"lists[1].head->next", "node 16"},
                                                            {"*l", "nothing"},
                                                            {"l->heads[i]", "node 16"},
                                                            {"l->data", "nothing"},
                                                            {"n->value", "nothing"},
                                                            {"lists", "nothing"},
                                                            {"missing", "nothing"},
                                                            {"n->missing", "nothing"},
                                                            {"numbers", " 4"},
                                                            {"i", "item 8"},
                                                            {"lists[", "nothing"},
                                                            {"", "nothing"}};
    for (const auto& [expression, type] : pointers)
      EXPECT_EQ(words(info->pointee(pc, expression)), type) << expression;
    for (const auto& [name, type] : {std::pair("node", "node 16"),
                                     {"list", "list 24"},
                                     {"item", "item 8"},
                                     {"unknown", "nothing"},
                                     {"int", "nothing"},
                                     {"app::node", "nothing"}})
      EXPECT_EQ(words(info->type_named(pc, name)), type) << name;
    const std::optional<DebugType> node = info->type_named(pc, "node");
    ASSERT_TRUE(node);
    EXPECT_EQ(DebugInfo::part(*node, 8), ".next");
    EXPECT_EQ(DebugInfo::part(*node, 4), "+4");
  }
}

TEST_F(Variables, ANameOfSeveralTypesMeansNone) {
  build(
      "namespace a { struct Node { int x; }; } namespace b { struct Node { long x[4]; }; }\n"
      "template <typename T> __attribute__((noinline)) void make() { T* t = new T; __asm__ volatile(\"\" :: "
      "\"r\"(t)); }\n"
      "int main() { a::Node* n = new a::Node; make<b::Node>(); return n->x; }\n",
      true, "-g -O0");
  const SymbolTable symbols = *read_elf_symbols(*read_file(path("program")));
  const Result<DebugInfo> info = DebugInfo::open({{.path = path("program")}});
  ASSERT_TRUE(info.ok()) << info.error().message;
  const uint64_t pc = symbols.address_of("main").value() + 4;
  const auto size = [&](uint64_t at, const char* name) {
    const std::optional<DebugType> type = info->type_named(at, name);
    return type ? DebugInfo::size_of(*type).value_or(0) : 0;
  };
  EXPECT_EQ(size(pc, "Node"), 0u);
  EXPECT_EQ(size(pc, "a::Node"), 4u);
  EXPECT_EQ(size(pc, "b::Node"), 32u);
  EXPECT_EQ(size(symbols.address_of("_Z4makeIN1b4NodeEEvv").value() + 4, "T"), 32u);
}

TEST_F(Variables, WithoutDebugInformationNothingIsKnown) {
  build(kTypes, false, "-O0");
  const SymbolTable symbols = *read_elf_symbols(*read_file(path("program")));
  const Result<DebugInfo> info = DebugInfo::open({{.path = path("program")}});
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->variable(symbols.address_of("hidden").value()), std::nullopt);
  EXPECT_EQ(info->pointee(symbols.address_of("main").value() + 4, "n"), std::nullopt);
  Stacks none(1 << 30);  // no such process
  EXPECT_TRUE(none.frames(1 << 30).empty());
}

constexpr Way kWays[] = {
    {"C_O0_PIE", false, "-g -O0 -fpie -pie"},
    {"C_O2_PIE", false, "-g -O2 -fpie -pie"},
    {"C_O0_NoPIE", false, "-g -O0 -fno-pie -no-pie"},
    {"C_O2_NoPIE", false, "-g -O2 -fno-pie -no-pie"},
    {"C_DWARF4", false, "-gdwarf-4 -O1"},
    {"Cpp_O0_PIE", true, "-g -O0 -fpie -pie"},
    {"Cpp_O2_NoPIE", true, "-g -O2 -fno-pie -no-pie"},
};
INSTANTIATE_TEST_SUITE_P(Ways, VariablesEachWay, testing::ValuesIn(kWays),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace slalom
