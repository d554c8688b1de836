#include "finding/finding.h"

#include "base/check.h"
#include "base/hash.h"
#include "trace/files/serialise.h"

namespace slalom {
namespace {

void encode(ByteWriter& out, const TargetId& target) {
  out.text(target.kind);
  out.text(target.name);
  out.text(target.content);
  out.u64(target.params.size());
  for (const auto& [key, value] : target.params) {
    out.text(key);
    out.i64(value);
  }
}

void encode(ByteWriter& out, const OrderPoint& point) {
  slalom::encode(out, point.agent);
  out.u64(point.ops);
  slalom::encode(out, point.pc);
  out.text(point.text);
}

void decode(ByteReader& in, OrderPoint& point) {
  slalom::decode(in, point.agent);
  point.ops = in.u64();
  slalom::decode(in, point.pc);
  point.text = in.text();
}

std::string hash_of(const TargetId& target) {
  ByteWriter out;
  encode(out, target);
  return fmt::format("{:016x}", checksum(out.bytes()));
}

void decode(ByteReader& in, TargetId& target) {
  target.kind = in.text();
  target.name = in.text();
  target.content = in.text();
  target.params.clear();
  for (uint64_t left = in.count(); left > 0 && in.ok(); --left) {
    auto& [key, value] = target.params.emplace_back();
    key = in.text();
    value = in.i64();
  }
  target.hash = hash_of(target);
}

}  // namespace

// The bits above these, in the same byte, hold Finding::excluded.
constexpr int kMinimalityBits = 2;

TargetId make_target(std::string kind, std::string name, std::string content,
                     std::vector<std::pair<std::string, int64_t>> params) {
  TargetId target{std::move(kind), std::move(name), std::move(content), std::move(params), {}};
  target.hash = hash_of(target);
  return target;
}

std::string_view name(Minimality minimality) {
  switch (minimality) {
    case Minimality::Unshrunk:
      return "unshrunk";
    case Minimality::Minimal:
      return "minimal";
    case Minimality::Minimum:
      return "minimum";
  }
  CHECK(false, "minimality {}", static_cast<int>(minimality));
  return {};
}

std::string signature(const Finding& finding) {
  return fmt::format("{:016x}", combine(hash_text(finding.target.name), hash_text(finding.verdict.title)));
}

void encode(ByteWriter& out, const Finding& finding) {
  encode(out, finding.verdict);
  encode(out, finding.target);
  encode(out, finding.policy);
  out.u64(finding.max_steps);
  encode(out, finding.schedule);
  encode(out, finding.original);
  out.u8(
      static_cast<uint8_t>(static_cast<uint8_t>(finding.minimality) | finding.excluded << kMinimalityBits));
  out.u64(finding.constraints.size());
  for (const OrderConstraint& constraint : finding.constraints) {
    encode(out, constraint.before);
    encode(out, constraint.after);
  }
  out.text(finding.strategy);
  out.u64(finding.seed);
  out.u64(finding.execution);
  out.u64(finding.occurrences);
  out.u64(finding.replays_tried);
  out.u64(finding.replays_same);
  out.fixed64(finding.state_hash);
  const bool errors = finding.schedule.errors || finding.original.errors;
  if (!finding.surroundings.empty() || errors) out.text(finding.surroundings);
  if (!errors) return;
  encode(out, finding.schedule.errors);
  encode(out, finding.original.errors);
}

void decode(ByteReader& in, Finding& finding) {
  decode(in, finding.verdict);
  decode(in, finding.target);
  decode(in, finding.policy);
  finding.max_steps = in.u64();
  decode(in, finding.schedule);
  decode(in, finding.original);
  const uint8_t size = in.u8();
  const uint8_t minimality = size & ((1 << kMinimalityBits) - 1);
  if (minimality >= kMinimalities) in.fail();
  finding.minimality =
      minimality < kMinimalities ? static_cast<Minimality>(minimality) : Minimality::Unshrunk;
  finding.excluded = size >> kMinimalityBits;
  finding.constraints.clear();
  for (uint64_t left = in.count(); left > 0 && in.ok(); --left) {
    OrderConstraint& constraint = finding.constraints.emplace_back();
    decode(in, constraint.before);
    decode(in, constraint.after);
  }
  finding.strategy = in.text();
  finding.seed = in.u64();
  finding.execution = in.u64();
  finding.occurrences = in.u64();
  decode_u32(in, finding.replays_tried);
  decode_u32(in, finding.replays_same);
  finding.state_hash = in.at_end() ? 0 : in.fixed64();  // version 1 has no more
  finding.surroundings = in.ok() && !in.at_end() ? in.text() : "";
  finding.schedule.errors.reset();
  finding.original.errors.reset();
  if (!in.ok() || in.at_end()) return;  // findings of kernels, and of programs up to version 2
  decode(in, finding.schedule.errors);
  decode(in, finding.original.errors);
}

}  // namespace slalom
