// Accesses that span several granules of memory, and pauses at different distances.
#include "vm/control/communication.h"

#include <gtest/gtest.h>

#include "unit/detect/kernel_stream.h"
#include "vm/control/liveness.h"

namespace slalom::vm {
namespace {

using test::Stream;

TEST(WideAccesses, EachGranuleIsUsed) {
  for (const uint64_t read_at : {0x1000u, 0x1008u, 0x1010u, 0x1018u}) {
    Stream maker;
    Communication communication;
    const std::vector<Access> write = {maker.make(OpKind::Store, "writer", 0x1000, true, 24, 0)};
    const std::vector<Access> read = {maker.make(OpKind::Load, "reader", read_at, false, 8, 0)};
    communication.add(0, write);
    communication.add_instructions(write);
    communication.add(1, read);
    communication.add_instructions(read);
    EXPECT_EQ(communication.points().size(), read_at < 0x1018 ? 2u : 0u) << read_at;
  }
}

Access load_of(uint64_t address) {
  Access access = {};
  access.address_bits = address;
  access.size = 8;
  return access;
}

TEST(Pauses, OnlyTwoThatAreNearAreAWait) {
  for (const uint64_t apart : {Liveness::kPauseWindow, Liveness::kPauseWindow + 1}) {
    Liveness liveness;
    liveness.on_pause(1000);
    liveness.on_accesses(std::vector{load_of(0x2000)});
    liveness.on_pause(1000 + apart);
    EXPECT_EQ(liveness.live(), apart > Liveness::kPauseWindow);
    EXPECT_EQ(liveness.waits_for().size(), liveness.live() ? 0u : 1u);
  }
}

}  // namespace
}  // namespace slalom::vm
