// Builds the guest's first file system: a static busybox, slalom's agent as /init, modules, and the user's
// files.
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

// The agent loads these modules, in this order, before it runs anything.
inline constexpr const char* kModuleList = "etc/slalom/modules";

struct ExtraFile {
  std::filesystem::path host;  // a file, or a directory with its contents
  std::string guest;           // its path in the guest
};

struct InitramfsOptions {
  Kernel kernel;                     // the kernel whose modules are used
  std::vector<std::string> modules;  // names, with parameters; their dependencies are added
  std::vector<ExtraFile> files;      // the shared libraries that programs need are added
  std::filesystem::path busybox;     // empty: the one of this system
  std::span<const uint8_t> agent;    // see agent_program()
};

// The agent that was built with slalom.
std::span<const uint8_t> agent_program();

Result<std::vector<uint8_t>> build_initramfs(const InitramfsOptions& options);

// Like build_initramfs(), but uses the archives cached in `directory` if the kernel was fetched.
Result<std::vector<uint8_t>> cached_initramfs(const std::filesystem::path& directory,
                                              const InitramfsOptions& options);

}  // namespace slalom::vm
