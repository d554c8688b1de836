// MachineCache: keeps prepared machines as files. A file is named by everything that the machine was made
// from; its console output and threads are in files next to it.
//
// A damaged file, or one of another version of slalom, counts as missing. If there are too many machines, the
// oldest are removed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "vm/boot/boot.h"
#include "vm/scenario/prepare.h"

namespace slalom::vm {

// A name for the machine that some options and an agent plan produce.
struct ContentName {
  std::string name;
  std::string former;  // what older capsules call the same machine
};
Result<ContentName> content_name(const BootOptions& boot, const std::string& plan);

struct KeptMachine {
  Booted machine;
  std::string console;
  std::string threads;                         // as the agent lists them
  std::vector<std::vector<uint8_t>> prepared;  // results of prepared lists, by their numbers
};

class MachineCache {
 public:
  static Result<MachineCache> open();  // in a subfolder of cache_directory()
  explicit MachineCache(std::filesystem::path directory) : directory_(std::move(directory)) {}

  std::optional<KeptMachine> find(const std::string& content) const;
  // The results of the prepared lists alone; empty if the machine is not there.
  std::vector<std::vector<uint8_t>> prepared(const std::string& content) const;
  Result<void> keep(const std::string& content, KeptMachine& machine) const;

  static constexpr size_t kMost = 32;  // machines

 private:
  // Reads everything but the machine. Returns what is wrong, or "".
  std::string read_notes(const std::string& content, KeptMachine& kept) const;
  std::filesystem::path path_of(const std::string& content, const char* ending) const {
    return directory_ / (content + ending);
  }
  void remove_oldest() const;

  std::filesystem::path directory_;
};

}  // namespace slalom::vm
