// A finding as JSON, for other tools. docs/formats.md defines the fields. slalom never reads it back: it
// reads the capsule.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "finding/finding.h"

namespace slalom {

// `capsule`: its path, as the reader of the JSON sees it.
nlohmann::ordered_json finding_json(const Finding& finding, const std::string& capsule);

// Returns indented text with a newline at its end. Replaces text of the target that is not UTF-8.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace slalom
