#include "trace/files/trace_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/files/serialise.h"

namespace slalom {
namespace {

constexpr size_t kLongestName = size_t{1} << 16;
constexpr uint64_t kMostText = uint64_t{1} << 30;  // bytes of names that a reader keeps

std::string number_name(uint64_t number) {
  return fmt::format("{:#x}", number);
}

void encode_name(ByteWriter& out, const std::string& name) {
  out.text(std::string_view(name).substr(0, kLongestName));
}

// Stands for no ordinal, so that a test's own words for a call are not used.
constexpr uint64_t kAnyCall = UINT64_MAX;

}  // namespace

std::string StoredNames::agent(AgentId id) const {
  const auto known = agents_.find(id);
  return known == agents_.end() ? id.path() : known->second.first;
}

std::string StoredNames::role(AgentId id) const {
  const auto known = agents_.find(id);
  return known == agents_.end() ? id.path() : known->second.second;
}

std::string StoredNames::object(ObjectId id) const {
  const auto known = objects_.find(id.raw);
  return known == objects_.end() ? number_name(id.raw) : known->second;
}

const StoredNames::OfPlace* StoredNames::find(Place pc) const {
  const auto known = places_.find(pc.raw);
  return known == places_.end() ? nullptr : &known->second;
}

std::string StoredNames::place(Place pc) const {
  const OfPlace* known = find(pc);
  return known == nullptr ? number_name(pc.raw) : known->place;
}

std::string StoredNames::source(Place pc) const {
  const OfPlace* known = find(pc);
  return known == nullptr ? "" : known->source;
}

std::string StoredNames::line(Place pc) const {
  const OfPlace* known = find(pc);
  return known == nullptr ? "" : known->line;
}

Names::Marking StoredNames::marking(Place pc, bool writes) const {
  const OfPlace* known = find(pc);
  if (known == nullptr) return Marking::Unknown;
  return writes ? known->writes : known->reads;
}

std::string StoredNames::system_call(AgentId agent, uint64_t ordinal, int64_t number) const {
  const auto own = calls_of_agents_.find({agent, ordinal});
  if (own != calls_of_agents_.end() && own->second.first == number) return own->second.second;
  const auto known = calls_.find(number);
  return known == calls_.end() ? Names::system_call(agent, ordinal, number) : known->second;
}

std::string StoredNames::system_result(int64_t value) const {
  const auto known = results_.find(value);
  return known == results_.end() ? Names::system_result(value) : known->second;
}

void StoredNames::decode(ByteReader& in) {
  while (in.ok() && !in.at_end()) decode_one(in);
}

void StoredNames::decode_one(ByteReader& in) {
  using What = NameCollector::What;
  // A file can claim more text than it has bytes.
  const bool keeps = size_ < kMostText;
  const auto text = [&] {
    std::string read = in.text();
    size_ += read.size() + sizeof(std::string);
    return read;
  };
  What what{};
  decode_enum(in, what, static_cast<int>(What::Result) + 1);
  switch (what) {
    case What::Agent: {
      AgentId id;
      slalom::decode(in, id);
      std::string name = text(), role = text();
      if (in.ok() && keeps) agents_[id] = {std::move(name), std::move(role)};
      return;
    }
    case What::Place: {
      const uint64_t pc = in.u64();
      OfPlace names;
      names.place = text();
      names.source = text();
      names.line = text();
      constexpr int kMarkings = static_cast<int>(Marking::Marked) + 1;
      decode_enum(in, names.reads, kMarkings);
      decode_enum(in, names.writes, kMarkings);
      if (in.ok() && keeps) places_[pc] = std::move(names);
      return;
    }
    case What::Object: {
      const uint64_t id = in.u64();
      std::string name = text();
      if (in.ok() && keeps) objects_[id] = std::move(name);
      return;
    }
    case What::Call:
    case What::Result: {
      const int64_t number = in.i64();
      std::string name = text();
      if (in.ok() && keeps) (what == What::Call ? calls_ : results_)[number] = std::move(name);
      return;
    }
    case What::AgentsCall: {
      AgentId id;
      slalom::decode(in, id);
      const uint64_t ordinal = in.u64();
      const int64_t number = in.i64();
      std::string name = text();
      if (in.ok() && keeps) calls_of_agents_[{id, ordinal}] = {number, std::move(name)};
      return;
    }
  }
}

void NameCollector::agent(AgentId id) {
  if (!id || !seen_agents_.add(id.raw)) return;
  agents_.push_back(id);
  new_.push_back({.what = What::Agent, .number = id.raw});
}

void NameCollector::place(Place pc) {
  if (seen_places_.add(pc.raw)) new_.push_back({.what = What::Place, .number = pc.raw});
}

void NameCollector::object(ObjectId id) {
  if (seen_objects_.add(id.raw)) new_.push_back({.what = What::Object, .number = id.raw});
}

void NameCollector::note(std::span<const Access> accesses, const BatchHeader& header) {
  agent(header.agent);
  for (const Access& access : accesses) {
    place(access.pc());
    object(access.address());
    // The address is a function's.
    if (access.op() == OpKind::Call || access.op() == OpKind::Return) place(Place{access.address().raw});
  }
}

void NameCollector::note(const Event& event) {
  agent(event.agent);
  agent(event.other);
  place(event.pc);
  object(event.object);
  const auto value = static_cast<uint64_t>(event.value);
  if (event.op == OpKind::Call || event.op == OpKind::Return) place(Place{event.object.raw});
  if (event.op == OpKind::SyscallEnter) {
    const uint64_t ordinal = made_[event.agent]++;
    if (seen_calls_.add(value)) new_.push_back({.what = What::Call, .number = value});
    if (names_.system_call(event.agent, ordinal, event.value) !=
        names_.system_call(event.agent, kAnyCall, event.value))
      new_.push_back({.what = What::AgentsCall, .number = value, .ordinal = ordinal, .agent = event.agent});
  }
  if (event.op == OpKind::SyscallExit && seen_results_.add(value))
    new_.push_back({.what = What::Result, .number = value});
}

void NameCollector::note(const Outcome& outcome) {
  std::visit(Overloaded{[](const Exited&) {},
                        [&](const Deadlocked& deadlock) {
                          for (const Deadlocked::Waiting& waiting : deadlock.waiting) {
                            agent(waiting.agent);
                            object(waiting.object);
                            place(waiting.pc);
                            for (const AgentId holder : waiting.held_by) agent(holder);
                          }
                        },
                        [&](const Faulted& fault) {
                          agent(fault.agent);
                          place(fault.pc);
                        },
                        [&](const LimitReached& limit) {
                          for (const AgentId enabled : limit.enabled) agent(enabled);
                        },
                        [](const Abandoned&) {}, [](const ToolError&) {}},
             outcome);
}

void NameCollector::note_agents_again() {
  for (const AgentId id : agents_) {
    new_.push_back({.what = What::Agent, .number = id.raw});
    new_.push_back({.what = What::Object, .number = id.raw});  // an agent can be an object
  }
}

void NameCollector::encode(ByteWriter& out, const Noted& noted) const {
  const auto tag = [&] { out.u8(static_cast<uint8_t>(noted.what)); };
  const auto value = static_cast<int64_t>(noted.number);
  switch (noted.what) {
    case What::Agent: {
      const AgentId id{noted.number};
      tag();
      slalom::encode(out, id);
      encode_name(out, names_.agent(id));
      encode_name(out, names_.role(id));
      return;
    }
    case What::Place: {
      const Place pc{noted.number};
      const std::string place = names_.place(pc), source = names_.source(pc), line = names_.line(pc);
      const Names::Marking reads = names_.marking(pc, false), writes = names_.marking(pc, true);
      if (place == number_name(pc.raw) && source.empty() && line.empty() &&
          reads == Names::Marking::Unknown && writes == Names::Marking::Unknown)
        return;
      tag();
      out.u64(pc.raw);
      encode_name(out, place);
      encode_name(out, source);
      encode_name(out, line);
      out.u8(static_cast<uint8_t>(reads));
      out.u8(static_cast<uint8_t>(writes));
      return;
    }
    case What::Object: {
      const std::string name = names_.object(ObjectId{noted.number});
      if (name == number_name(noted.number)) return;
      tag();
      out.u64(noted.number);
      encode_name(out, name);
      return;
    }
    case What::Call:
      tag();
      out.i64(value);
      encode_name(out, names_.system_call({}, kAnyCall, value));
      return;
    case What::AgentsCall:
      tag();
      slalom::encode(out, noted.agent);
      out.u64(noted.ordinal);
      out.i64(value);
      encode_name(out, names_.system_call(noted.agent, noted.ordinal, value));
      return;
    case What::Result: {
      const std::string name = names_.system_result(value);
      if (name == std::to_string(value)) return;
      tag();
      out.i64(value);
      encode_name(out, name);
      return;
    }
  }
}

}  // namespace slalom
