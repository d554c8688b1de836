// Script: a hand-written execution, event by event, with names as in a report. Tests of detectors use it as
// input in place of a machine.
//
// Every call is one step. Agents are called "worker#1" (role "worker"), places "worker:3", objects "x". Each
// is created when it is first mentioned. Objects lie 64 bytes apart, and "x+4" is a place inside one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "detect/detector_set.h"
#include "trace/trace_log.h"

namespace slalom::test {

class ScriptNames : public Names {
 public:
  std::string agent(AgentId id) const override { return agents.at(id.raw); }
  std::string role(AgentId id) const override { return agent(id).substr(0, agent(id).find('#')); }
  std::string object(ObjectId id) const override;
  std::string place(Place pc) const override { return places.at(pc.raw); }
  std::string source(Place pc) const override { return "source of " + place(pc); }

  std::map<uint64_t, std::string> agents, objects, places;
};

class Script {
 public:
  // `first_agent` shifts the ids of agents: titles must not depend on them.
  explicit Script(uint32_t first_agent = 0) : next_agent_(first_agent) {}

  AgentId agent(const std::string& name);
  void name_agent(AgentId id, const std::string& name) { names_.agents[id.raw] = name; }
  ObjectId object(const std::string& name);
  Place place(const std::string& name);

  Script& access(OpKind op, const std::string& who, const std::string& object, const std::string& where,
                 uint32_t size = 8, int64_t value = 0, bool failed = false);
  Script& load(const std::string& who, const std::string& object, const std::string& where) {
    return access(OpKind::Load, who, object, where);
  }
  Script& store(const std::string& who, const std::string& object, const std::string& where) {
    return access(OpKind::Store, who, object, where);
  }
  struct Extra {
    uint64_t state = 0;
    std::string other;
    int64_t value = 0;
  };
  Script& event(OpKind op, const std::string& who, const std::string& object, const std::string& where,
                const Extra& extra);
  Script& event(OpKind op, const std::string& who, const std::string& object, const std::string& where) {
    return event(op, who, object, where, Extra());
  }
  Script& lock(const std::string& who, const std::string& object, const std::string& where) {
    return event(OpKind::Lock, who, object, where);
  }
  Script& unlock(const std::string& who, const std::string& object, const std::string& where) {
    return event(OpKind::Unlock, who, object, where);
  }
  Script& end(const Outcome& outcome) {
    log_.on_end(outcome);
    return *this;
  }
  Deadlocked::Waiting waiting(const std::string& who, OpKind op, const std::string& object,
                              const std::string& where, const std::vector<std::string>& held_by = {});

  uint64_t steps() const { return step_; }
  const TraceLog& log() const { return log_; }
  const ScriptNames& names() const { return names_; }
  std::vector<Verdict> verdicts(const std::string& detectors = "all") const;
  std::vector<std::string> titles(const std::string& detectors = "all") const;

 private:
  ScriptNames names_;
  TraceLog log_;
  uint64_t step_ = 0;
  uint32_t next_agent_;
};

// Runs a whole log through a set of detectors.
std::vector<Verdict> judge(const TraceLog& log, DetectorSet& set);

}  // namespace slalom::test
