#include "unit/detect/script.h"

namespace slalom::test {
namespace {

constexpr uint64_t kSpacing = 64;

uint64_t intern(std::map<uint64_t, std::string>& names, const std::string& name, uint64_t next) {
  for (const auto& [raw, known] : names)
    if (known == name) return raw;
  names[next] = name;
  return next;
}

}  // namespace

std::string ScriptNames::object(ObjectId id) const {
  const auto next = objects.upper_bound(id.raw);
  if (next == objects.begin()) return fmt::format("{:#x}", id.raw);
  const auto& [base, name] = *std::prev(next);
  return id.raw == base ? name : fmt::format("{}+{}", name, id.raw - base);
}

AgentId Script::agent(const std::string& name) {
  const uint64_t fresh = AgentId::initial(next_agent_).raw;
  const uint64_t raw = intern(names_.agents, name, fresh);
  if (raw == fresh) ++next_agent_;
  return AgentId{raw};
}

ObjectId Script::object(const std::string& name) {
  const size_t plus = name.find('+');
  if (plus != std::string::npos)
    return ObjectId{object(name.substr(0, plus)).raw + std::stoull(name.substr(plus + 1))};
  return ObjectId{intern(names_.objects, name, 0x10000 + kSpacing * names_.objects.size())};
}

Place Script::place(const std::string& name) {
  return Place{intern(names_.places, name, 1 + names_.places.size())};
}

Script& Script::access(OpKind op, const std::string& who, const std::string& on, const std::string& where,
                       uint32_t size, int64_t value, bool failed) {
  Access access{};
  access.pc_bits = place(where).raw;
  access.op_bits = static_cast<uint64_t>(op);
  access.size = size;
  access.address_bits = object(on).raw;
  access.value = static_cast<uint64_t>(value);
  access.wrote = effect(op) == Effect::Write && !failed;
  log_.on_accesses({&access, 1}, {agent(who), 0, Step{step_++}});
  return *this;
}

Script& Script::event(OpKind op, const std::string& who, const std::string& on, const std::string& where,
                      const Extra& extra) {
  Event event;
  event.step = Step{step_++};
  event.agent = agent(who);
  event.op = op;
  event.pc = place(where);
  event.object = object(on);
  event.state = extra.state;
  if (!extra.other.empty()) event.other = agent(extra.other);
  event.value = extra.value;
  log_.on_event(event);
  return *this;
}

Deadlocked::Waiting Script::waiting(const std::string& who, OpKind op, const std::string& on,
                                    const std::string& where, const std::vector<std::string>& held_by) {
  Deadlocked::Waiting waiting{agent(who), op, object(on), place(where), {}};
  for (const std::string& holder : held_by) waiting.held_by.push_back(agent(holder));
  return waiting;
}

std::vector<Verdict> Script::verdicts(const std::string& detectors) const {
  auto set = select_detectors(names_, detectors);
  return judge(log_, **set);
}

std::vector<std::string> Script::titles(const std::string& detectors) const {
  std::vector<std::string> titles;
  for (const Verdict& verdict : verdicts(detectors)) titles.push_back(verdict.title);
  return titles;
}

std::vector<Verdict> judge(const TraceLog& log, DetectorSet& set) {
  set.reset();
  log.replay_into(set);
  std::vector<Verdict> verdicts;
  set.harvest(verdicts);
  return verdicts;
}

}  // namespace slalom::test
