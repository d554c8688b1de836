// Builds the guest's first file system: a static busybox, slalom's agent as /init, modules, and files of the
// user.
//
// The same inputs give the same bytes. Needs no privilege.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernel_store/kernel_cache.h"

namespace slalom::vm {

// Loaded by the agent, in this order, before it runs anything.
inline constexpr const char* kModuleList = "etc/slalom/modules";

struct ExtraFile {
  std::filesystem::path host;  // a file, or a directory with all that is in it
  std::string guest;           // where it goes
};

struct InitramfsOptions {
  Kernel kernel;                     // whose modules
  std::vector<std::string> modules;  // by name; what they need comes along
  std::vector<ExtraFile> files;      // programs come with the shared libraries that they need
  std::filesystem::path busybox;     // empty: this system's
  std::span<const uint8_t> agent;    // see agent_program()
};

// The agent that was built with slalom.
std::span<const uint8_t> agent_program();

Result<std::vector<uint8_t>> build_initramfs(const InitramfsOptions& options);

// As build_initramfs(), but what was built once for a fetched kernel is taken from `directory`.
Result<std::vector<uint8_t>> cached_initramfs(const std::filesystem::path& directory,
                                              const InitramfsOptions& options);

}  // namespace slalom::vm
