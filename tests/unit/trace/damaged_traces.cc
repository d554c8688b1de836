// Traces that were cut off or damaged, and files that are no traces.
#include <set>

#include "trace/files/schedule_file.h"
#include "unit/trace/random_values.h"
#include "unit/trace/saved_trace.h"
#include "unit/trace/transcript.h"

namespace slalom {
namespace {

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

}  // namespace
}  // namespace slalom
