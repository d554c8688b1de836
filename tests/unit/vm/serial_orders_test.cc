// Comparison with the results of serial orders: different names for the same things are equal, different
// results are not.
#include "vm/scenario/serial_orders.h"

#include <gtest/gtest.h>

#include "base/little_endian.h"
#include "inputs/image.h"
#include "vm/guests/linux/calls/call_facts.h"

namespace slalom::vm {
namespace {

CallProgram calls(const char* text) {
  Result<CallProgram> program = parse_calls(text, "test");
  CHECK(program.ok(), "{}", program.ok() ? "" : program.error().message);
  return *std::move(program);
}

struct FlowResult {
  std::vector<int64_t> values;
  std::vector<std::pair<size_t, uint8_t>> data;  // data that calls wrote: offset and value
};

// In the format of guest/flow.c.
std::vector<uint8_t> bytes_of(const CallProgram& program, const FlowResult& gave) {
  const std::vector<uint8_t> image = encode_image(program);
  const auto header = [&](size_t word) { return *get_le<uint32_t>(image, 4 * word); };
  const size_t results = header(3), data = header(4) - results;
  std::vector<uint8_t> bytes(image.begin() + static_cast<ptrdiff_t>(results), image.end());
  for (size_t i = 0; i < 8 * gave.values.size(); ++i)
    bytes[i] = static_cast<uint8_t>(static_cast<uint64_t>(gave.values[i / 8]) >> (8 * (i % 8)));
  for (const auto& [where, what] : gave.data) bytes[data + where] = what;
  CHECK(gave.values.size() == program.calls() && decode_results(program, bytes).ok(), "the results");
  return bytes;
}

class Results {
 public:
  Results(const char* first, const char* second)
      : flows_{calls(first), calls(second)}, results_(flows_, {"one", "two"}) {}
  Results& add(const FlowResult& first, const FlowResult& second) {
    results_.add({bytes_of(flows_[0], first), bytes_of(flows_[1], second)});
    return *this;
  }
  std::string judge(const FlowResult& first, const FlowResult& second) const {
    return results_.judge({bytes_of(flows_[0], first), bytes_of(flows_[1], second)});
  }

