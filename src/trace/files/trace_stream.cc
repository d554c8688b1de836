#include "trace/files/trace_stream.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "trace/files/serialise.h"

namespace slalom {
namespace {

enum BlockType : uint8_t { kInfoBlock = 1, kNamesBlock = 2, kEntriesBlock = 3, kEndBlock = 4 };

constexpr size_t kFullBlock = size_t{256} << 10;  // bytes of entries
constexpr size_t kMostInEntry = size_t{1} << 14;  // accesses; the rest goes into another entry
constexpr size_t kLongestText = kMaxBlock / 2;
constexpr uint64_t kProgressEvery = 64;  // blocks

enum TraceFact : uint8_t { kHasAccesses = 1, kHasLocks = 2, kHasMemory = 4, kRacesCount = 8, kAllFacts = 15 };

void encode_info(ByteWriter& out, const TraceInfo& info) {
  out.text(info.kind);
  out.text(info.target);
  out.text(info.detectors);
  const Facilities& has = info.recorded;
  out.u8(static_cast<uint8_t>((has.accesses ? kHasAccesses : 0) | (has.locks ? kHasLocks : 0) |
                              (has.memory ? kHasMemory : 0) | (info.races_count ? kRacesCount : 0)));
}

void decode_info(ByteReader& in, TraceInfo& info) {
  info.kind = in.text();
  info.target = in.text();
  info.detectors = in.text();
  const uint8_t facts = in.u8();
  if (facts > kAllFacts) in.fail();
  info.recorded = {.accesses = (facts & kHasAccesses) != 0,
                   .locks = (facts & kHasLocks) != 0,
                   .memory = (facts & kHasMemory) != 0};
  info.races_count = (facts & kRacesCount) != 0;
}

// Counts what it passes on.
class CountingSink final : public EventSink {
 public:
  CountingSink(EventSink& next, TraceEnd& end) : next_(next), end_(end) {}
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override {
    end_.accesses += accesses.size();
    next_.on_accesses(accesses, header);
  }
  void on_event(const Event& event) override {
    ++end_.events;
    next_.on_event(event);
  }
  void on_end(const Outcome& outcome) override { next_.on_end(outcome); }

 private:
  EventSink& next_;
  TraceEnd& end_;
};

Error malformed_trace(std::string_view what) {
  return error("malformed: {}; write it again", what);
}

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::create(const std::filesystem::path& path,
                                                         const TraceInfo& info, const Names& names) {
  TRY_ASSIGN(BlockWriter file, BlockWriter::create(path, FileKind::Trace));
  std::unique_ptr<TraceWriter> writer(new TraceWriter(std::move(file), names));
  ByteWriter out;
  encode_info(out, info);
  writer->file_.write(kInfoBlock, out.bytes());
  return writer;
}

void TraceWriter::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  accesses_ += accesses.size();
  names_.note(accesses, header);
  do {
    const std::span<const Access> part = accesses.first(std::min(accesses.size(), kMostInEntry));
    encoder_.accesses(entries_, part, header);
    accesses = accesses.subspan(part.size());
    if (entries_.bytes().size() >= kFullBlock) flush();
  } while (!accesses.empty());
}

void TraceWriter::on_event(const Event& event) {
  ++events_;
  names_.note(event);
  if (event.text.size() > kLongestText) file_.fail("the target wrote a text that is too long for a trace");
  if (file_.failed()) return;
  encoder_.event(entries_, event);
  if (entries_.bytes().size() >= kFullBlock) flush();
}

void TraceWriter::on_end(const Outcome& outcome) {
  names_.note(outcome);
  names_.note_agents_again();
  flush();
  ByteWriter out;
  encode_trace_end(out, outcome);
  out.u64(accesses_);
  out.u64(events_);
  if (out.bytes().size() > kMaxBlock) return file_.fail("the outcome is too long for a trace");
  file_.write(kEndBlock, out.bytes());
}

// The names come first, so that the sink of a reader can use them.
void TraceWriter::flush() {
  ByteWriter out;
  const auto full = [&] { file_.write(kNamesBlock, std::exchange(out, {}).bytes()); };
  names_.write(out, full);
  if (!out.bytes().empty()) full();
  if (!entries_.bytes().empty()) file_.write(kEntriesBlock, std::exchange(entries_, {}).bytes());
}

Result<void> TraceWriter::close() {
  flush();
  return file_.close();
}

Result<TraceReader> TraceReader::open(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return error("{} is a folder, not a trace", path.string());
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!*file) return error("cannot read {}: check that it exists and may be read", path.string());
  return begin(TraceReader(path.string(), std::move(file)));
}

