// Which functions are a scope's, and when a CPU is inside.
#include <gtest/gtest.h>

#include "vm/guests/linux/linux_scope.h"
#include "vm/scenario/kernel_test.h"

namespace slalom::vm {
namespace {

Symbol code(uint64_t address, std::string name, std::string module = "") {
  Symbol symbol;
  symbol.address = address;
  symbol.size = 16;
  symbol.name = std::move(name);
  symbol.module = std::move(module);
  symbol.type = 't';
  return symbol;
}

const SymbolTable kTable({code(0x1000, "pipe_read"), code(0x1100, "pipe_write"), code(0x1200, "mutex_lock"),
                          code(0x1300, "schedule"), code(0x1400, "kfree"), code(0x5000, "open_it", "mine"),
                          code(0x5100, "kfree_mine", "mine")});

// Open calls, outermost first, each 0x20 bytes below the previous one.
FunctionWatch::Open calls(std::initializer_list<uint64_t> functions) {
  FunctionWatch::Open open;
  uint64_t at = 0x8000;
  for (const uint64_t function : functions) open[at -= 0x20].push_back({.function = function});
  return open;
}
bool inside(const std::vector<std::string>& wanted, std::initializer_list<uint64_t> functions,
            uint64_t end = 0x8000) {
  const Result<Scope> scope = find_scope(kTable, wanted);
  EXPECT_TRUE(scope.ok());
  return scope->is_inside(calls(functions), 0x8000 - 0x20 * functions.size(), end);
}

TEST(Scope, WhatItsFunctionsCallIsInside) {
  const std::vector<std::string> mine = {"module:mine"};
  EXPECT_FALSE(inside(mine, {}));
  EXPECT_FALSE(inside(mine, {0x1200}));
  EXPECT_TRUE(inside(mine, {0x5000}));
  EXPECT_TRUE(inside(mine, {0x1200, 0x5000}));
  EXPECT_TRUE(inside(mine, {0x5000, 0x1200}));
  EXPECT_TRUE(inside(mine, {0x5100}));  // a module's function is not an ignored allocator
}

TEST(Scope, WhatIsIgnoredByNameIsNot) {
  const std::vector<std::string> mine = {"module:mine"};
  EXPECT_FALSE(inside(mine, {0x5000, 0x1400}));
  EXPECT_FALSE(inside(mine, {0x5000, 0x1300, 0x1200}));
  EXPECT_TRUE(inside(mine, {0x5000, 0x1300, 0x5100}));          // a callback
  EXPECT_TRUE(inside({"function:kfree"}, {0x1400}));            // explicitly in the scope
  EXPECT_FALSE(inside(mine, {0x5000, 0x1200}, 0x8000 - 0x20));  // an interrupt's frame is in between
}

TEST(Scope, PlacesInTheSchedulerAndInTimekeepingAreTakenOut) {
  const SymbolTable table(
      {code(0x1000, "pipe_read"), code(0x1010, "__schedule"), code(0x1020, "schedule_ours", "mine"),
       code(0x1030, "update_load_avg"), code(0x1040, "try_to_wake_up"), code(0x1050, "ktime_get"),
       code(0x1060, "_raw_spin_lock"), code(0x1070, "propagate_mnt"), code(0x1080, "account_pipe_buffers")});
  const std::vector<CodeRange> code = scheduling_code(table);
  std::vector<Place> places;
  for (uint64_t at = 0xff8; at < 0x10a0; at += 8) places.push_back(Place{at});
  remove_places_in(code, places);
  std::vector<Place> expected;
  for (uint64_t at = 0xff8; at < 0x10a0; at += 8)
    if (const uint64_t of = at & ~uint64_t{15}; of != 0x1010 && of != 0x1030 && of != 0x1050)
      expected.push_back(Place{at});
  EXPECT_EQ(places, expected);
  remove_places_in({}, places);
  EXPECT_EQ(places, expected);
}

TEST(Scope, FunctionsAreNamedOrBeginAlike) {
  EXPECT_TRUE(inside({"function:pipe_*"}, {0x1000}));
  EXPECT_TRUE(inside({"function:pipe_*"}, {0x1100}));
  EXPECT_FALSE(inside({"function:pipe_read"}, {0x1100}));
  EXPECT_TRUE(inside({"function:mine:open_it"}, {0x5000}));
  EXPECT_TRUE(inside({"function:pipe_read", "module:mine"}, {0x5000}));
}

TEST(Scope, ANameThatIsNobodysIsAnError) {
  const std::vector<std::string> module = {"module:mime"}, function = {"function:pipe_raed"};
  EXPECT_EQ(find_scope(kTable, module).error().message,
            "the scope \"module:mime\" is no module that is loaded; these are: mine");
  EXPECT_EQ(find_scope(kTable, function).error().message,
            "the scope \"function:pipe_raed\" is no function of this kernel or of a loaded module: is it "
            "spelled as "
            "in /proc/kallsyms?");
}

std::string said_of(const std::string& lines) {
  const Result<KernelTest> test = parse_kernel_test(
      lines + "\n[[flow]]\ncalls = '''\ngetpid()\n'''\n[[flow]]\ncalls = '''\ngetpid()\n'''\n", "t");
  return test.ok() ? "" : test.error().message;
}

TEST(Scope, AFilesScopeAndContextsAreChecked) {
  EXPECT_EQ(
      said_of(
          "scope = [\"module:a\", \"function:b_*\"]\ncontexts = [\"cpu1\", \"ipi\", \"timer\", \"device\"]"),
      "");
  for (const char* wrong :
       {"abba", "module:", "module:a*", "function:*", "function:a*b", "function:a b", "file:x"})
    EXPECT_EQ(said_of(fmt::format("scope = \"{}\"", wrong)),
              fmt::format("t:1: \"{}\": {}", wrong, kScopeAdvice));
  EXPECT_EQ(said_of("scheduler = true"), "");
  EXPECT_EQ(said_of("scheduler = \"yes\""), "t:1: `scheduler` must be true or false");
  EXPECT_EQ(said_of("contexts = [\"cpu0\",\n\"cpu2\"]"),
            "t:2: \"cpu2\" is no context: write \"cpu0\" to \"cpu1\", \"timer\", \"ipi\" or \"device\"");
  EXPECT_EQ(said_of("contexts = [\"timer\"]"), "t:1: `contexts` needs at least one CPU: add \"cpu0\"");
}

}  // namespace
}  // namespace slalom::vm
