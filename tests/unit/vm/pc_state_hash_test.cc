// The state hash covers everything: every bit of every field and of RAM. No field is missing from the lists
// that hashing, saving and loading use.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/rng.h"
#include "unit/vm/tiny_machine.h"
#include "vm/pc/pc.h"

namespace slalom::vm {
namespace {

// Visits every number of a State and changes one bit at a time for a call of `check`.
template <class Check>
class EachBit {
 public:
  enum class Which { All, Outer };  // of a number: all bits, or only the lowest and the highest
  EachBit(Which which, Check check) : which_(which), check_(check) {}
  template <class... Fields>
  void operator()(Fields&... fields) {
    (visit(fields), ...);
  }

 private:
  template <class T>
  void visit(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = !value;
      check_();
      value = !value;
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      const T before = value;
      for (unsigned bit = 0; bit < 8 * sizeof(T); ++bit) {
        if (which_ == Which::Outer && bit != 0 && bit != 8 * sizeof(T) - 1) continue;
        value = static_cast<T>(static_cast<uint64_t>(before) ^ uint64_t{1} << bit);
        check_();
      }
      value = before;
    } else {
      T::fields(value, *this);
    }
  }
  template <class T, size_t n>
  void visit(std::array<T, n>& values) {
    for (T& value : values) visit(value);
  }
  template <class T>
  void visit(std::vector<T>& values) {
    for (T& value : values) visit(value);
  }
  template <class T>
  void visit(std::deque<T>& values) {
    for (T& value : values) visit(value);
  }

