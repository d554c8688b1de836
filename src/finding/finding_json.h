// A finding as JSON, for other tools. docs/formats.md defines the fields. slalom never reads it back: it
// reads the capsule.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "finding/finding.h"

namespace slalom {

// What a finding's numbers and names stand for, which only its execution tells: a capsule does not have it.
struct FindingWords {
  std::map<Place, std::string> places;  // "queue.c:12 (push)"
  struct Object {
    std::string name;       // as the finding's texts call it: "node#2", "m"
    std::string kind;       // "block" of the heap, "local" variable, or other "object"
    uint64_t address = 0;   // in that execution
    uint64_t size = 0;      // 0: not known
    std::string type;       // empty: not known
    std::string function;   // of a local variable: whose
    AgentId agent;          // who allocated it, or on whose stack it is
    std::string place;      // of a block: where it was allocated, or if that is not known,
    bool is_freed = false;  // freed
  };
  std::vector<Object> objects;
};

// `capsule`: where it is, as seen by whoever reads the JSON.
nlohmann::ordered_json finding_json(const Finding& finding, const std::string& capsule,
                                    const FindingWords& words = {});

// Returns indented text with a newline at its end. Replaces text of the target that is not UTF-8.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace slalom
