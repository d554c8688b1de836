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
  std::string built_for;                // the kernel's release; empty if it does not say
  bool has_versions = false;            // the kernel checks the symbols that it uses, not the release
  std::vector<std::string> parameters;  // names
};

// Reads the .modinfo section of an uncompressed module.
Result<Module> parse_module(std::span<const uint8_t> bytes);

// A module that the user asks for: "loop max_loop=4".
struct WantedModule {
  std::string name;        // as the kernel spells it
  std::string parameters;  // as the kernel takes them; empty if there are none
};
WantedModule parse_wanted_module(const std::string& text);

// An error if a parameter is not one of the module's.
Result<void> check_parameters(const Module& module, const std::string& parameters);

// Returns the parameters as options of the kernel's command line, for a module that is built in.
std::string as_kernel_options(const WantedModule& module);

// An error if a kernel of this release certainly refuses the module. An empty release is not known.
Result<void> check_built_for(const Module& module, const std::string& release);

// Reads a module's file, compressed or not. A module without a name of its own gets that of the file.
Result<Module> read_module(const std::filesystem::path& file);

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
