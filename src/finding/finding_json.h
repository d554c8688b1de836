// A finding as JSON, for other tools; the fields are promised in docs/formats.md. One way only: the capsule
// is what slalom reads back.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "finding/finding.h"

namespace slalom {

// `capsule`: where it is, as seen by whoever reads the JSON.
nlohmann::ordered_json finding_json(const Finding& finding, const std::string& capsule);

// Indented, with a newline at its end; text of the target that is not UTF-8 is replaced.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace slalom
