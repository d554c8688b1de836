// A whole execution in a file. Detectors and reports run over it offline.
//
// An access takes a few bytes before compression: every number is written as its distance from a prediction
// that reader and writer compute alike (trace_file.cc). The file keeps the exact order of batches and events.
#pragma once

#include <filesystem>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "trace/trace_log.h"

namespace slalom {

void encode(ByteWriter& out, const TraceLog& log);
void decode(ByteReader& in, TraceLog& log);  // replaces the contents of the log

Result<void> save_trace(const std::filesystem::path& path, const TraceLog& log);
Result<TraceLog> load_trace(const std::filesystem::path& path);
Result<TraceLog> parse_trace(std::span<const uint8_t> file);

}  // namespace slalom
