#include "process/names/allocation_text.h"

#include <regex>
#include <set>

namespace slalom {
namespace {

#define TYPE R"((?:(?:struct|union|class|const)\s+)*([A-Za-z_]\w*(?:::\w+)*))"
#define POINTER R"(([A-Za-z_]\w*(?:(?:->|\.)\w+|\[[^\]]*\])*))"

// Adds the matches of the pattern's group. Skips the name of a template, which is no type without its
// arguments.
void add_matches(const std::string& line, const std::regex& pattern, std::set<std::string>& found) {
  for (std::sregex_iterator at(line.begin(), line.end(), pattern), end; at != end; ++at) {
    const auto behind = static_cast<size_t>(at->position(1) + at->length(1));
    const size_t next = line.find_first_not_of(" \t", behind);
    const bool is_template = next != std::string::npos && line[next] == '<';
    found.insert(is_template ? "" : (*at)[1].str());
  }
}

bool adds(const std::string& line) {
  for (size_t at = line.find('+'); at != std::string::npos; at = line.find('+', at + 2))
    if (at + 1 >= line.size() || (line[at + 1] != '+' && line[at + 1] != '=')) return true;
  return false;
}

}  // namespace

AllocationText read_allocation(const std::string& line) {
  static const std::regex kNew(R"(\bnew\s+(?:\([^)]*\)\s*)?)" TYPE), kNewArray(R"(\bnew\s[^;({]*\[)"),
      kUnique(R"(\bmake_unique\s*<\s*)" TYPE), kShared(R"(\bmake_shared\s*<\s*)" TYPE),
      kSizeof(R"(\bsizeof\s*\(?\s*)" TYPE R"(\s*\)?(?!\s*(?:->|\.|\[|\w)))"),
      kSizeofPointer(R"(\bsizeof\s*\(?\s*\*\s*)" POINTER),
      kSizeofFirst(R"(\bsizeof\s*\(?\s*([A-Za-z_]\w*)\[0\])"),
      kCast(R"(\(\s*)" TYPE R"(\s*\*\s*\)\s*\w*alloc)"), kAnySizeof(R"(\bsizeof\b)"),
      kReleased(R"(\b(?:delete\s*(?:\[\s*\])?|free\s*\()\s*)" POINTER R"(\s*[);,])"),
      kAssigned(POINTER R"(\s*=[^=].*\b(?:new|\w*alloc\w*|strdup|make_unique|make_shared)\b)");
  using Form = AllocationText::Form;
  AllocationText text;
  std::smatch match;
  if (std::regex_search(line, match, kAssigned)) text.assigned = match[1];
  if (text.assigned.empty() && std::regex_search(line, match, kReleased))
    return {Form::Unknown, "", "", match[1]};
  std::set<std::string> types, pointers;
  const auto look = [&](const std::regex& pattern, Form form) {
    const size_t before = types.size();
    add_matches(line, pattern, types);
    if (types.size() > before) text.form = form;
  };
  look(kNew, std::regex_search(line, kNewArray) ? Form::Array : Form::One);
  look(kUnique, Form::One);
  look(kShared, Form::Shared);
  if (types.empty()) {
    const Form form = adds(line) ? Form::Tail : Form::Sizeof;
    add_matches(line, kSizeofPointer, pointers);
    add_matches(line, kSizeofFirst, pointers);
    look(kSizeof, form);
    if (types.empty() && pointers.empty() && !std::regex_search(line, kAnySizeof)) look(kCast, form);
    if (!pointers.empty()) text.form = form;
  }
  if (types.size() + pointers.size() > 1) return {Form::Unknown, "", "", text.assigned};
  if (!types.empty()) text.type = *types.begin();
  if (!pointers.empty()) text.pointer = *pointers.begin();
  return text;
}

}  // namespace slalom
