#include "trace/files/trace_stream.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "unit/trace/random_values.h"
#include "unit/trace/saved_trace.h"
#include "unit/trace/transcript.h"

namespace slalom {
namespace {

TEST(TraceStream, EverythingComesBack) {
  for (uint64_t i = 0; i < 300; ++i) {
    Rng rng(21, i);
    const TraceLog log = random_trace(rng);
    auto reader = TraceReader::parse(written(log)).value();
    EXPECT_EQ(reader.info().kind, "toy");
    EXPECT_EQ(reader.info().target, "a bank");
    EXPECT_EQ(reader.info().detectors, "race,heap");
    EXPECT_EQ(reader.info().recorded, (Facilities{.accesses = true, .memory = true}));
    EXPECT_FALSE(reader.info().races_count);
    for (int pass = 0; pass < 2; ++pass) {
      Transcript back;
      const auto end = reader.read_into(back);
      ASSERT_TRUE(end.ok()) << end.error().message;
      EXPECT_EQ(end->missing, "");
      EXPECT_EQ(end->events, log.events().size());
      EXPECT_EQ(end->accesses, log.accesses().size());
      ASSERT_EQ(back.text(), transcript(log));
    }
  }
}

// What capsules do not hold of an outcome, detectors see.
TEST(TraceStream, OutcomesComeBackWhole) {
  const std::vector<Outcome> outcomes = {
      Deadlocked{.waiting = {}, .doubt = "One of them may still be woken."},
      LimitReached{.steps = 9, .enabled = {}, .limit = LimitReached::Limit::Check},
      LimitReached{.steps = 9, .enabled = {}, .limit = LimitReached::Limit::Notes},
      Abandoned{.why = "enough", .reason = Abandoned::Reason::NotPossible}};
  for (const Outcome& outcome : outcomes) {
    TraceLog log;
    log.on_end(outcome);
    auto reader = TraceReader::parse(written(log)).value();
    Transcript back;
    ASSERT_TRUE(reader.read_into(back).ok());
    EXPECT_EQ(back.text(), transcript(log));
  }
}

TEST(TraceStream, NamesComeBack) {
  for (uint64_t i = 0; i < 100; ++i) {
    Rng rng(22, i);
    TraceLog log = random_trace(rng);
    const AgentId flow = AgentId::initial(2);
    for (int64_t call = 0; call < 4; ++call) {
      log.on_event({.agent = flow, .op = OpKind::SyscallEnter, .value = call % 2});
      log.on_event({.agent = flow, .op = OpKind::SyscallExit, .value = call - 2});
    }
    auto reader = TraceReader::parse(written(log)).value();
    Transcript sink;
    ASSERT_TRUE(reader.read_into(sink).ok());
    expect_named(reader.names(), log);
    EXPECT_EQ(reader.names().place(Place{0x5eed5eed5eed}), "0x5eed5eed5eed");  // occurs nowhere
  }
}

// Toy machines learn what an agent runs when it is spawned, which may be after its number was first seen.
TEST(TraceStream, NamesThatMachinesLearnLateComeBack) {
  class LateNames final : public MadeUpNames {
   public:
    bool late = false;
    std::string agent(AgentId) const override { return late ? "worker" : "agent"; }
    std::string object(ObjectId) const override { return late ? "end of worker" : "end of agent"; }
  };
  const TemporaryDirectory directory;
  LateNames names;
  const auto writer = TraceWriter::create(directory / "t.slalom", kInfo, names).value();
  const AgentId worker = AgentId::initial(0).child(0);
  writer->on_event({.agent = AgentId::initial(0), .op = OpKind::Spawn, .other = worker});
  const std::string filling(300'000, 'x');
  writer->on_event({.agent = worker, .op = OpKind::Note, .object = ObjectId{worker.raw}, .text = filling});
  names.late = true;
  writer->on_end(Exited{});
  ASSERT_TRUE(writer->close().ok());
  auto reader = TraceReader::open(directory / "t.slalom").value();
  Transcript sink;
  ASSERT_TRUE(reader.read_into(sink).ok());
  EXPECT_EQ(reader.names().agent(worker), "worker");
  EXPECT_EQ(reader.names().object(ObjectId{worker.raw}), "end of worker");
}

// Two agents run the same loop over their own arrays, as programs do.
TEST(TraceStream, AnAccessTakesAFewBytes) {
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
  EXPECT_LT(written(log, StoredNames()).size(), 2 * kBatches * kAccesses);
}

// Counts, and forgets.
class Counter final : public EventSink {
 public:
  void on_accesses(std::span<const Access> accesses, const BatchHeader&) override {
    for (const Access& access : accesses) sum += access.value;
  }
  void on_event(const Event&) override {}
  void on_end(const Outcome&) override { ended = true; }
  uint64_t sum = 0;
  bool ended = false;
};

uint64_t peak_memory() {  // in bytes
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) << 10;
}

// A trace whose accesses alone would take 320 MB in memory. SLALOM_TRACE_ACCESSES asks for another length.
TEST(TraceStream, MemoryIsBounded) {
#ifdef SLALOM_SANITIZED
  constexpr uint64_t kDefault = 500'000;  // the sanitizer keeps memory that was freed
#else
  constexpr uint64_t kDefault = 10'000'000;
#endif
  const char* wanted = std::getenv("SLALOM_TRACE_ACCESSES");
  const uint64_t count = wanted != nullptr ? std::stoull(wanted) : kDefault;
  constexpr uint64_t kBatch = 1000;
  const TemporaryDirectory directory;
  const MadeUpNames names;
  const uint64_t before = peak_memory();
  const auto writer = TraceWriter::create(directory / "t.slalom", kInfo, names).value();
  Rng rng(1);
  uint64_t sum = 0;
  std::vector<Access> accesses(kBatch);
  for (uint64_t first = 0; first < count; first += kBatch) {
    for (uint64_t i = 0; i < kBatch; ++i) {
      Access& access = accesses[i];
      access.pc_bits = 0x401000 + 4 * (i % 100);
      access.op_bits = static_cast<uint64_t>(OpKind::Store);
      access.size = 8;
      access.address_bits = 0x555500000000 + 8 * rng.below(50'000);
      access.retired = i;
      access.wrote = 1;
      access.value = rng.next();
      sum += access.value;
    }
    writer->on_accesses(accesses, {AgentId::initial(first / kBatch % 3), 0, Step{first}});
  }
  writer->on_end(Exited{});
  ASSERT_TRUE(writer->close().ok());
  auto reader = TraceReader::open(directory / "t.slalom").value();
  Counter counter;
  const auto end = reader.read_into(counter);
  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_EQ(end->accesses, count);
  EXPECT_EQ(counter.sum, sum);
  EXPECT_TRUE(counter.ended);
  const uint64_t grown = peak_memory() - before;
  RecordProperty("file_mb", std::to_string(std::filesystem::file_size(directory / "t.slalom") >> 20));
  RecordProperty("grown_mb", std::to_string(grown >> 20));
  if (wanted != nullptr)
    std::printf("a file of %ju MiB, %ju MiB of memory\n",
                std::filesystem::file_size(directory / "t.slalom") >> 20,
                static_cast<uintmax_t>(grown >> 20));
#ifndef SLALOM_SANITIZED
  EXPECT_LT(grown, uint64_t{64} << 20);
#endif
}

}  // namespace
}  // namespace slalom
