// ModuleTree: finds a kernel's modules by name, together with all modules that they need, in load order.
//
// Dependencies are read from the modules themselves, because Debian's packages contain no modules.dep (it is
// created at installation).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace slalom::vm {

struct Module {
  std::string name;            // as the kernel spells it, without dashes
  std::string path;            // relative to the directory of modules, without the suffix of the compression
  std::vector<uint8_t> bytes;  // uncompressed
  std::vector<std::string> depends;      // names
  std::vector<std::string> loads_first;  // softdep pre: names or aliases; a missing one is no error
  std::vector<std::string> aliases;
};

// Reads the .modinfo section of an uncompressed module.
Result<Module> parse_module(std::span<const uint8_t> bytes);

class ModuleTree {
 public:
  // `directory` is that of a kernel. It contains kernel/ and modules.builtin.
  static Result<ModuleTree> open(const std::filesystem::path& directory);

  bool is_builtin(const std::string& name) const;
  // Returns each module once, after the modules that it needs. Built-in modules are left out.
  Result<std::vector<Module>> with_dependencies(const std::vector<std::string>& names);

 private:
  explicit ModuleTree(std::filesystem::path directory) : directory_(std::move(directory)) {}
  Result<Module> read(const std::string& name) const;
  void read_aliases();
  // The module with this alias, built-in or not. The first call reads all modules.
  std::optional<std::string> by_alias(const std::string& alias);
  Result<void> visit(const std::string& name, const std::string& wanted_by, std::set<std::string>& visited,
                     std::vector<Module>& ordered);

  std::filesystem::path directory_;
  std::map<std::string, std::filesystem::path> files_;  // by name; relative to directory_
  std::set<std::string> builtin_;
  std::optional<std::map<std::string, std::string>> aliases_;
};

}  // namespace slalom::vm
