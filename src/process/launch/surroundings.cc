#include "process/launch/surroundings.h"

#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"

extern char** environ;

namespace slalom {
namespace {

using Json = nlohmann::ordered_json;
using Table = std::map<std::string, std::string>;

std::string contents_hash(const std::string& path) {
  const Result<std::vector<uint8_t>> file = read_file(path);
  return file.ok() ? fmt::format("{:016x}", XXH3_64bits(file->data(), file->size())) : "";
}

// Too short to guess a secret by.
std::string short_hash(std::string_view value) {
  return fmt::format("{:04x}", XXH3_64bits(value.data(), value.size()) & 0xffff);
}

std::string text_of(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_string() ? at->get<std::string>() : "";
}

Table table_of(const Json& json, const char* key) {
  Table table;
  const auto at = json.find(key);
  if (at == json.end() || !at->is_object()) return table;
  for (const auto& [name, value] : at->items())
    if (value.is_string()) table[name] = value.get<std::string>();
  return table;
}

// `there` and `here` describe an entry that only `then` has, or only `now`.
void compare_tables(const Table& then, const Table& now, const char* what, const char* changed,
                    const char* there, const char* here, std::vector<std::string>& to) {
  for (const auto& [name, hash] : then) {
    const auto at = now.find(name);
    if (at == now.end())
      to.push_back(fmt::format("{} {} {}", what, name, there));
    else if (at->second != hash)
      to.push_back(fmt::format("{} {} {}", what, name, changed));
  }
  for (const auto& [name, hash] : now)
    if (!then.contains(name)) to.push_back(fmt::format("{} {} {}", what, name, here));
}

}  // namespace

std::vector<std::string> inherited_environment() {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with("LD_PRELOAD=") && !text.starts_with("LD_BIND_NOW=") && !text.starts_with("SLALOM_"))
      all.emplace_back(text);
  }
  return all;
}

std::string surroundings_of(const Program& program, const std::vector<Zygote::Module>& modules,
                            const std::string& version) {
  Json json;
  json["version"] = version;
  std::error_code ignored;
  if (program.scratch.empty()) json["folder"] = std::filesystem::current_path(ignored).string();
  Table libraries, variables;
  for (const Zygote::Module& module : modules)
    if (module.path != program.path && !module.ours) libraries[module.path] = contents_hash(module.path);
  for (const std::string& variable : inherited_environment()) {
    const size_t end = variable.find('=');
    if (end != std::string::npos) variables[variable.substr(0, end)] = short_hash(variable.substr(end + 1));
  }
  json["modules"] = libraries;
  json["environment"] = variables;
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> differences(const std::string& then, const std::string& now) {
  std::vector<std::string> all;
  const Json a = Json::parse(then, nullptr, false), b = Json::parse(now, nullptr, false);
  if (!a.is_object() || !b.is_object()) return all;
  if (text_of(a, "version") != text_of(b, "version"))
    all.push_back(
        fmt::format("it was found by slalom {}, this is {}", text_of(a, "version"), text_of(b, "version")));
  if (text_of(a, "folder") != text_of(b, "folder"))
    all.push_back(
        fmt::format("it was found in the folder {}, this is {}", text_of(a, "folder"), text_of(b, "folder")));
  compare_tables(table_of(a, "modules"), table_of(b, "modules"), "the library", "has other contents",
                 "is not loaded any more", "was not loaded then", all);
  compare_tables(table_of(a, "environment"), table_of(b, "environment"), "the environment variable",
                 "has another value", "was set then", "was not set then", all);
  return all;
}

}  // namespace slalom
