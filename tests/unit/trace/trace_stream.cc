#include "trace/files/trace_stream.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <set>

#include "base/file.h"
#include "support/source_dir.h"
#include "trace/files/schedule_file.h"
#include "unit/base/temporary_directory.h"
#include "unit/trace/made_up_names.h"
#include "unit/trace/random_values.h"
#include "unit/trace/transcript.h"

namespace slalom {
namespace {

const TraceInfo kInfo{.kind = "toy",
                      .target = "a bank",
                      .detectors = "race,heap",
                      .recorded = {.accesses = true, .memory = true},
                      .races_count = false};

std::string written(const TraceLog& log, const Names& names = MadeUpNames(), const TraceInfo& info = kInfo) {
  const TemporaryDirectory directory;
  const auto writer = TraceWriter::create(directory / "t.slalom", info, names).value();
  log.replay_into(*writer);
  const Result<void> closed = writer->close();
  EXPECT_TRUE(closed.ok()) << closed.error().message;
  const std::vector<uint8_t> bytes = read_file(directory / "t.slalom").value();
  return {bytes.begin(), bytes.end()};
}

std::filesystem::path golden(const char* name) {
  return std::filesystem::path(source_dir()) / "tests/golden/formats" / name;
}

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

void expect_named(const Names& stored, const TraceLog& log) {
  const MadeUpNames live;
  std::map<AgentId, uint64_t> made;
  const auto place = [&](Place pc) {
    EXPECT_EQ(stored.place(pc), live.place(pc));
    EXPECT_EQ(stored.source(pc), live.source(pc));
    EXPECT_EQ(stored.line(pc), live.line(pc));
    for (const bool writes : {false, true}) EXPECT_EQ(stored.marking(pc, writes), live.marking(pc, writes));
  };
  const auto agent = [&](AgentId id) {
    if (!id) return;
    EXPECT_EQ(stored.agent(id), live.agent(id));
    EXPECT_EQ(stored.role(id), live.role(id));
  };
  for (const Event& event : log.events()) {
    agent(event.agent);
    agent(event.other);
    place(event.pc);
    EXPECT_EQ(stored.object(event.object), live.object(event.object));
    if (event.op == OpKind::Call) place(Place{event.object.raw});
    if (event.op == OpKind::SyscallEnter) {
      const uint64_t ordinal = made[event.agent]++;
      EXPECT_EQ(stored.system_call(event.agent, ordinal, event.value),
                live.system_call(event.agent, ordinal, event.value));
    }
    if (event.op == OpKind::SyscallExit) {
      EXPECT_EQ(stored.system_result(event.value), live.system_result(event.value));
    }
  }
  for (const TraceLog::Batch& batch : log.batches()) agent(batch.header.agent);
  for (const Access& access : log.accesses()) {
    place(access.pc());
    EXPECT_EQ(stored.object(access.address()), live.object(access.address()));
  }
  if (const auto* deadlock = std::get_if<Deadlocked>(&log.outcome()))
    for (const auto& waiting : deadlock->waiting) {
      agent(waiting.agent);
      place(waiting.pc);
      EXPECT_EQ(stored.object(waiting.object), live.object(waiting.object));
      for (const AgentId holder : waiting.held_by) agent(holder);
    }
  if (const auto* fault = std::get_if<Faulted>(&log.outcome())) {
    agent(fault->agent);
    place(fault->pc);
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

TraceLog small_trace() {
  Rng rng(5);
  TraceLog log;
  // Enough for several blocks: texts do not compress here.
  for (int i = 0; i < 6; ++i) {
    std::string text(100'000, ' ');
    for (size_t at = 0; at < text.size(); at += 1000) text[at] = static_cast<char>(rng.next());
    log.on_event({.step = Step{static_cast<uint64_t>(i)},
                  .agent = AgentId::initial(0),
                  .op = OpKind::Note,
                  .pc = Place{0x1000u + i},
                  .text = text});
    const std::vector<Access> accesses = {random_access(rng, 1), random_access(rng, 2)};
    log.on_accesses(accesses, {AgentId::initial(1), 0, Step{random_number(rng)}});
  }
  log.on_end(Exited{});
  return log;
}

// Returns how many bytes of the whole transcript came back before the end that the reader makes up.
size_t expect_beginning(const std::string& file, const std::string& whole) {
  auto reader = TraceReader::parse(file);
  if (!reader.ok()) {
    EXPECT_FALSE(reader.error().message.empty());
    return 0;
  }
  Transcript sink;
  const auto end = reader->read_into(sink);
  if (!end.ok()) return 0;
  if (end->missing.empty()) {
    EXPECT_EQ(sink.text(), whole);
    return whole.size();
  }
  const size_t own_end = sink.text().rfind("end ");
  EXPECT_EQ(sink.text().substr(0, own_end), whole.substr(0, own_end));
  EXPECT_NE(end->missing.find(fmt::format("after {} accesses and {} events", end->accesses, end->events)),
            std::string::npos);
  return own_end;
}

TEST(TraceStream, CutOffAnywhereItGivesItsWholeBlocks) {
  const TraceLog log = small_trace();
  const std::string file = written(log);
  const std::string whole = transcript(log);
  ASSERT_LT(file.size(), 40'000u);
  std::set<size_t> beginnings;
  size_t before = 0;
  for (size_t size = 0; size < file.size(); ++size) {
    const size_t came_back = expect_beginning(file.substr(0, size), whole);
    ASSERT_GE(came_back, before);
    before = came_back;
    beginnings.insert(came_back);
  }
  EXPECT_LT(before, whole.size());
  EXPECT_GE(beginnings.size(), 3u);  // of several blocks
  EXPECT_EQ(expect_beginning(file, whole), whole.size());
}

TEST(TraceStream, DamageAnywhereIsNoticed) {
  const TraceLog log = small_trace();
  const std::string file = written(log);
  const std::string whole = transcript(log);
  for (size_t at = 0; at < file.size(); ++at) {
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    ASSERT_LT(expect_beginning(damaged, whole), whole.size()) << "byte " << at;
  }
  EXPECT_FALSE(TraceReader::parse(file + "x").value().read_into(*std::make_unique<Transcript>()).ok());
}

TEST(TraceStream, AWriterThatIsKilledLeavesItsBlocks) {
  const TemporaryDirectory directory;
  const MadeUpNames names;
  const TraceLog log = small_trace();
  const auto writer = TraceWriter::create(directory / "t.slalom", kInfo, names).value();
  for (const Event& event : std::span(log.events()).first(5)) writer->on_event(event);
  auto reader = TraceReader::open(directory / "t.slalom").value();  // the writer has not ended
  Transcript sink;
  const TraceEnd end = reader.read_into(sink).value();
  EXPECT_NE(end.missing, "");
  EXPECT_EQ(end.events, 3u);
  EXPECT_EQ(reader.names().place(Place{0x1000}), names.place(Place{0x1000}));
}

std::string refusal(const std::string& file) {
  const auto reader = TraceReader::parse(file);
  return reader.ok() ? "" : reader.error().message;
}

TEST(TraceStream, OtherFilesAreRefusedWithAReason) {
  EXPECT_EQ(refusal(""), "empty file, not a trace; write it again");
  EXPECT_EQ(refusal("#!/bin/sh\n" + std::string(1000, 'x')), "not a slalom file; a trace is needed here");
  const TemporaryDirectory directory;
  ASSERT_TRUE(save_schedule(directory / "s.slalom", Schedule{}).ok());
  const std::vector<uint8_t> schedule = read_file(directory / "s.slalom").value();
  EXPECT_EQ(refusal({schedule.begin(), schedule.end()}),
            "this is a schedule, not a trace; it does not name its target; use the capsule of the finding");
  EXPECT_FALSE(TraceReader::open(directory / "none").ok());
  EXPECT_FALSE(TraceReader::open(directory.path()).ok());

  // And a trace is refused where something else is needed.
  const std::string trace = written(small_trace());
  const auto refused =
      parse_schedule(std::span(reinterpret_cast<const uint8_t*>(trace.data()), trace.size()));
  EXPECT_EQ(refused.error().message,
            "this is a trace, not a schedule; use `slalom trace` or `slalom detect` for it");
}

TEST(TraceStream, ATraceOfANewerSlalomIsRefused) {
  std::vector<uint8_t> header = block_file_header(FileKind::Trace);
  header[10] = 200;
  const uint64_t sum = checksum(std::span<const uint8_t>(header).first(32));
  for (size_t i = 0; i < 8; ++i) header[32 + i] = static_cast<uint8_t>(sum >> (8 * i));
  EXPECT_EQ(refusal({header.begin(), header.end()}),
            "made by a newer slalom (trace version 200, this one reads up to 3); update slalom");
}

TEST(TraceStream, APathThatCannotBeWrittenIsAnError) {
  const MadeUpNames names;
  EXPECT_FALSE(TraceWriter::create("/nowhere/t.slalom", kInfo, names).ok());
  const auto full = TraceWriter::create("/dev/full", kInfo, names);
  if (!full.ok()) return;  // noticed at once
  small_trace().replay_into(**full);
  EXPECT_EQ((*full)->close().error().message, "cannot write /dev/full: is the disk full?");
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
#ifdef __SANITIZE_ADDRESS__
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
#ifndef __SANITIZE_ADDRESS__
  EXPECT_LT(grown, uint64_t{64} << 20);
#endif
}

// Well-formed numbers that no execution can contain.
TEST(TraceStream, ImpossibleAccessesAreRefused) {
  const auto decodes = [](uint8_t head, int64_t retired, std::vector<uint8_t> more = {}) {
    ByteWriter out;
    out.u8(0);   // a batch
    out.u64(1);  // its agent
    out.u64(0);
    out.i64(0);
    out.u64(1);  // accesses
    out.u8(head);
    for (const uint8_t byte : more) out.u8(byte);
    out.i64(retired);
    for (int i = 0; i < 4; ++i) out.i64(0);
    ByteReader in(out.bytes());
    Transcript sink;
    TraceDecoder().entry(in, sink);
    EXPECT_EQ(in.ok(), !sink.text().empty());
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
  EXPECT_TRUE(decodes(7, 0, {0x41, 3, 8}));  // with flags
  EXPECT_FALSE(decodes(7, 0, {0x41, 4, 8}));
}

// Files of all versions that there ever were, which must stay readable.
void expect_golden_trace(const char* name, const TraceLog& log, bool named) {
  auto reader = TraceReader::open(golden(name));
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader->has_names(), named);
  Transcript sink;
  const auto end = reader->read_into(sink);
  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_EQ(sink.text(), transcript(log));
}

TEST(TraceStream, Version1) {
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
  expect_golden_trace("v1-trace.slalom", log, false);
}

TEST(TraceStream, Version2KnowsTheLimitOfNotes) {
  TraceLog log;
  log.on_event({.step = Step{1},
                .agent = AgentId::initial(0),
                .op = OpKind::Note,
                .pc = Place{0x2000},
                .text = "many"});
  log.on_end(LimitReached{77, {AgentId::initial(0)}, LimitReached::Limit::Notes});
  expect_golden_trace("v2-trace.slalom", log, false);
}

TEST(TraceStream, Version3) {
  TraceLog log;
  const AgentId main = AgentId::initial(0);
  log.on_event({.step = Step{1}, .agent = main, .op = OpKind::Lock, .pc = Place{16}, .recognised = true});
  log.on_event({.step = Step{2}, .agent = main, .op = OpKind::SyscallEnter, .pc = Place{17}, .value = 3});
  log.on_event({.step = Step{3}, .agent = main, .op = OpKind::SyscallExit, .pc = Place{18}, .value = -3});
  Access access = {};
  access.pc_bits = 0x401000;
  access.op_bits = static_cast<uint64_t>(OpKind::Store);
  access.size = 4;
  access.address_bits = 0x7000;
  access.unordered = 1;
  Access private_access = access;
  private_access.is_private = 1;
  private_access.retired = 1;
  log.on_accesses(std::vector<Access>{access, private_access}, {main, 0, Step{4}});
  log.on_end(Deadlocked{.waiting = {}, .doubt = "Perhaps."});
  const std::string now = written(log);
  if (!std::filesystem::exists(golden("v3-trace.slalom"))) {
    std::string hex;
    for (const char byte : now) hex += fmt::format("{:02x}", static_cast<uint8_t>(byte));
    FAIL() << "the file is missing. Its bytes, for `xxd -r -p`: " << hex;
  }
  expect_golden_trace("v3-trace.slalom", log, true);
  auto reader = TraceReader::open(golden("v3-trace.slalom")).value();
  Transcript sink;
  ASSERT_TRUE(reader.read_into(sink).ok());
  expect_named(reader.names(), log);

  // Compression may change, contents may not.
  const auto contents = [](std::istream& file) {
    file.ignore(kContainerHeader);
    BlockReader blocks(file);
    std::vector<std::vector<uint8_t>> all;
    while (const auto block = blocks.next()) {
      all.emplace_back(block->contents.begin(), block->contents.end());
      all.back().push_back(block->type);
    }
    return all;
  };
  std::ifstream then(golden("v3-trace.slalom"), std::ios::binary);
  std::istringstream again(now);
  EXPECT_EQ(contents(then), contents(again)) << "the writer changed: raise the version of this kind";
}

}  // namespace
}  // namespace slalom
