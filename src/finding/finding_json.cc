#include "finding/finding_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text/printable.h"

namespace slalom {
namespace {

using Json = nlohmann::ordered_json;

// 64-bit numbers that are not counts are text, because many readers of JSON keep only 53 bits.
std::string hex(uint64_t number) {
  return fmt::format("{:#x}", number);
}

Json schedule_json(const Schedule& schedule) {
  Json switches = Json::array();
  for (const Switch& change : schedule.switches)
    switches.push_back(
        {{"from", change.from.path()}, {"from_ops", change.from_ops}, {"to", change.to.path()}});
  Json data = Json::array();
  for (const DataChoice& choice : schedule.data)
    data.push_back({{"agent", choice.agent.path()},
                    {"ops", choice.ops},
                    {"ordinal", choice.ordinal},
                    {"value", choice.value}});
  Json json = {{"switches", switches}, {"data", data}, {"digest", hex(schedule.digest)}};
  if (schedule.errors)
    for (const ErrorReturn& failed : schedule.errors->returns)
      json["errors"].push_back({{"agent", failed.agent.path()},
                                {"ordinal", failed.ordinal},
                                {"call", failed.call},
                                {"about", failed.about},
                                {"error", failed.error},
                                {"pc", hex(failed.pc.raw)}});
  return json;
}

void add_place(Json& json, Place pc, const FindingWords& words) {
  if (const auto place = words.places.find(pc); place != words.places.end()) json["place"] = place->second;
}

Json point_json(const OrderPoint& point, const FindingWords& words) {
  Json json = {
      {"agent", point.agent.path()}, {"ops", point.ops}, {"pc", hex(point.pc.raw)}, {"text", point.text}};
  add_place(json, point.pc, words);
  return json;
}

Json objects_json(const FindingWords& words) {
  Json all = Json::array();
  for (const FindingWords::Object& object : words.objects) {
    Json json = {{"name", object.name},
                 {"kind", object.kind},
                 {"agent", object.agent.path()},
                 {"address", hex(object.address)}};
    if (object.size != 0) json["size"] = object.size;
    if (!object.type.empty()) json["type"] = object.type;
    if (!object.function.empty()) json["function"] = object.function;
    if (!object.place.empty()) json[object.is_freed ? "freed" : "allocated"] = object.place;
    all.push_back(std::move(json));
  }
  return all;
}

Json target_json(const TargetId& target) {
  Json params = Json::object();
  for (const auto& [key, value] : target.params) params[key] = value;
  return {{"kind", target.kind}, {"name", target.name}, {"hash", target.hash}, {"params", params}};
}

}  // namespace

Json finding_json(const Finding& finding, const std::string& capsule, const FindingWords& words) {
  Json evidence = Json::array();
  for (const Evidence& item : finding.verdict.evidence) {
    evidence.push_back({{"step", item.step.raw},
                        {"agent", item.agent.path()},
                        {"pc", hex(item.pc.raw)},
                        {"text", item.text}});
    add_place(evidence.back(), item.pc, words);
  }
  Json constraints = Json::array();
  for (const OrderConstraint& constraint : finding.constraints)
    constraints.push_back(
        {{"before", point_json(constraint.before, words)}, {"after", point_json(constraint.after, words)}});
  Json json = {
      {"title", finding.verdict.title},
      {"kind", name(finding.verdict.kind)},
      {"severity", name(finding.verdict.severity)},
      {"detail", finding.verdict.detail},
      {"evidence", evidence},
      {"signature", signature(finding)},
      {"capsule", capsule},
      {"schedule", schedule_json(finding.schedule)},
      {"minimality", name(finding.minimality)},
      {"excluded", finding.excluded},
      {"constraints", constraints},
      {"replayed", fmt::format("{}/{}", finding.replays_same, finding.replays_tried)},
      {"strategy", finding.strategy},
      {"seed", finding.seed},
      {"execution", finding.execution},
      {"occurrences", finding.occurrences},
      {"max_steps", finding.max_steps},
      {"target", target_json(finding.target)},
  };
  if (!words.objects.empty()) json["objects"] = objects_json(words);
  if (finding.state_hash != 0) json["state_hash"] = hex(finding.state_hash);
  return json;
}

std::string json_text(const Json& json) {
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  // JSON escapes only the control characters of ASCII, and people read it on terminals. Other unsafe
  // characters can only occur within strings, and have at most 16 bits.
  std::string safe;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    const size_t length = rest.front() == '\n' ? 1 : printable_length(rest);
    if (length != 0) {
      safe += rest.substr(0, length);
      at += length;
      continue;
    }
    const auto bits = [&](size_t i, unsigned mask) { return static_cast<unsigned char>(rest[i]) & mask; };
    const unsigned lead = bits(0, 0xff);
    const unsigned point = lead < 0x80   ? lead
                           : lead < 0xe0 ? bits(0, 0x1f) << 6 | bits(1, 0x3f)
                                         : bits(0, 0x0f) << 12 | bits(1, 0x3f) << 6 | bits(2, 0x3f);
    safe += fmt::format("\\u{:04x}", point);
    at += lead < 0x80 ? 1 : lead < 0xe0 ? 2 : 3;
  }
  return safe + "\n";
}

}  // namespace slalom
