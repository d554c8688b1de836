// A whole execution in a file: what detectors and reports run over offline.
//
// An access takes a few bytes before compression: everything is written as its distance from a prediction
// that reader and writer make alike (trace_file.cc). The order of batches and events is kept exactly.
#pragma once

#include <filesystem>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "trace/trace_log.h"

namespace slalom {

void encode(ByteWriter& out, const TraceLog& log);
void decode(ByteReader& in, TraceLog& log);  // replaces what is in the log

Result<void> save_trace(const std::filesystem::path& path, const TraceLog& log);
Result<TraceLog> load_trace(const std::filesystem::path& path);
Result<TraceLog> parse_trace(std::span<const uint8_t> file);

}  // namespace slalom
