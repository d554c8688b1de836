// How a kernel's source marks an access, and for which direction.
#include "vm/guests/linux/marking.h"

#include <gtest/gtest.h>

namespace slalom::vm {
namespace {

TEST(Marking, LinesOfSource) {
  EXPECT_EQ(mark_of_line("  if (READ_ONCE(box->ready)) return;"), Mark::Load);
  EXPECT_EQ(mark_of_line("\tWRITE_ONCE(box->ready, 1);"), Mark::Store);
  EXPECT_EQ(mark_of_line("  WRITE_ONCE(a->x, READ_ONCE(b->y));"), Mark::Both);
  EXPECT_EQ(mark_of_line("  old = data_race(box->hint);"), Mark::Both);
  EXPECT_EQ(mark_of_line("  p = rcu_dereference_protected(box->p, 1);"), Mark::Load);
  EXPECT_EQ(mark_of_line("  smp_store_release(&box->ready, 1);"), Mark::Store);
  EXPECT_EQ(mark_of_line("  if (atomic_read (&box->users))"), Mark::Both);
  EXPECT_EQ(mark_of_line("  box->ready = 1;"), Mark::None);
  EXPECT_EQ(mark_of_line("  box->ready = 1;  // READ_ONCE() on the other side"), Mark::None);
  EXPECT_EQ(mark_of_line("  box->READ_ONCE = 1;"), Mark::None);
  EXPECT_EQ(mark_of_line("  MY_READ_ONCE(box);"), Mark::None);
  EXPECT_EQ(mark_of_line(""), Mark::None);
}

TEST(Marking, InlinedFunctions) {
  EXPECT_EQ(mark_of_function("arch_atomic_read"), Mark::Both);
  EXPECT_EQ(mark_of_function("arch_test_bit"), Mark::Both);
  EXPECT_EQ(mark_of_function("__READ_ONCE"), Mark::Load);
  EXPECT_EQ(mark_of_function("__set_bit"), Mark::None);
  EXPECT_EQ(mark_of_function("ether_addr_copy"), Mark::None);
}

TEST(Marking, ALoadThatIsMarkedDoesNotMarkAStore) {
  EXPECT_TRUE(covers(Mark::Load, false));
  EXPECT_FALSE(covers(Mark::Load, true));
  EXPECT_FALSE(covers(Mark::Store, false));
  EXPECT_TRUE(covers(Mark::Both, true));
  EXPECT_FALSE(covers(Mark::None, false));
}

}  // namespace
}  // namespace slalom::vm
