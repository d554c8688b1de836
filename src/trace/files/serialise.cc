#include "trace/files/serialise.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

namespace slalom {
namespace {

constexpr int kOutcomes = std::variant_size_v<Outcome>;

// Paths are packed from the top byte down. In reversed byte order, a short path is a small number.
constexpr uint64_t reverse_bytes(uint64_t value) {
  uint64_t result = 0;
  for (int i = 0; i < 8; ++i) result |= ((value >> (8 * i)) & 0xff) << (8 * (7 - i));
  return result;
}

// Returns whether the value is a path without empty levels, or a folded path.
constexpr bool is_path(uint64_t reversed) {
  if ((reversed & 0xff) == 0xff) return true;
  while ((reversed & 0xff) != 0) reversed >>= 8;
  return reversed == 0;
}

template <typename E>
void encode_enum(ByteWriter& out, E value) {
  out.u8(static_cast<uint8_t>(value));
}

}  // namespace

void encode(ByteWriter& out, uint64_t value) {
  out.u64(value);
}
void decode(ByteReader& in, uint64_t& value) {
  value = in.u64();
}

void encode(ByteWriter& out, const std::string& text) {
  out.text(text);
}
void decode(ByteReader& in, std::string& text) {
  text = in.text();
}

void encode(ByteWriter& out, AgentId agent) {
  out.u64(reverse_bytes(agent.raw));
}
void decode(ByteReader& in, AgentId& agent) {
  const uint64_t reversed = in.u64();
  if (!is_path(reversed)) in.fail();
  agent.raw = in.ok() ? reverse_bytes(reversed) : 0;
}

void encode(ByteWriter& out, Place place) {
  out.u64(place.raw);
}
void decode(ByteReader& in, Place& place) {
  place.raw = in.u64();
}

void encode(ByteWriter& out, const ChoicePolicy::AgentPosition& position) {
  encode(out, position.agent);
  out.u64(position.ops);
}
void decode(ByteReader& in, ChoicePolicy::AgentPosition& position) {
  decode(in, position.agent);
  position.ops = in.u64();
}

namespace {

// Set in the first byte of a policy that ends with a list of accesses. Files of versions without such lists
// do not have it.
constexpr uint8_t kWatchesAccesses = 0x80;

}  // namespace

void encode(ByteWriter& out, const ChoicePolicy::WatchedAccess& access) {
  encode(out, access.place);
  out.u64(access.first);
  out.u64(access.last);
  out.u8(static_cast<uint8_t>(access.reads | access.writes << 1));
}
void decode(ByteReader& in, ChoicePolicy::WatchedAccess& access) {
  decode(in, access.place);
  access.first = in.u64();
  access.last = in.u64();
  const uint8_t uses = in.u8();
  access.reads = (uses & 1) != 0;
  access.writes = (uses & 2) != 0;
  if (uses > 3) in.fail();
}

void encode(ByteWriter& out, const ChoicePolicy& policy) {
  out.u8(static_cast<uint8_t>(static_cast<uint8_t>(policy.where) |
                              (policy.accesses.empty() ? 0 : kWatchesAccesses)));
  encode(out, policy.places);
  encode(out, policy.stops);
  if (!policy.accesses.empty()) encode(out, policy.accesses);
}
void decode(ByteReader& in, ChoicePolicy& policy) {
  const uint8_t head = in.u8();
  const auto where = static_cast<ChoicePolicy::Where>(head & ~kWatchesAccesses);
  if (where > ChoicePolicy::Where::Nowhere) in.fail();
  policy.where = in.ok() ? where : ChoicePolicy::Where::Everywhere;
  decode(in, policy.places);
  decode(in, policy.stops);
  policy.accesses.clear();
  if ((head & kWatchesAccesses) != 0) decode(in, policy.accesses);
  // The machine searches the first two lists by bisection.
  if (!std::ranges::is_sorted(policy.places) || !std::ranges::is_sorted(policy.stops) ||
      !std::ranges::is_sorted(policy.accesses))
    in.fail();
}

void encode(ByteWriter& out, const Switch& change) {
  encode(out, change.from);
  out.u64(change.from_ops);
  encode(out, change.to);
}
void decode(ByteReader& in, Switch& change) {
  decode(in, change.from);
  change.from_ops = in.u64();
  decode(in, change.to);
}

void encode(ByteWriter& out, const DataChoice& choice) {
  encode(out, choice.agent);
  out.u64(choice.ops);
  out.u64(choice.ordinal);
  out.u64(choice.value);
}
void decode(ByteReader& in, DataChoice& choice) {
  decode(in, choice.agent);
  choice.ops = in.u64();
  decode_u32(in, choice.ordinal);
  decode_u32(in, choice.value);
}

void encode(ByteWriter& out, const Schedule& schedule) {
  encode(out, schedule.switches);
  encode(out, schedule.data);
  out.fixed64(schedule.digest);
}
void decode(ByteReader& in, Schedule& schedule) {
  decode(in, schedule.switches);
  decode(in, schedule.data);
  schedule.digest = in.fixed64();
}

void encode(ByteWriter& out, const ErrorReturn& failed) {
  encode(out, failed.agent);
  out.u64(failed.ordinal);
  out.text(failed.call);
  out.i64(failed.error);
  out.u8(failed.outside);
  out.fixed64(failed.subject);
  out.text(failed.about);
  encode(out, failed.pc);
}
void decode(ByteReader& in, ErrorReturn& failed) {
  decode(in, failed.agent);
  failed.ordinal = in.u64();
  failed.call = in.text();
  const int64_t error = in.i64();
  if (error < INT32_MIN || error > INT32_MAX) in.fail();
  failed.error = in.ok() ? static_cast<int32_t>(error) : 0;
  failed.outside = in.u8() != 0;
  failed.subject = in.fixed64();
  failed.about = in.text();
  decode(in, failed.pc);
}

void encode(ByteWriter& out, const std::optional<ErrorLog>& errors) {
  out.u8(errors.has_value());
  if (!errors) return;
  encode(out, errors->returns);
  out.u64(errors->left_out);
}
void decode(ByteReader& in, std::optional<ErrorLog>& errors) {
  errors.reset();
  if (in.u8() == 0) return;
  errors.emplace();
  decode(in, errors->returns);
  errors->left_out = in.u64();
  const auto order = [](const ErrorReturn& a, const ErrorReturn& b) {
    return std::tuple(a.agent, a.ordinal) < std::tuple(b.agent, b.ordinal);
  };
  if (!std::ranges::is_sorted(errors->returns, order)) in.fail();
}

void encode(ByteWriter& out, const Evidence& evidence) {
  out.u64(evidence.step.raw);
  encode(out, evidence.agent);
  encode(out, evidence.pc);
  out.text(evidence.text);
}
void decode(ByteReader& in, Evidence& evidence) {
  evidence.step.raw = in.u64();
  decode(in, evidence.agent);
  decode(in, evidence.pc);
  evidence.text = in.text();
}

void encode(ByteWriter& out, const Verdict& verdict) {
  encode_enum(out, verdict.kind);
  encode_enum(out, verdict.severity);
  out.text(verdict.title);
  out.text(verdict.detail);
  encode(out, verdict.evidence);
}
void decode(ByteReader& in, Verdict& verdict) {
  decode_enum(in, verdict.kind, kBugKinds);
  decode_enum(in, verdict.severity, static_cast<int>(Severity::Suspicion) + 1);
  verdict.title = in.text();
  verdict.detail = in.text();
  decode(in, verdict.evidence);
}

void encode(ByteWriter& out, const Deadlocked::Waiting& waiting) {
  encode(out, waiting.agent);
  encode_enum(out, waiting.op);
  out.u64(waiting.object.raw);
  encode(out, waiting.pc);
  encode(out, waiting.held_by);
}
void decode(ByteReader& in, Deadlocked::Waiting& waiting) {
  decode(in, waiting.agent);
  decode_enum(in, waiting.op, kOpKinds);
  waiting.object.raw = in.u64();
  decode(in, waiting.pc);
  decode(in, waiting.held_by);
}

namespace {

void encode_fields(ByteWriter&, const Exited&) {}
void encode_fields(ByteWriter& out, const Deadlocked& outcome) {
  encode(out, outcome.waiting);
}
void encode_fields(ByteWriter& out, const Faulted& outcome) {
  encode_enum(out, outcome.kind);
  encode(out, outcome.agent);
  encode(out, outcome.pc);
  out.text(outcome.what);
}
void encode_fields(ByteWriter& out, const LimitReached& outcome) {
  out.u64(outcome.steps);
  encode(out, outcome.enabled);
}
void encode_fields(ByteWriter& out, const Abandoned& outcome) {
  out.text(outcome.why);
}
void encode_fields(ByteWriter& out, const ToolError& outcome) {
  out.text(outcome.message);
}

void decode_fields(ByteReader&, Exited&) {}
void decode_fields(ByteReader& in, Deadlocked& outcome) {
  decode(in, outcome.waiting);
}
void decode_fields(ByteReader& in, Faulted& outcome) {
  decode_enum(in, outcome.kind, static_cast<int>(Faulted::Kind::Crash) + 1);
  decode(in, outcome.agent);
  decode(in, outcome.pc);
  outcome.what = in.text();
}
void decode_fields(ByteReader& in, LimitReached& outcome) {
  outcome.steps = in.u64();
  decode(in, outcome.enabled);
}
void decode_fields(ByteReader& in, Abandoned& outcome) {
  outcome.why = in.text();
}
void decode_fields(ByteReader& in, ToolError& outcome) {
  outcome.message = in.text();
}

// Returns the alternative with the given index, default-constructed.
template <size_t... I>
Outcome outcome_of(uint8_t index, std::index_sequence<I...>) {
  Outcome outcome;
  ((index == I ? void(outcome.emplace<I>()) : void()), ...);
  return outcome;
}

}  // namespace

// A reached limit of notes has a number of its own, so that files with other outcomes keep their encoding.
constexpr uint8_t kNotesLimit = kOutcomes;

void encode(ByteWriter& out, const Outcome& outcome) {
  const auto* limit = std::get_if<LimitReached>(&outcome);
  const bool notes = limit != nullptr && limit->limit == LimitReached::Limit::Notes;
  out.u8(notes ? kNotesLimit : static_cast<uint8_t>(outcome.index()));
  std::visit([&](const auto& alternative) { encode_fields(out, alternative); }, outcome);
}
void decode(ByteReader& in, Outcome& outcome) {
  uint8_t index = 0;
  decode_enum(in, index, kOutcomes + 1);
  if (index == kNotesLimit)
    outcome = LimitReached{.limit = LimitReached::Limit::Notes};
  else
    outcome = outcome_of(index, std::make_index_sequence<kOutcomes>());
  std::visit([&](auto& alternative) { decode_fields(in, alternative); }, outcome);
}

}  // namespace slalom