 private:
  std::vector<CallProgram> flows_;
  SerialResults results_;
};

TEST(SerialResults, WhatNoOrderGivesIsWrong) {
  const Results results =
      Results("mkdir(\"/tmp/a\", 0755)", "rmdir(\"/tmp/a\")").add({{0}}, {{0}}).add({{0}}, {{-2}});
  EXPECT_EQ(results.judge({{0}}, {{0}}), "");
  EXPECT_EQ(results.judge({{0}}, {{-2}}), "");
  EXPECT_EQ(results.judge({{0}}, {{-39}}),
            "rmdir(\"/tmp/a\") of two gives -39 (ENOTEMPTY), as in no order of whole calls");
  const Results both = Results("getuid()", "getuid()").add({{0}}, {{1}}).add({{1}}, {{0}});
  EXPECT_EQ(both.judge({{1}}, {{1}}),
            "calls gave results that they give together in no order of whole calls");
}

TEST(SerialResults, DataIsComparedUnlessSomebodyTellsTheTime) {
  const char* read = "read(0, &b(4), 4)";
  const Results results = Results(read, "sync()").add({{4}, {{0, 'a'}}}, {{0}});
  EXPECT_EQ(results.judge({{4}, {{0, 'a'}}}, {{0}}), "");
  EXPECT_EQ(results.judge({{4}, {{0, 'b'}}}, {{0}}),
            "calls gave data that they give in no order of whole calls");
  const Results timed = Results(read, "fstat(0, &s(144))").add({{4}, {{0, 'a'}}}, {{0}});
  EXPECT_EQ(timed.judge({{4}, {{0, 'b'}}}, {{0}}), "");
}

TEST(SerialResults, DescriptorsAreThoseOfTheCallsThatMadeThem) {
  const Results results =
      Results("a = open(\"/a\", O_RDONLY)\nb = open(\"/b\", O_RDONLY)\nread(b, &x(1), 1)", "sync()")
          .add({{3, 4, 1}}, {{0}})
          .add({{-2, 3, 1}}, {{0}});
  EXPECT_EQ(results.judge({{4, 3, 1}}, {{0}}), "");
  EXPECT_EQ(results.judge({{-2, 4, 1}}, {{0}}), "");
  EXPECT_NE(results.judge({{4, -2, 1}}, {{0}}), "");  // whether a process was created is not a name
  EXPECT_NE(results.judge({{3, 4, 0}}, {{0}}), "");
}

TEST(SerialResults, DescriptorsInDataAreNamesToo) {
  const Results pipes =
      Results("pipe(&p(8))\nread(p[0], &x(1), 1)", "sync()").add({{0, 1}, {{0, 3}, {4, 4}}}, {{0}});
  EXPECT_EQ(pipes.judge({{0, 1}, {{0, 5}, {4, 6}}}, {{0}}), "");
}

TEST(SerialResults, CopiesOfDescriptorsAreNamesToo) {
  const CallProgram poll = calls("fd = open(\"/a\", O_RDONLY)\npoll({i32 fd, u16 POLLIN, u16 0}, 1, 0)");
  const auto copy = std::ranges::find(poll.steps, CallStep::Kind::Store, &CallStep::kind);
  ASSERT_NE(copy, poll.steps.end());
  SerialResults results({poll}, {"one"});
  results.add({bytes_of(poll, {{3, 1}, {{copy->number, 3}}})});
  EXPECT_EQ(results.judge({bytes_of(poll, {{5, 1}, {{copy->number, 5}}})}), "");
  EXPECT_NE(results.judge({bytes_of(poll, {{5, 1}, {{copy->number, 5}, {copy->number + 6u, 1}}})}), "");
}

TEST(SerialResults, ProcessesAreThoseOfTheCallsThatMadeThem) {
  const Results results = Results("fork()\nwait4(-1, &s(4), 0, 0)", "fork()\nwait4(-1, &s(4), 0, 0)")
                              .add({{100, 100}}, {{101, 101}});
  EXPECT_EQ(results.judge({{105, 105}}, {{103, 103}}), "");
  EXPECT_NE(results.judge({{105, 103}}, {{103, 105}}), "");  // each waited for the other flow's child
  EXPECT_NE(results.judge({{105, 99}}, {{103, 103}}), "");
  EXPECT_NE(results.judge({{-11, -10}}, {{103, 103}}), "");
}

TEST(SerialResults, InterruptedCallsAreNotJudgedWhereSignalsCome) {
  const Results quiet = Results("read(0, &b(1), 1)", "sync()").add({{1}}, {{0}});
  EXPECT_NE(quiet.judge({{-EINTR}}, {{0}}), "");
  const Results signals = Results("read(0, &b(1), 1)", "kill(7, SIGCONT)").add({{1}}, {{0}});
  EXPECT_EQ(signals.judge({{-EINTR}}, {{0}}), "");
  EXPECT_NE(signals.judge({{2}}, {{0}}), "");
}

bool timed(const char* text) {
  const CallProgram program = calls(text);
  return std::ranges::any_of(program.steps, [&](const CallStep& step) {
    return step.kind == CallStep::Kind::Call && depends_on_time(program, step);
  });
}

TEST(CallFacts, TimeoutsThatCanRunOutDependOnTime) {
  for (const char* text : {
           "poll({i32 0, u16 POLLIN, u16 0}, 1, 1)",
           "ppoll({i32 0, u16 POLLIN, u16 0}, 1, {u64 0, u64 5}, 0, 8)",
           "select(1, &r(128), 0, 0, {u64 1, u64 0})",
           "pselect6(1, &r(128), 0, 0, {u64 1, u64 0}, 0)",
           "epoll_wait(3, &e(12), 1, 20)",
           "epoll_pwait(3, &e(12), 1, 20, 0, 8)",
           "epoll_pwait2(3, &e(12), 1, {u64 0, u64 1}, 0, 8)",
           "futex(&f(4), FUTEX_WAIT, 0, {u64 0, u64 1000}, 0, 0)",
           "semtimedop(0, {u16 0, i16 -1, u16 0}, 1, {u64 0, u64 1000})",
           "rt_sigtimedwait({u64 1}, 0, {u64 0, u64 1000}, 8)",
           "mq_timedreceive(3, &m(64), 64, 0, {u64 0, u64 1000})",
           "mq_timedsend(3, \"m\", 1, 0, {u64 0, u64 1000})",
           "recvmmsg(3, &m(64), 1, 0, {u64 0, u64 1000})",
           "io_getevents(0, 1, 1, &e(32), {u64 0, u64 1000})",
           "nanosleep({u64 0, u64 1}, 0)",
           "n = getpid()\npoll({i32 0, u16 POLLIN, u16 0}, 1, n)",
       })
    EXPECT_TRUE(timed(text)) << text;
  for (const char* text : {
           "poll({i32 0, u16 POLLIN, u16 0}, 1, -1)",
           "poll({i32 0, u16 POLLIN, u16 0}, 1, 0)",
           "ppoll({i32 0, u16 POLLIN, u16 0}, 1, 0, 0, 8)",
           "ppoll({i32 0, u16 POLLIN, u16 0}, 1, {u64 0, u64 0}, 0, 8)",
           "select(1, &r(128), 0, 0, 0)",
           "epoll_wait(3, &e(12), 1, -1)",
           "futex(&f(4), FUTEX_WAIT, 0, 0, 0, 0)",
           "futex(&f(4), FUTEX_WAKE, 1, 1, 0, 0)",
           "rt_sigtimedwait({u64 1}, 0, 0, 8)",
           "recvmmsg(3, &m(64), 1, 0, 0)",
           "read(0, &b(1), 1)",
       })
    EXPECT_FALSE(timed(text)) << text;
}

}  // namespace
}  // namespace slalom::vm
