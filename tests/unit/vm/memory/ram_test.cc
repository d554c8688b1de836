#include "vm/memory/ram.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/rng.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;
using Bytes = std::vector<uint8_t>;

std::unique_ptr<Ram> make_ram(uint64_t size = kMebibyte) {
  return *Ram::make(size);
}

void put(Ram& ram, Physical address, uint8_t value) {
  ASSERT_TRUE(ram.write(address, Bytes{value}));
}

uint8_t get(const Ram& ram, Physical address) {
  Bytes byte(1);
  EXPECT_TRUE(ram.read(address, byte));
  return byte[0];
}

Bytes content(const Ram& ram) {
  Bytes all(ram.size());
  EXPECT_TRUE(ram.read(0, all));
  return all;
}

uint64_t hash_of(const Bytes& bytes) {
  auto ram = make_ram(bytes.size());
  EXPECT_TRUE(ram->write(0, bytes));
  return ram->hash();
}

TEST(Ram, RefusesSizesThatAreNotWholeMebibytes) {
  for (const uint64_t size : {uint64_t{0}, kMebibyte - 1, kMebibyte + 4096, 8193 * kMebibyte, ~uint64_t{0}})
    EXPECT_FALSE(Ram::make(size).ok()) << size;
}

TEST(Ram, GoesOnBehindTheDeviceHole) {
  auto ram = make_ram(4096 * kMebibyte);
  EXPECT_EQ(ram->page_of(kLowRamEnd - 1), 0xbffffu);
  EXPECT_EQ(ram->page_of(kLowRamEnd), Ram::kNoPage);
  EXPECT_EQ(ram->page_of(kHighRamStart - 1), Ram::kNoPage);
  EXPECT_EQ(ram->page_of(kHighRamStart), 0xc0000u);
  EXPECT_EQ(ram->page_of(kHighRamStart + 1024 * kMebibyte), Ram::kNoPage);
  EXPECT_EQ(ram->address_of(0xc0000), kHighRamStart);
  put(*ram, kHighRamStart + 5, 7);
  EXPECT_EQ(ram->page_data(0xc0000)[5], 7);

  Bytes two(2);
  EXPECT_FALSE(ram->read(kLowRamEnd - 1, two));
  EXPECT_FALSE(ram->write(kHighRamStart + 1024 * kMebibyte - 1, two));
  EXPECT_FALSE(ram->write(~uint64_t{0}, two));
  EXPECT_TRUE(ram->read(kLowRamEnd - 2, two));
}

TEST(Ram, ARangeThatEndsOutsideIsNotWrittenAtAll) {
  auto ram = make_ram();
  EXPECT_FALSE(ram->write(kMebibyte - 4096, Bytes(4097, 1)));
  EXPECT_EQ(content(*ram), Bytes(kMebibyte, 0));
  EXPECT_TRUE(ram->dirty().empty());
  EXPECT_TRUE(ram->write(kMebibyte - 4096, Bytes(4096, 1)));
}

TEST(Ram, TheHashIsAFunctionOfTheContent) {
  auto ram = make_ram();
  const uint64_t empty = ram->hash();
  put(*ram, 0x3005, 9);
  const uint64_t once = ram->hash();
  EXPECT_NE(once, empty);
  put(*ram, 0x4005, 9);
  put(*ram, 0x3005, 0);
  const uint64_t moved = ram->hash();
  EXPECT_NE(moved, once) << "the page number counts";
  EXPECT_EQ(moved, hash_of(content(*ram)));
  put(*ram, 0x4005, 0);
  EXPECT_EQ(ram->hash(), empty) << "a page of zeros equals one that was never written";
  EXPECT_NE(make_ram(2 * kMebibyte)->hash(), empty) << "the size counts";
}

TEST(Ram, EveryBitOfAPageCountsInTheHash) {
  auto ram = make_ram();
  Rng rng(1);
  for (Physical i = 0; i < kPageSize; ++i) put(*ram, 0x5000 + i, static_cast<uint8_t>(rng.next()));
  const uint64_t before = ram->hash();
  for (unsigned bit = 0; bit < 8 * kPageSize; ++bit) {
    const Physical address = 0x5000 + bit / 8;
    const uint8_t old = get(*ram, address);
    put(*ram, address, old ^ static_cast<uint8_t>(1u << (bit % 8)));
    ASSERT_NE(ram->hash(), before) << "bit " << bit;
    put(*ram, address, old);
  }
  EXPECT_EQ(ram->hash(), before);
}

TEST(Ram, RestoreNamesExactlyThePagesThatWereWritten) {
  auto ram = make_ram();
  put(*ram, 0x1000, 1);
  const auto checkpoint = ram->take();
  EXPECT_TRUE(ram->dirty().empty());
  put(*ram, 0x7123, 2);
  put(*ram, 0x1001, 3);
  put(*ram, 0x7124, 4);
  std::vector<uint32_t> changed;
  ram->restore(checkpoint, changed);
  std::sort(changed.begin(), changed.end());
  EXPECT_EQ(changed, (std::vector<uint32_t>{1, 7}));
  EXPECT_EQ(get(*ram, 0x1000), 1);
  EXPECT_EQ(get(*ram, 0x7123), 0);
  changed.clear();
  ram->restore(checkpoint, changed);
  EXPECT_TRUE(changed.empty());
}