  Which which_;
  Check check_;
};

template <class Check>
void each_bit(Pc::Rest& rest, bool all, Check check) {
  using Visitor = EachBit<Check>;
  Visitor visitor(all ? Visitor::Which::All : Visitor::Which::Outer, check);
  visitor(rest);
}

// A machine in a busy state: after power-on, many fields are zero and queues are empty.
std::unique_ptr<Pc> busy_machine(unsigned cpus) {
  std::unique_ptr<Pc> pc = make_tiny(kWalker, cpus);
  EXPECT_EQ(pc->run(12'345), PcStop::Budget);
  pc->devices().push_console_input("typed");
  const uint8_t keys[] = {0x1e, 0x9e};
  pc->devices().push_keys(keys);
  return pc;
}

TEST(StateHash, EveryBitOfRegistersAndDevicesGivesAnother) {
  Pc::Rest rest = busy_machine(2)->rest();
  std::set<uint64_t> seen = {hash_state(rest)};
  uint64_t bits = 0;
  each_bit(rest, true, [&] {
    ++bits;
    seen.insert(hash_state(rest));
  });
  EXPECT_GT(bits, 8 * (2 * sizeof(Registers) + sizeof(Vga::State)) * 3 / 4);
  EXPECT_EQ(seen.size(), bits + 1);  // all hashes differ
}

TEST(StateHash, LengthsOfQueuesCount) {
  Pc::Rest rest = busy_machine(1)->rest();
  std::set<uint64_t> seen = {hash_state(rest)};
  rest.devices.uart.input.push_back(0);
  seen.insert(hash_state(rest));
  rest.devices.uart.input.pop_back();
  rest.devices.uart.received.push_back(0);
  seen.insert(hash_state(rest));
  rest.devices.uart.received.pop_back();
  rest.devices.keyboard.keys.push_back(0);
  seen.insert(hash_state(rest));
  EXPECT_EQ(seen.size(), 4u);
}

TEST(StateHash, AMachineHoldsWhatItWasGivenAndItsHashShowsIt) {
  std::unique_ptr<Pc> pc = busy_machine(2);
  Pc::Rest rest = pc->rest();
  std::set<uint64_t> seen = {pc->state_hash()};
  uint64_t taken = 0, refused = 0;
  each_bit(rest, false, [&] {
    if (!pc->set_rest(rest).ok()) {
      ++refused;
      return;
    }
    ++taken;
    EXPECT_EQ(pc->rest(), rest);
    seen.insert(pc->state_hash());
  });
  EXPECT_EQ(seen.size(), taken + 1);
  EXPECT_GT(refused, 0u);
  EXPECT_GT(taken, 20 * refused);
}

TEST(StateHash, EveryBitOfRamCounts) {
  std::unique_ptr<Pc> pc = busy_machine(1);
  Ram& ram = pc->ram();
  const uint64_t before = pc->state_hash();
  std::set<uint64_t> seen = {before};
  Rng rng(1);
  std::set<uint64_t> tried;
  while (tried.size() < 2'000) {
    const uint64_t bit = tried.empty()       ? 0
                         : tried.size() == 1 ? 8 * kTinyMemory - 1
                                             : rng.below(8 * kTinyMemory);
    if (!tried.insert(bit).second) continue;
    uint8_t byte[1];
    ASSERT_TRUE(ram.read(bit / 8, byte));
    byte[0] ^= static_cast<uint8_t>(1u << bit % 8);
    ram.write(bit / 8, byte);
    seen.insert(pc->state_hash());
    byte[0] ^= static_cast<uint8_t>(1u << bit % 8);
    ram.write(bit / 8, byte);
  }
  EXPECT_EQ(seen.size(), tried.size() + 1);
  EXPECT_EQ(pc->state_hash(), before);
}

TEST(StateHash, EqualPagesAtOtherPlacesCount) {
  const auto with_page = [](Physical at) {
    std::unique_ptr<Pc> pc = busy_machine(1);
    pc->ram().write(at, std::vector<uint8_t>(kPageSize, 7));
    return pc->state_hash();
  };
  EXPECT_NE(with_page(0x1a0000), with_page(0x1a1000));
}

// Records which bytes of an object its list of fields contains.
struct NamedBytes {
  const unsigned char* start;
  std::vector<bool>& named;

  template <class... Fields>
  void operator()(const Fields&... fields) {
    (note(reinterpret_cast<const unsigned char*>(&fields), sizeof(Fields)), ...);
  }
  void note(const unsigned char* field, size_t size) {
    std::fill_n(named.begin() + (field - start), size, true);
  }
};

// Returns the bytes that are in no listed field although they affect comparisons, so they are no padding.
template <class T>
std::vector<size_t> forgotten_bytes() {
  T one{}, other{};
  auto* bytes = reinterpret_cast<unsigned char*>(&other);
  std::vector<bool> named(sizeof(T));
  NamedBytes visitor{.start = bytes, .named = named};
  T::fields(other, visitor);
  std::vector<size_t> forgotten;
  for (size_t i = 0; i < sizeof(T); ++i) {
    if (named[i]) continue;
    bytes[i] ^= 1;
    if (!(one == other)) forgotten.push_back(i);
    bytes[i] ^= 1;
  }
  return forgotten;
}

// Checks a State and all States inside it.
struct EveryFieldIsNamed {
  template <class... Fields>
  void operator()(const Fields&... fields) {
    (visit(fields), ...);
  }
  template <class T>
  void visit(const T& value) {
    if constexpr (!std::is_arithmetic_v<T> && !std::is_enum_v<T>) {
      EXPECT_EQ(forgotten_bytes<T>(), std::vector<size_t>{}) << __PRETTY_FUNCTION__;
      ++states;
      T::fields(value, *this);
    }
  }
  template <class T, size_t n>
  void visit(const std::array<T, n>& values) {
    visit(values[0]);
  }
  template <class T>
  void visit(const std::vector<T>&) {
    visit(T{});
  }
  template <class T>
  void visit(const std::deque<T>&) {
    visit(T{});
  }
  unsigned states = 0;
};

TEST(StateHash, NoFieldIsMissingFromItsList) {
  EveryFieldIsNamed check;
  check.visit(Pc::Rest{});
  EXPECT_GT(check.states, 15u);
}

struct Forgetful {
  uint64_t named = 0;
  bool forgotten = false;
  bool operator==(const Forgetful&) const = default;
  template <class Self, class Visitor>
  static void fields(Self& s, Visitor& v) {
    v(s.named);
  }
};

TEST(StateHash, AMissingFieldWouldBeNoticed) {
  EXPECT_EQ(forgotten_bytes<Forgetful>(), std::vector<size_t>{sizeof(uint64_t)});
}

}  // namespace
}  // namespace slalom::vm
