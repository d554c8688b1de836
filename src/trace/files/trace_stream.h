// Traces in files, written while the execution runs and read without holding them in memory.
//
// A trace file holds every access and event in their exact order, how the execution ended, and all names, so
// that detectors and reports need nothing else. A file that was cut off gives everything up to its last whole
// block, and the reader says what is missing. Versions 1 and 2, which hold no names, are read at once.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/block_file.h"
#include "trace/facilities.h"
#include "trace/files/trace_codec.h"
#include "trace/files/trace_names.h"
#include "trace/sink.h"

namespace slalom {

// What a trace is of, and what its recorder was able to see.
struct TraceInfo {
  std::string kind;       // "toy", "program", "kernel"; "boot": a running kernel; "" if the file does not say
  std::string target;     // its name
  std::string detectors;  // a search's default detectors for this target; empty means the usual default
  Facilities recorded = Facilities::all();
  bool races_count = true;  // races count as findings in this target

  bool is_of_kernel() const { return kind == "kernel" || kind == "boot"; }
};

class TraceWriter final : public EventSink {
 public:
  // `names` must be valid until the execution has ended.
  static Result<std::unique_ptr<TraceWriter>> create(const std::filesystem::path& path, const TraceInfo& info,
                                                     const Names& names);

  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;

  // Call it last. Returns an error if anything could not be written.
  Result<void> close();

 private:
  TraceWriter(BlockWriter file, const Names& names) : file_(std::move(file)), names_(names) {}
  void flush();

  BlockWriter file_;
  NameCollector names_;
  TraceEncoder encoder_;
  ByteWriter entries_;  // of the current block
  uint64_t accesses_ = 0, events_ = 0;
};

// The end of a trace, as a reader has seen it.
struct TraceEnd {
  uint64_t accesses = 0, events = 0;
  // Why and where the trace ends too early, as a sentence without a full stop; empty if it is complete.
  std::string missing;
};

class TraceReader {
 public:
  static Result<TraceReader> open(const std::filesystem::path& path);
  static Result<TraceReader> parse(std::string file);

  const TraceInfo& info() const { return info_; }
  const Names& names() const { return *names_; }  // of what was read so far
  bool has_names() const { return in_blocks_; }

  // Called now and then with the bytes read so far.
  using Progress = std::function<void(uint64_t bytes)>;
  // Passes the whole trace to the sink. If the file ends too early, the sink gets Abandoned as its outcome.
  // A second call starts again at the beginning, which a pipe cannot.
  Result<TraceEnd> read_into(EventSink& sink, const Progress& progress = {});

 private:
  TraceReader(std::string path, std::unique_ptr<std::istream> file)
      : path_(std::move(path)), file_(std::move(file)), names_(std::make_unique<StoredNames>()) {}
  static Result<TraceReader> begin(TraceReader reader);
  Result<void> read_start();
  Result<TraceEnd> read_blocks(EventSink& sink, const Progress& progress);
  std::string in_file(const std::string& message) const;

  std::string path_;  // empty if the file is not on disk
  std::unique_ptr<std::istream> file_;
  std::unique_ptr<StoredNames> names_;
  std::vector<uint8_t> old_;  // the payload of an old file
  std::unique_ptr<BlockReader> blocks_;
  TraceInfo info_;
  bool in_blocks_ = false;
  bool used_ = false;  // read_into() was called
};

}  // namespace slalom
