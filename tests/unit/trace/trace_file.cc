#include "trace/files/trace_file.h"

#include <gtest/gtest.h>

#include "trace/files/serialise.h"
#include "unit/base/temporary_directory.h"
#include "unit/trace/golden.h"
#include "unit/trace/random_values.h"

namespace slalom {
namespace {

// Records every call, as a second description of a trace without the encoder.
class Transcript : public EventSink {
 public:
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override {
    text_ += fmt::format("batch {} {} {} of {}\n", header.agent.raw, header.thread, header.first_step.raw,
                         accesses.size());
    for (const Access& a : accesses)
      text_ += fmt::format("  {:x} {} {} {} {:x} {} {:x} {:x} {} {}\n", a.pc().raw, uint64_t{a.op_bits},
                           name(a.modify()), uint64_t{a.size}, a.address().raw, uint64_t{a.retired}, a.value,
                           uint64_t{a.physical}, uint64_t{a.ring}, uint64_t{a.wrote});
  }
  void on_event(const Event& e) override {
    text_ += fmt::format("event {} {} {} {} {} {} {} {} \"{}\"\n", e.step.raw, e.agent.raw, name(e.op),
                         e.pc.raw, e.object.raw, e.state, e.other.raw, e.value, e.text);
  }
  void on_end(const Outcome& outcome) override { text_ += fmt::format("end {}\n", outcome.index()); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string transcript(const TraceLog& log) {
  Transcript sink;
  log.replay_into(sink);
  return sink.text();
}

std::vector<uint8_t> encoded(const TraceLog& log) {
  ByteWriter out;
  encode(out, log);
  return out.take();
}

TEST(TraceFile, EverythingComesBack) {
  for (uint64_t i = 0; i < 300; ++i) {
    Rng rng(21, i);
    const TraceLog log = random_trace(rng);
    const std::vector<uint8_t> bytes = encoded(log);
    ByteReader in(bytes);
    TraceLog back;
    decode(in, back);
    ASSERT_TRUE(in.ok() && in.at_end());
    ASSERT_EQ(transcript(back), transcript(log));
    for (size_t size = 0; size < bytes.size(); size += 1 + size / 8) {
      ByteReader cut{std::span(bytes).first(size)};
      TraceLog partial;
      decode(cut, partial);
      ASSERT_FALSE(cut.ok()) << size << " of " << bytes.size();
    }
  }
}

TEST(TraceFile, DecodingReplacesWhatWasThere) {
  Rng rng(3);
  const TraceLog log = random_trace(rng);
  TraceLog back = random_trace(rng);
  const std::vector<uint8_t> bytes = encoded(log);
  ByteReader in(bytes);
  decode(in, back);
  EXPECT_EQ(transcript(back), transcript(log));
}

// Two agents run the same loop over their own arrays, as programs do.
TEST(TraceFile, AnAccessTakesAFewBytes) {
  TraceLog log;
  uint64_t step = 0;
  constexpr uint64_t kBatches = 200;
  constexpr uint64_t kAccesses = 50;
  for (uint64_t batch = 0; batch < kBatches; ++batch) {
    const uint64_t agent = batch % 2;
    std::vector<Access> accesses;
    for (uint64_t i = 0; i < kAccesses; ++i) {
      Access access = {};
      access.pc_bits = 0xffff81234000u + 5 * (i % 10);
      access.op_bits = static_cast<uint64_t>(i % 3 == 0 ? OpKind::Store : OpKind::Load);
      access.size = 8;
      access.address_bits =
          0xffff88810000u + 0x100000 * agent + 8 * (batch / 2 * 5 + i / 10) + 4096 * (i % 10);
      access.retired = i;
      access.value = i / 10;
      access.physical = access.address_bits & 0xffffff;
      access.wrote = i % 3 == 0;
      accesses.push_back(access);
    }
    log.on_accesses(accesses, {AgentId::initial(static_cast<uint32_t>(agent)), agent, Step{step}});
    step += kAccesses;
  }
  log.on_end(Exited{});
  EXPECT_LT(encoded(log).size(), 8 * kBatches * kAccesses);
  EXPECT_LT(to_file(FileKind::Trace, log)->size(), 2 * kBatches * kAccesses);
}

TEST(TraceFile, SavedIsLoaded) {
  const TemporaryDirectory directory;
  Rng rng(8);
  const TraceLog log = random_trace(rng);
  ASSERT_TRUE(save_trace(directory / "t.slalom", log).ok());
  const auto loaded = load_trace(directory / "t.slalom");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(transcript(*loaded), transcript(log));
}

// Well-formed numbers that no execution can contain.
TEST(TraceFile, ImpossibleAccessesAreRefused) {
  const auto decodes = [](uint8_t head, int64_t retired, std::vector<uint8_t> more = {}) {
    ByteWriter out;
    encode(out, Outcome(Exited{}));
    out.u64(1);  // entries
    out.u8(0);   // a batch
    encode(out, AgentId::initial(0));
    out.u64(0);
    out.i64(0);
    out.u64(1);  // accesses
    out.u8(head);
    for (const uint8_t byte : more) out.u8(byte);
    out.i64(retired);
    for (int i = 0; i < 4; ++i) out.i64(0);
    ByteReader in(out.bytes());
    TraceLog log;
    decode(in, log);
    return in.ok() && in.at_end();
  };
  EXPECT_TRUE(decodes(0, 0));
  EXPECT_TRUE(decodes(5, 65'535));
  EXPECT_FALSE(decodes(6, 0));       // no such operation
  EXPECT_FALSE(decodes(0, 65'536));  // beyond the batch
  EXPECT_FALSE(decodes(0, -1));
  const auto last = static_cast<uint8_t>(kOpKinds - 1);
  EXPECT_TRUE(decodes(7, 0, {last, 8}));  // the long form: the operation, then the size
  EXPECT_FALSE(decodes(7, 0, {static_cast<uint8_t>(last + 1), 8}));
}

TEST(TraceFile, Version1) {
  const AgentId main = AgentId::initial(0);
  const AgentId child = main.child(0);
  TraceLog log;
  for (int op = 0; op < 40; ++op)
    log.on_event({Step{static_cast<uint64_t>(op)},
                  main,
                  static_cast<OpKind>(op),
                  Place{0x1000u + 4 * op},
                  {},
                  0,
                  {},
                  op - 20,
                  ""});
  log.on_event({Step{40}, main, OpKind::Spawn, Place{0x2000}, ObjectId{77}, 1, child, 0, "spawned"});
  Access access = {};
  access.pc_bits = 0x401000;
  access.op_bits = static_cast<uint64_t>(OpKind::CompareExchange);
  access.size = 4;
  access.address_bits = 0xffff88800010;
  access.retired = 2;
  access.value = 0xdeadbeef;
  access.physical = 0x10;
  access.ring = 3;
  access.wrote = 1;
  Access wide = access;
  wide.size = 16;
  wide.retired = 9;
  wide.address_bits = 0x7fff00000000;
  log.on_accesses(std::vector<Access>{access, wide}, {child, 5, Step{41}});
  log.on_accesses({}, {main, 0, Step{60}});
  log.on_end(Deadlocked{{{main, OpKind::Join, ObjectId{77}, Place{0x2004}, {child}}}});
  expect_golden("v1-trace.slalom", FileKind::Trace, log);
}

TEST(TraceFile, Version2KnowsTheLimitOfNotes) {
  TraceLog log;
  log.on_event({.step = Step{1},
                .agent = AgentId::initial(0),
                .op = OpKind::Note,
                .pc = Place{0x2000},
                .text = "many"});
  log.on_end(LimitReached{77, {AgentId::initial(0)}, LimitReached::Limit::Notes});
  expect_golden("v2-trace.slalom", FileKind::Trace, log);
  const auto trace = load_trace(std::filesystem::path(source_dir()) / "tests/golden/formats/v2-trace.slalom");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const auto& limit = std::get<LimitReached>(trace->outcome());
  EXPECT_EQ(limit.limit, LimitReached::Limit::Notes);
  EXPECT_EQ(limit.steps, 77u);
}

}  // namespace
}  // namespace slalom
