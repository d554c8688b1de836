#include "trace/files/serialise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/files/schedule_file.h"
#include "unit/base/temporary_directory.h"
#include "unit/trace/golden.h"
#include "unit/trace/random_values.h"

namespace slalom {

// Outcomes have no operator== of their own, because no other code needs it.
bool operator==(const Deadlocked::Waiting& a, const Deadlocked::Waiting& b) {
  return a.agent == b.agent && a.op == b.op && a.object == b.object && a.pc == b.pc && a.held_by == b.held_by;
}
bool operator==(const Exited&, const Exited&) {
  return true;
}
bool operator==(const Deadlocked& a, const Deadlocked& b) {
  return a.waiting == b.waiting;
}
bool operator==(const Faulted& a, const Faulted& b) {
  return a.kind == b.kind && a.agent == b.agent && a.pc == b.pc && a.what == b.what;
}
bool operator==(const LimitReached& a, const LimitReached& b) {
  return a.steps == b.steps && a.enabled == b.enabled && a.limit == b.limit;
}
bool operator==(const Abandoned& a, const Abandoned& b) {
  return a.why == b.why;
}
bool operator==(const ToolError& a, const ToolError& b) {
  return a.message == b.message;
}

namespace {

using testing::EndsWith;

template <typename T>
std::vector<uint8_t> encoded(const T& value) {
  ByteWriter out;
  encode(out, value);
  return out.take();
}

// Checks that the value comes back equal, and that no cut of its bytes decodes to the end.
template <typename T>
void expect_round_trip(const T& value) {
  const std::vector<uint8_t> bytes = encoded(value);
  ByteReader in(bytes);
  T back;
  decode(in, back);
  ASSERT_TRUE(in.ok() && in.at_end());
  ASSERT_TRUE(back == value);
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteReader cut{std::span(bytes).first(size)};
    T partial;
    decode(cut, partial);
    ASSERT_FALSE(cut.ok()) << size << " of " << bytes.size();
  }
}

template <typename T>
bool decodes(const std::vector<uint8_t>& bytes) {
  ByteReader in(bytes);
  T value;
  decode(in, value);
  return in.ok() && in.at_end();
}

TEST(Serialise, EverythingComesBack) {
  for (uint64_t i = 0; i < 300; ++i) {
    Rng rng(11, i);
    expect_round_trip(random_agent(rng));
    expect_round_trip(random_schedule(rng));
    expect_round_trip(random_policy(rng));
    expect_round_trip(random_verdict(rng));
    expect_round_trip(random_outcome(rng));
  }
}

TEST(Serialise, ShortPathsAreShort) {
  EXPECT_EQ(encoded(AgentId{}).size(), 1u);
  EXPECT_EQ(encoded(AgentId::initial(0)).size(), 1u);
  EXPECT_EQ(encoded(AgentId::initial(0).child(3)).size(), 2u);
}

TEST(Serialise, AgentsThatAreNoPathsAreRefused) {
  EXPECT_TRUE(decodes<AgentId>({0x81, 0x04}));         // levels 1 and 2
  EXPECT_FALSE(decodes<AgentId>({0x80, 0x04}));        // level 1 missing
  EXPECT_FALSE(decodes<AgentId>({0x81, 0x80, 0x04}));  // level 2 missing
}

TEST(Serialise, EnumsOutOfRangeAreRefused) {
  std::vector<uint8_t> verdict = encoded(Verdict{});
  ASSERT_TRUE(decodes<Verdict>(verdict));
  verdict[0] = kBugKinds;
  EXPECT_FALSE(decodes<Verdict>(verdict));
  verdict[0] = 0;
  verdict[1] = 3;
  EXPECT_FALSE(decodes<Verdict>(verdict));

  std::vector<uint8_t> policy = encoded(ChoicePolicy{});
  ASSERT_TRUE(decodes<ChoicePolicy>(policy));
  policy[0] = 3;
  EXPECT_FALSE(decodes<ChoicePolicy>(policy));
  ChoicePolicy watching{.accesses = {{.first = 1, .last = 2}}};
  policy = encoded(watching);
  ASSERT_TRUE(decodes<ChoicePolicy>(policy));
  policy.back() = 4;  // neither read nor write
  EXPECT_FALSE(decodes<ChoicePolicy>(policy));

  EXPECT_TRUE(decodes<Outcome>({0}));
  EXPECT_FALSE(decodes<Outcome>({6}));
  std::vector<uint8_t> deadlock =
      encoded(Outcome(Deadlocked{{{AgentId::initial(0), OpKind::Lock, {}, {}, {}}}}));
  ASSERT_TRUE(decodes<Outcome>(deadlock));
  deadlock[3] = kOpKinds;
  EXPECT_FALSE(decodes<Outcome>(deadlock));
}

TEST(Serialise, UnsortedPoliciesAreRefused) {
  ChoicePolicy policy;
  policy.places = {Place{2}, Place{1}};
  EXPECT_FALSE(decodes<ChoicePolicy>(encoded(policy)));
  policy.places = {};
  policy.stops = {{AgentId::initial(1), 0}, {AgentId::initial(0), 9}};
  EXPECT_FALSE(decodes<ChoicePolicy>(encoded(policy)));
  policy.stops = {};
  policy.accesses = {{.place = Place{2}}, {.place = Place{1}}};
  EXPECT_FALSE(decodes<ChoicePolicy>(encoded(policy)));
}

// Version 4 of capsules, and version 6 of search states.
TEST(Serialise, PoliciesWithoutAccessesAreThoseOfOlderFiles) {
  ByteWriter out;
  out.u8(2);
  encode(out, std::vector<Place>{Place{7}});
  encode(out, std::vector<ChoicePolicy::AgentPosition>{{AgentId::initial(0), 9}});
  const ChoicePolicy policy{
      .where = ChoicePolicy::Where::Nowhere, .places = {Place{7}}, .stops = {{AgentId::initial(0), 9}}};
  EXPECT_EQ(encoded(policy), out.bytes());
  ByteReader in(out.bytes());
  ChoicePolicy read{.accesses = {{}}};
  decode(in, read);
  EXPECT_TRUE(in.ok() && in.at_end());
  EXPECT_EQ(read, policy);
}

TEST(Serialise, NumbersTooLargeForTheirFieldAreRefused) {
  ByteWriter out;
  out.u64(0);
  out.u64(1);
  encode(out, AgentId::initial(0));
  out.u64(5);
  out.u64(uint64_t{1} << 32);  // ordinal
  out.u64(0);
  out.fixed64(0);
  EXPECT_FALSE(decodes<Schedule>(out.bytes()));
}

// Every file of version 1 uses these numbers. New enumerators are appended; existing ones never move.
TEST(Serialise, EnumNumbersAreFixed) {
  EXPECT_EQ(static_cast<int>(BugKind::Assertion), 0);
  EXPECT_EQ(static_cast<int>(BugKind::Livelock), 4);
  EXPECT_EQ(static_cast<int>(BugKind::DataRace), 9);
  EXPECT_EQ(static_cast<int>(OpKind::CompareExchange), 6);
  EXPECT_EQ(static_cast<int>(OpKind::Wait), 14);
  EXPECT_EQ(static_cast<int>(OpKind::Yield), 24);
  EXPECT_EQ(static_cast<int>(OpKind::Fail), 39);
  EXPECT_EQ(static_cast<int>(Severity::Suspicion), 2);
  EXPECT_EQ(static_cast<int>(ChoicePolicy::Where::Nowhere), 2);
  EXPECT_EQ(Outcome(ToolError{}).index(), 5u);
}

TEST(ScheduleFile, SavedIsLoaded) {
  const TemporaryDirectory directory;
  Rng rng(2);
  const Schedule schedule = random_schedule(rng);
  ASSERT_TRUE(save_schedule(directory / "s.slalom", schedule).ok());
  const auto loaded = load_schedule(directory / "s.slalom");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(*loaded, schedule);
}

TEST(ScheduleFile, ContentsThatDoNotDecodeAreNamed) {
  const TemporaryDirectory directory;
  const auto path = directory / "s.slalom";
  std::vector<uint8_t> payload = encoded(Schedule{});
  payload.push_back(0);  // extra bytes are as wrong as missing ones
  ASSERT_TRUE(write_container(path, FileKind::Schedule, payload).ok());
  EXPECT_EQ(load_schedule(path).error().message,
            path.string() + ": malformed: its contents are no schedule; write it again");
  EXPECT_THAT(load_schedule(directory / "none").error().message, EndsWith("check the path"));
}

TEST(ScheduleFile, Version1) {
  const AgentId main = AgentId::initial(0);
  Schedule schedule;
  schedule.switches = {{{}, 0, main}, {main, 7, main.child(1)}, {main.child(1), 300, main.interrupt(2)}};
  schedule.data = {{main, 3, 0, 1}, {main.child(1), 1'000'000, 2, UINT32_MAX}};
  schedule.digest = 0x0123456789abcdef;
  expect_golden("v1-schedule.slalom", FileKind::Schedule, schedule);
}

}  // namespace
}  // namespace slalom