TEST(Ram, FlagsOfOthersSurviveARestore) {
  auto ram = make_ram();
  const auto checkpoint = ram->take();
  ram->set_flag(3, Ram::kCode);
  put(*ram, 0x3000, 1);
  std::vector<uint32_t> changed;
  ram->restore(checkpoint, changed);
  EXPECT_EQ(ram->flags(3) & (Ram::kCode | Ram::kDirty), Ram::kCode);
}

TEST(Ram, TheBaseCanBeRestored) {
  auto ram = make_ram();
  put(*ram, 0x2000, 1);
  ram->make_base();
  const uint64_t hash = ram->hash();
  put(*ram, 0x2000, 2);
  ram->take();
  put(*ram, 0x9000, 3);
  std::vector<uint32_t> changed;
  ram->restore(Ram::kNone, changed);
  EXPECT_EQ(get(*ram, 0x2000), 1);
  EXPECT_EQ(get(*ram, 0x9000), 0);
  EXPECT_EQ(ram->hash(), hash);
  EXPECT_EQ(hash, hash_of(content(*ram)));
}

// All operations at random, compared with plain copies of the whole memory.
TEST(Ram, BehavesLikeWholeCopiesUnderRandomCheckpoints) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Rng rng(seed);
    auto ram = make_ram();
    Bytes model(kMebibyte);
    Bytes base = model;
    std::map<Ram::Checkpoint, Bytes> saved;
    const auto pick = [&] {
      return std::next(saved.begin(), static_cast<long>(rng.below(saved.size())))->first;
    };
    for (int step = 0; step < 400; ++step) {
      const uint64_t action = rng.below(100);
      if (action < 60) {
        const Physical address = rng.below(12) * 4096 + rng.below(3);
        const auto value = static_cast<uint8_t>(rng.below(3));
        model[address] = value;
        put(*ram, address, value);
      } else if (action < 75) {
        const auto id = ram->take();
        ASSERT_TRUE(saved.emplace(id, model).second) << "an id in use was given out again";
      } else if (action < 90 && !saved.empty()) {
        const auto id = rng.below(10) == 0 ? Ram::kNone : pick();
        const Bytes before = model;
        model = id == Ram::kNone ? base : saved[id];
        std::vector<uint32_t> changed;
        ram->restore(id, changed);
        for (uint32_t page = 0; page < ram->pages(); ++page)
          if (std::count(changed.begin(), changed.end(), page) == 0) {
            ASSERT_TRUE(std::equal(&model[page * 4096], &model[page * 4096] + 4096, &before[page * 4096]));
          }
      } else if (action < 98 && !saved.empty()) {
        const auto id = pick();
        saved.erase(id);
        ram->drop(id);
      } else if (action == 98) {
        ram->make_base();
        saved.clear();
        base = model;
      } else {
        ASSERT_EQ(ram->hash(), hash_of(model));
      }
      ASSERT_EQ(content(*ram), model) << "seed " << seed << " step " << step;
    }
  }
}

TEST(Ram, ForkedWorkersShareTheBaseAndNothingElse) {
  auto ram = make_ram();
  put(*ram, 0x2000, 1);
  ram->make_base();
  int to_parent[2], to_child[2];
  ASSERT_EQ(pipe(to_parent), 0);
  ASSERT_EQ(pipe(to_child), 0);
  const pid_t child = fork();
  if (child == 0) {
    put(*ram, 0x2000, 5);
    char byte = 0;
    if (write(to_parent[1], &byte, 1) != 1 || read(to_child[0], &byte, 1) != 1) _exit(3);
    std::vector<uint32_t> changed;
    ram->restore(Ram::kNone, changed);
    _exit(get(*ram, 0x2000) == 1 && get(*ram, 0x3000) == 0 ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(to_parent[0], &byte, 1), 1);
  EXPECT_EQ(get(*ram, 0x2000), 1) << "the child's write is its own";
  put(*ram, 0x2000, 8);
  put(*ram, 0x3000, 9);
  ram->make_base();
  ASSERT_EQ(write(to_child[1], &byte, 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "a new base of the parent is not the child's";
  for (const int end : {to_parent[0], to_parent[1], to_child[0], to_child[1]}) close(end);
}

TEST(Ram, ACheckpointThatDoesNotExistIsABrokenInvariant) {
  auto ram = make_ram();
  const auto id = ram->take();
  ram->drop(id);
  std::vector<uint32_t> changed;
  EXPECT_THROW(ram->restore(id, changed), InternalError);
  EXPECT_THROW(ram->drop(77), InternalError);
}

}  // namespace
}  // namespace slalom::vm
