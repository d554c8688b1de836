// slalom::check for outcomes that no interleaving has: Dekker's flags, and a twin with sequentially
// consistent stores.
#include <gtest/gtest.h>
#include <slalom/check.h>

#include <atomic>
#include <thread>

namespace {

using slalom::check;
using slalom::CheckOptions;
using slalom::CheckResult;

template <std::memory_order kRaise>
void enter_both() {
  std::atomic<bool> wants[2] = {false, false};
  std::atomic<int> inside{0};
  const auto work = [&](int me) {
    wants[me].store(true, kRaise);
    if (wants[1 - me].load(std::memory_order_seq_cst)) return;
    slalom::expect(inside.fetch_add(1) == 0, "both are in");
  };
  std::thread one(work, 0), two(work, 1);
  one.join();
  two.join();
}

CheckResult run(bool weak_memory, void (*body)()) {
  CheckOptions options;
  options.name = "dekker";
  options.schedules = 200;
  options.findings = "";
  options.weak_memory = weak_memory;
  return check(options, body);
}

TEST(CheckWeakMemory, DekkerNeedsAFence) {
  const CheckResult broken = run(true, enter_both<std::memory_order_release>);
  EXPECT_FALSE(broken.ok);
  ASSERT_EQ(broken.findings.size(), 1u) << broken.report;
  EXPECT_EQ(broken.findings[0].kind, "weak-memory");
  EXPECT_EQ(broken.findings[0].title.rfind("weak memory: ", 0), 0u) << broken.findings[0].title;
  EXPECT_NE(broken.report.find("wants[me].store(true, kRaise);"), std::string::npos) << broken.report;

  const CheckResult fixed = run(true, enter_both<std::memory_order_seq_cst>);
  EXPECT_TRUE(fixed.ok) << fixed.report;
  const CheckResult unasked = run(false, enter_both<std::memory_order_release>);
  EXPECT_TRUE(unasked.ok) << unasked.report << "no interleaving lets both in";
}

}  // namespace
