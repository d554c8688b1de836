// The binary form of the types of trace/. Schedule files, capsules and saved searches consist of them. For
// whole executions see trace/files/trace_stream.h.
//
// encode and decode come in pairs, field by field in the order of docs/formats.md. A changed field requires a
// new version of every file kind that holds it. Decoding survives any bytes: it range-checks enums and
// allocates memory only for bytes that are really there. The caller checks the reader's ok() at the end.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/container.h"
#include "base/file.h"
#include "trace/agent.h"
#include "trace/choice_policy.h"
#include "trace/outcome.h"
#include "trace/schedule.h"
#include "trace/verdict.h"

namespace slalom {

void encode(ByteWriter& out, uint64_t value);
void encode(ByteWriter& out, const std::string& text);
void encode(ByteWriter& out, AgentId agent);
void encode(ByteWriter& out, Place place);
void encode(ByteWriter& out, const ChoicePolicy::AgentPosition& position);
void encode(ByteWriter& out, const ChoicePolicy& policy);
void encode(ByteWriter& out, const Switch& change);
void encode(ByteWriter& out, const DataChoice& choice);
void encode(ByteWriter& out, const Schedule& schedule);  // without its errors,
void encode(ByteWriter& out, const ErrorReturn& failed);
void encode(ByteWriter& out, const std::optional<ErrorLog>& errors);  // which files have at their own places
void encode(ByteWriter& out, const Evidence& evidence);
void encode(ByteWriter& out, const Verdict& verdict);
void encode(ByteWriter& out, const Deadlocked::Waiting& waiting);
void encode(ByteWriter& out, const Outcome& outcome);

void decode(ByteReader& in, uint64_t& value);
void decode(ByteReader& in, std::string& text);
void decode(ByteReader& in, AgentId& agent);
void decode(ByteReader& in, Place& place);
void decode(ByteReader& in, ChoicePolicy::AgentPosition& position);
void decode(ByteReader& in, ChoicePolicy& policy);
void decode(ByteReader& in, Switch& change);
void decode(ByteReader& in, DataChoice& choice);
void decode(ByteReader& in, Schedule& schedule);
void decode(ByteReader& in, ErrorReturn& failed);
void decode(ByteReader& in, std::optional<ErrorLog>& errors);
void decode(ByteReader& in, Evidence& evidence);
void decode(ByteReader& in, Verdict& verdict);
void decode(ByteReader& in, Deadlocked::Waiting& waiting);
void decode(ByteReader& in, Outcome& outcome);

template <typename T>
void encode(ByteWriter& out, const std::vector<T>& items) {
  out.u64(items.size());
  for (const T& item : items) encode(out, item);
}

template <typename T>
void decode(ByteReader& in, std::vector<T>& items) {
  items.clear();
  for (uint64_t left = in.count(); left > 0 && in.ok(); --left) decode(in, items.emplace_back());
}

// An enum whose enumerators are 0 .. count - 1.
template <typename E>
void decode_enum(ByteReader& in, E& value, int count) {
  const uint8_t raw = in.u8();
  if (raw >= count) in.fail();
  value = in.ok() ? static_cast<E>(raw) : E{};
}

inline void decode_u32(ByteReader& in, uint32_t& value) {
  const uint64_t raw = in.u64();
  if (raw > UINT32_MAX) in.fail();
  value = in.ok() ? static_cast<uint32_t>(raw) : 0;
}

// A whole file of one kind, as bytes and on disk. `decode` must use up the payload.
template <typename T>
Result<std::vector<uint8_t>> to_file(FileKind kind, const T& value) {
  ByteWriter out;
  encode(out, value);
  return pack_container(kind, out.bytes());
}

template <typename T>
Result<T> from_file(FileKind kind, std::span<const uint8_t> file) {
  TRY_ASSIGN(const std::vector<uint8_t> payload, unpack_container(file, kind));
  T value;
  ByteReader in(payload);
  decode(in, value);
  if (!in.ok() || !in.at_end()) return error("malformed: its contents are no {}; write it again", name(kind));
  return value;
}

template <typename T>
Result<void> save_file(const std::filesystem::path& path, FileKind kind, const T& value) {
  TRY_ASSIGN(const std::vector<uint8_t> file, to_file(kind, value));
  return write_output(path, file);
}

template <typename T>
Result<T> load_file(const std::filesystem::path& path, FileKind kind) {
  TRY_ASSIGN(const std::vector<uint8_t> file, read_file(path));
  auto value = from_file<T>(kind, file);
  if (!value.ok()) return error("{}: {}", path.string(), value.error().message);
  return value;
}

}  // namespace slalom