Result<TraceReader> TraceReader::parse(std::string file) {
  return begin(TraceReader("", std::make_unique<std::istringstream>(std::move(file), std::ios::binary)));
}

Result<TraceReader> TraceReader::begin(TraceReader reader) {
  const Result<void> started = reader.read_start();
  if (!started.ok()) return error("{}", reader.in_file(started.error().message));
  return reader;
}

std::string TraceReader::in_file(const std::string& message) const {
  return path_.empty() ? message : path_ + ": " + message;
}

Result<void> TraceReader::read_start() {
  std::vector<uint8_t> start(kContainerHeader);
  const auto read_more = [&](std::vector<uint8_t>& bytes, size_t from) {
    file_->read(reinterpret_cast<char*>(bytes.data()) + from,
                static_cast<std::streamsize>(bytes.size() - from));
    bytes.resize(from + static_cast<size_t>(file_->gcount()));
  };
  read_more(start, 0);
  TRY_ASSIGN(in_blocks_, is_block_file(start, FileKind::Trace));
  if (!in_blocks_) {
    // Foreign files are refused before all of them is read.
    if (start.size() < kContainerHeader || !has_container_magic(start)) {
      TRY(unpack_container(start, FileKind::Trace));
    }
    size_t from = start.size();
    do {
      if (start.size() > kMaxFileSize)
        return malformed_trace("it is larger than a trace of this version can be");
      from = start.size();
      start.resize(from + (size_t{1} << 20));
      read_more(start, from);
    } while (start.size() > from);
    TRY_ASSIGN(old_, unpack_container(start, FileKind::Trace));
    return {};
  }
  blocks_ = std::make_unique<BlockReader>(*file_);
  const auto block = blocks_->next();
  if (!block) return error("nothing of it can be read: {}", blocks_->damage());
  ByteReader in(block->contents);
  decode_info(in, info_);
  if (block->type != kInfoBlock || !in.ok() || !in.at_end())
    return malformed_trace("it does not begin with what it is a trace of");
  return {};
}

Result<TraceEnd> TraceReader::read_into(EventSink& sink, const Progress& progress) {
  if (std::exchange(used_, true) && in_blocks_) {
    file_->clear();
    if (!file_->seekg(0)) return error("{}", in_file("it can be read only once: save it to a file first"));
    const Result<void> started = read_start();
    if (!started.ok()) return error("{}", in_file(started.error().message));
  }
  if (in_blocks_) {
    auto end = read_blocks(sink, progress);
    if (!end.ok()) return error("{}", in_file(end.error().message));
    return end;
  }
  TraceEnd end;
  CountingSink counting(sink, end);
  const Result<void> read = read_old_trace(old_, counting);
  if (!read.ok()) return error("{}", in_file(read.error().message));
  return end;
}

Result<TraceEnd> TraceReader::read_blocks(EventSink& sink, const Progress& progress) {
  TraceEnd end;
  CountingSink counting(sink, end);
  TraceDecoder decoder;
  uint64_t number = 0;
  while (const auto block = blocks_->next()) {
    if (progress && number++ % kProgressEvery == 0) progress(blocks_->position());
    ByteReader in(block->contents);
    switch (block->type) {
      case kNamesBlock:
        names_->decode(in);
        break;
      case kEntriesBlock:
        while (in.ok() && !in.at_end()) decoder.entry(in, counting);
        break;
      case kEndBlock: {
        Outcome outcome;
        decode_trace_end(in, outcome);
        const uint64_t accesses = in.u64(), events = in.u64();
        if (!in.ok() || !in.at_end()) return malformed_trace("its end is no end of a trace");
        if (accesses != end.accesses || events != end.events)
          return malformed_trace("it has not as many accesses and events as it claims");
        if (!blocks_->at_end()) return error("corrupted: it has bytes after its end; fetch it again");
        sink.on_end(outcome);
        return end;
      }
      default:
        return malformed_trace(fmt::format("it has a block of the unknown type {}", block->type));
    }
    if (!in.ok()) return malformed_trace("its contents are no trace");
  }
  end.missing =
      fmt::format("{}, after {} accesses and {} events", blocks_->damage(), end.accesses, end.events);
  sink.on_end(Abandoned{.why = "the trace ends here: " + blocks_->damage()});
  return end;
}

}  // namespace slalom
