// A finding as JSON, for other tools. docs/formats.md defines the fields. slalom never reads it back: it
// reads the capsule.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "finding/finding.h"

namespace slalom {

// What a finding's numbers and names stand for. Only its execution shows this; a capsule does not hold it.
struct FindingWords {
  std::map<Place, std::string> places;  // "queue.c:12 (push)"
  struct Object {
    std::string name;      // its name in the finding's texts: "node#2", "m"
    std::string kind;      // "block" of the heap, "local" variable, or other "object"
    uint64_t address = 0;  // in that execution
    uint64_t size = 0;     // 0 means unknown
    std::string type;      // empty if unknown
    std::string function;  // the function of a local variable
    AgentId agent;         // the agent that allocated or freed it, or whose stack holds it
    std::string place;     // where a block was allocated, or where it was freed if is_freed
    bool is_freed = false;
  };
  std::vector<Object> objects;
};

// `capsule` is the capsule's path as the JSON's readers see it.
nlohmann::ordered_json finding_json(const Finding& finding, const std::string& capsule,
                                    const FindingWords& words = {});

// Returns indented text with a newline at its end. Replaces text of the target that is not UTF-8.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace slalom
