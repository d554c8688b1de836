// The contents of one block of a trace, inside a file that is otherwise right, so that every mutation gets
// past the checksums. The first byte is the block's type. The same bytes are also read as a trace of
// version 2.
#include "base/block_file.h"
#include "fuzz/harness.h"
#include "trace/files/serialise.h"
#include "trace/files/trace_stream.h"
#include "unit/trace/made_up_names.h"
#include "unit/trace/random_values.h"
#include "unit/trace/transcript.h"

namespace slalom {
namespace {

enum : uint8_t { kInfo = 1, kNames = 2, kEntries = 3, kEnd = 4 };

std::vector<uint8_t> contents_of_info() {
  ByteWriter out;
  for (const char* text : {"toy", "a bank", ""}) out.text(text);
  out.u8(15);
  return out.take();
}

std::string file_with(uint8_t type, std::span<const uint8_t> contents) {
  std::vector<uint8_t> file = block_file_header(FileKind::Trace);
  uint32_t number = 0;
  const auto add = [&](uint8_t of, std::span<const uint8_t> bytes) {
    const std::vector<uint8_t> block = pack_block(of, number++, bytes);
    file.insert(file.end(), block.begin(), block.end());
  };
  if (type != kInfo) add(kInfo, contents_of_info());
  add(type, contents);
  return {file.begin(), file.end()};
}

void use(std::string file) {
  Result<TraceReader> reader = TraceReader::parse(std::move(file));
  if (!reader.ok()) {
    CHECK(!reader.error().message.empty());
    return;
  }
  TraceLog log;
  const Result<TraceEnd> end = reader->read_into(log);
  if (!end.ok()) {
    CHECK(!end.error().message.empty());
    return;
  }
  CHECK(end->events == log.events().size() && end->accesses == log.accesses().size());
  for (const Event& event : log.events()) CHECK(!name(event.op).empty());
  for (const Access& access : log.accesses()) CHECK(!name(access.op()).empty());
  for (const Event& event : log.events()) reader->names().object(event.object);

  ByteWriter out;
  TraceEncoder encoder;
  for (const TraceLog::Entry& entry : log.order()) {
    if (entry.what == TraceLog::Entry::What::Event) {
      encoder.event(out, log.events()[entry.index]);
    } else {
      const TraceLog::Batch& batch = log.batches()[entry.index];
      encoder.accesses(out, std::span(log.accesses()).subspan(batch.first, batch.count), batch.header);
    }
  }
  TraceLog again;
  TraceDecoder decoder;
  ByteReader in(out.bytes());
  while (in.ok() && !in.at_end()) decoder.entry(in, again);
  again.on_end(log.outcome());
  CHECK(in.ok() && transcript(again) == transcript(log), "a trace changed when written again");
}

}  // namespace

std::vector<std::vector<uint8_t>> seed_inputs() {
  std::vector<std::vector<uint8_t>> seeds;
  const auto add = [&](uint8_t type, const std::vector<uint8_t>& contents) {
    seeds.emplace_back(1, type).insert(seeds.back().end(), contents.begin(), contents.end());
  };
  add(kInfo, contents_of_info());
  const MadeUpNames names;
  for (uint64_t i = 0; i < 20; ++i) {
    Rng rng(1, i);
    const TraceLog log = random_trace(rng);
    NameCollector collector(names);
    TraceEncoder encoder;
    ByteWriter entries, named, end;
    for (const Event& event : log.events()) {
      collector.note(event);
      encoder.event(entries, event);
    }
    for (const TraceLog::Batch& batch : log.batches()) {
      const auto accesses = std::span(log.accesses()).subspan(batch.first, batch.count);
      collector.note(accesses, batch.header);
      encoder.accesses(entries, accesses, batch.header);
    }
    collector.write(named, [] {});
    encode_trace_end(end, log.outcome());
    end.u64(0);
    end.u64(0);
    add(kEntries, entries.bytes());
    add(kNames, named.bytes());
    add(kEnd, end.bytes());
  }
  return seeds;
}

}  // namespace slalom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace slalom;
  if (size == 0) return 0;
  const std::span<const uint8_t> contents(data + 1, size - 1);
  use(file_with(data[0], contents));
  const std::vector<uint8_t> old = *pack_container(FileKind::Trace, contents);
  use({old.begin(), old.end()});
  return 0;
}
