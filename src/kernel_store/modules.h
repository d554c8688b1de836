// The modules of a kernel: finds them by name, with all that they need, in the order in which they load.
//
// What a module needs is read from the module itself, since Debian's packages come without modules.dep (it is
// made when they are installed).
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
  std::string name;                      // as the kernel calls it: no dashes
  std::string path;                      // below the directory of modules, without a suffix of compression
  std::vector<uint8_t> bytes;            // unpacked
  std::vector<std::string> depends;      // names
  std::vector<std::string> loads_first;  // softdep pre: names or aliases; not having one is no error
  std::vector<std::string> aliases;
};

// What the .modinfo section of an unpacked module says.
Result<Module> parse_module(std::span<const uint8_t> bytes);

class ModuleTree {
 public:
  // `directory` is a kernel's, with kernel/ and modules.builtin in it.
  static Result<ModuleTree> open(const std::filesystem::path& directory);

  bool is_builtin(const std::string& name) const;
  // Each once, none before what it needs. Those that are built in are left out.
  Result<std::vector<Module>> with_dependencies(const std::vector<std::string>& names);

 private:
  explicit ModuleTree(std::filesystem::path directory) : directory_(std::move(directory)) {}
  Result<Module> read(const std::string& name) const;
  void read_aliases();
  // Which module has this alias, built in or not. Reads all of them when first asked.
  std::optional<std::string> by_alias(const std::string& alias);
  Result<void> visit(const std::string& name, const std::string& wanted_by, std::set<std::string>& visited,
                     std::vector<Module>& ordered);

  std::filesystem::path directory_;
  std::map<std::string, std::filesystem::path> files_;  // by name; relative to directory_
  std::set<std::string> builtin_;
  std::optional<std::map<std::string, std::string>> aliases_;
};

}  // namespace slalom::vm
