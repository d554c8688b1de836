// Scene: a hand-written execution and finding, with names, so that a report on it can be read and compared.
// Every call is one operation of one agent. The schedule follows from the order of the agents.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "finding/finding.h"
#include "report/text.h"
#include "trace/names.h"
#include "trace/trace_log.h"

namespace slalom::test {

class SceneNames : public Names {
 public:
  std::string agent(AgentId id) const override { return agents.at(id); }
  std::string role(AgentId id) const override { return agent(id).substr(0, agent(id).find('#')); }
  std::string object(ObjectId id) const override { return objects.at(id); }
  std::string place(Place pc) const override {
    const auto known = places.find(pc);
    return known == places.end() ? fmt::format("{:#x}", pc.raw) : known->second;
  }
  std::string source(Place pc) const override { return sources.at(pc); }
  std::string system_call(AgentId agent, uint64_t ordinal, int64_t number) const override {
    const auto known = calls.find({agent, ordinal});
    return known == calls.end() ? Names::system_call(agent, ordinal, number) : known->second;
  }

  std::map<AgentId, std::string> agents;
  std::map<ObjectId, std::string> objects;
  std::map<Place, std::string> places, sources;
  std::map<std::pair<AgentId, uint64_t>, std::string> calls;  // by agent and ordinal
};

class Scene {
 public:
  Scene();

  // Agents and objects are created when they are first mentioned: agents in that order, at the top level.
  AgentId agent(const std::string& name);
  ObjectId object(const std::string& name);
  void name_agent(AgentId id, const std::string& name) { names.agents[id] = name; }
  // Sets the source lines of an agent's role. Lines without code only have a place.
  void code(const std::string& role, std::vector<std::string> lines) { code_[role] = std::move(lines); }
  Place place(const std::string& who, int line);

  struct Extra {
    uint64_t state = 0;
    std::string other = "";
    int64_t value = 0;
  };
  Scene& access(OpKind op, const std::string& who, int line, const std::string& object, int64_t value,
                bool wrote = true);
  Scene& load(const std::string& who, int line, const std::string& object, int64_t value) {
    return access(OpKind::Load, who, line, object, value, false);
  }
  Scene& store(const std::string& who, int line, const std::string& object, int64_t value) {
    return access(OpKind::Store, who, line, object, value);
  }
  Scene& event(OpKind op, const std::string& who, int line, const std::string& object, const Extra& extra);
  Scene& event(OpKind op, const std::string& who, int line, const std::string& object) {
    return event(op, who, line, object, Extra());
  }
  // Emits an event that is part of the operation before it.
  Scene& along(OpKind op, const std::string& who, int line, const std::string& object, const Extra& extra);
  Scene& along(OpKind op, const std::string& who, int line, const std::string& object) {
    return along(op, who, line, object, Extra());
  }
  // Emits an event before the operation that follows.
  Scene& ahead(OpKind op, const std::string& who, int line, const std::string& object, uint64_t state);
  Scene& exit(const std::string& who, int line);
  Scene& text(OpKind op, const std::string& who, int line, const std::string& text);
  void end(Outcome outcome) { log.on_end(outcome); }

  // For kernels: places are functions with offsets, and every access is one instruction.
  Place at(const std::string& place);
  Scene& touch(OpKind op, const std::string& who, const std::string& place, const std::string& object,
               int64_t value, bool wrote);
  Scene& reads(const std::string& who, const std::string& place, const std::string& object, int64_t value) {
    return touch(OpKind::Load, who, place, object, value, false);
  }
  Scene& writes(const std::string& who, const std::string& place, const std::string& object, int64_t value) {
    return touch(OpKind::Store, who, place, object, value, true);
  }
  Scene& tells(OpKind op, const std::string& who, const std::string& place, int64_t value,
               const std::string& text = "");
  // Begins a system call, with its text as the user wrote it. SyscallExit gives its result.
  Scene& calls(const std::string& who, const std::string& call);

  uint64_t steps() const { return steps_; }
  Evidence evidence(uint64_t step, const std::string& who, int line, std::string text);
  // Operations are identified by their agent's own count, from 0.
  void needs(const std::string& before, uint64_t before_ops, const std::string& after, uint64_t after_ops);

  TraceLog log;
  SceneNames names;
  Finding finding;
  TextOptions options;

 private:
  void retire(AgentId agent);
  void tell(OpKind op, AgentId who, Place pc, uint64_t step, const std::string& object, const Extra& extra,
            const std::string& text = "");

  std::map<std::string, std::vector<std::string>> code_;
  std::map<std::string, ObjectId> objects_;
  std::map<AgentId, uint64_t> retired_, calls_;
  AgentId last_;
  uint64_t steps_ = 0;
};

// Scenes of kernels.
Scene torn_read();
Scene kernel_oops();

// All scenes, by the beginning of their golden files' names.
const std::map<std::string, Scene (*)()>& scenes();

}  // namespace slalom::test
