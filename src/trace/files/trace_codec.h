// The entries of a trace file as bytes: batches of accesses, and events.
//
// An access takes a few bytes before compression: every number is written as its distance from a prediction
// that reader and writer compute alike. The predictions take a fixed amount of memory. They go on from block
// to block, so that the entries of a file can only be read from its beginning.
#pragma once

#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "trace/sink.h"

namespace slalom {

struct TracePredictions;

class TraceEncoder {
 public:
  TraceEncoder();
  ~TraceEncoder();
  void accesses(ByteWriter& out, std::span<const Access> accesses, const BatchHeader& header);
  void event(ByteWriter& out, const Event& event);

 private:
  const std::unique_ptr<TracePredictions> known_;
};

class TraceDecoder {
 public:
  TraceDecoder();
  ~TraceDecoder();
  // Reads one entry and passes it to the sink. If the bytes are malformed, the sink gets nothing, and in.ok()
  // is false.
  void entry(ByteReader& in, EventSink& sink);

 private:
  void batch(ByteReader& in, EventSink& sink);
  void event(ByteReader& in, OpKind op, EventSink& sink);

  const std::unique_ptr<TracePredictions> known_;
  std::vector<Access> accesses_;  // of the current batch
};

// The outcome with the fields that capsules do not need.
void encode_trace_end(ByteWriter& out, const Outcome& outcome);
void decode_trace_end(ByteReader& in, Outcome& outcome);

// Reads the payload of a file of version 1 or 2, which was written at once. The sink also gets its end.
Result<void> read_old_trace(std::span<const uint8_t> payload, EventSink& sink);

}  // namespace slalom
