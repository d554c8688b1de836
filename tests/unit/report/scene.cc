#include "unit/report/scene.h"

#include <fmt/format.h>

namespace slalom::test {

Scene::Scene() {
  finding.target = make_target("toy", "scene", "");
  finding.strategy = "pct";
  finding.seed = 7;
  finding.replays_tried = finding.replays_same = 10;
  finding.occurrences = 1;
}

AgentId Scene::agent(const std::string& name) {
  if (name.empty()) return {};
  for (const auto& [id, known] : names.agents)
    if (known == name) return id;
  const AgentId id = AgentId::initial(static_cast<uint32_t>(names.agents.size()));
  names.agents[id] = name;
  return id;
}

ObjectId Scene::object(const std::string& name) {
  if (name.empty()) return {};
  const auto [known, added] = objects_.try_emplace(name, ObjectId{0x1000 + 8 * objects_.size()});
  if (added) names.objects[known->second] = name;
  return known->second;
}

Place Scene::place(const std::string& who, int line) {
  const std::string role = who.substr(0, who.find('#'));
  const std::string name = fmt::format("{}:{}", role, line);
  for (const auto& [pc, known] : names.places)
    if (known == name) return pc;
  const Place pc{0x400000 + names.places.size()};
  names.places[pc] = name;
  const auto& lines = code_[role];
  const auto index = static_cast<size_t>(line - 1);
  names.sources[pc] = index < lines.size() ? lines[index] : "";
  return pc;
}

void Scene::retire(AgentId agent) {
  if (agent != last_) finding.schedule.switches.push_back({last_, last_ ? retired_[last_] : 0, agent});
  last_ = agent;
  ++retired_[agent];
  ++steps_;
}

void Scene::tell(OpKind op, AgentId who, Place pc, uint64_t step, const std::string& name, const Extra& extra,
                 const std::string& text) {
  Event event;
  event.step = Step{step};
  event.agent = who;
  event.op = op;
  event.pc = pc;
  event.object = object(name);
  event.state = extra.state;
  event.other = agent(extra.other);
  event.value = extra.value;
  event.text = text;
  log.on_event(event);
}

Scene& Scene::access(OpKind op, const std::string& who, int line, const std::string& name, int64_t value,
                     bool wrote) {
  const AgentId id = agent(who);
  Access access{};
  access.pc_bits = place(who, line).raw;
  access.op_bits = static_cast<uint8_t>(op);
  access.size = 8;
  access.address_bits = object(name).raw;
  access.value = static_cast<uint64_t>(value);
  access.wrote = wrote;
  const BatchHeader header{id, 0, Step{steps_}};
  log.on_accesses({&access, 1}, header);
  retire(id);
  return *this;
}

Scene& Scene::event(OpKind op, const std::string& who, int line, const std::string& name,
                    const Extra& extra) {
  const AgentId id = agent(who);
  tell(op, id, place(who, line), steps_, name, extra);
  retire(id);
  return *this;
}

Scene& Scene::along(OpKind op, const std::string& who, int line, const std::string& name,
                    const Extra& extra) {
  tell(op, agent(who), place(who, line), steps_ - 1, name, extra);
  return *this;
}

Scene& Scene::ahead(OpKind op, const std::string& who, int line, const std::string& name, uint64_t state) {
  tell(op, agent(who), place(who, line), steps_, name, {state, "", 0});
  return *this;
}

Scene& Scene::exit(const std::string& who, int line) {
  return along(OpKind::Exit, who, line, "agent " + who, {0, who, 0});
}

Scene& Scene::text(OpKind op, const std::string& who, int line, const std::string& text) {
  const uint64_t step = steps_ == 0 ? 0 : steps_ - 1;
  tell(op, agent(who), who.empty() ? Place{} : place(who, line), step, "", Extra(), text);
  return *this;
}

Evidence Scene::evidence(uint64_t step, const std::string& who, int line, std::string text) {
  return {Step{step}, agent(who), place(who, line), std::move(text)};
}

void Scene::needs(const std::string& before, uint64_t before_ops, const std::string& after,
                  uint64_t after_ops) {
  finding.constraints.push_back({{agent(before), before_ops, {}, ""}, {agent(after), after_ops, {}, ""}});
}

}  // namespace slalom::test
