// Prepared machines that are kept: a file for each, named by all that the machine was made from, and its
// notes beside it.
//
// A file that is damaged, or of another version of slalom, counts as none. The oldest are removed when there
// are many.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "vm/boot/boot.h"
#include "vm/scenario/prepare.h"

namespace slalom::vm {

// Names the machine that `boot` and the agent's plan lead to.
Result<std::string> content_name(const BootOptions& boot, const std::string& plan);

struct KeptMachine {
  Booted machine;
  std::string console;
  std::string threads;  // as the agent lists them
};

class MachineCache {
 public:
  static Result<MachineCache> open();  // below cache_directory()
  explicit MachineCache(std::filesystem::path directory) : directory_(std::move(directory)) {}

  std::optional<KeptMachine> find(const std::string& content) const;
  Result<void> keep(const std::string& content, KeptMachine& machine) const;

  static constexpr size_t kMost = 32;  // machines

 private:
  std::filesystem::path path_of(const std::string& content, const char* ending) const {
    return directory_ / (content + ending);
  }
  void remove_oldest() const;

  std::filesystem::path directory_;
};

}  // namespace slalom::vm
