// The cache of fetched kernels: their location, names and files.
//
// A kernel is a directory that appears and disappears as a whole, so that readers find it complete or not at
// all. kernel_fetch fills the cache.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel_store/kernel_name.h"

namespace slalom::vm {

inline constexpr std::string_view kDefaultKernel = "debian:6.1";

// $SLALOM_CACHE, or slalom/ in the user's cache directory.
Result<std::filesystem::path> cache_directory();

struct KernelPackage {
  std::string package;
  std::string version;
  std::string sha256;
  uint64_t size = 0;  // bytes to download; 0: unknown
  bool operator==(const KernelPackage&) const = default;
};

struct Kernel {
  std::string name;     // "debian:6.1", as it lies in the cache; for a user's own file, its path
  std::string release;  // as uname -r prints it; empty for a user's own file
  std::vector<KernelPackage> packages;
  std::filesystem::path vmlinuz;
  std::filesystem::path config;   // empty if there is none
  std::filesystem::path symbols;  // System.map; empty if there is none
  std::filesystem::path modules;  // the directory with kernel/...; empty if there is none

  // A name that stands for this build for ever: "debian:6.1=6.1.192-2"; for a user's own file, its path.
  std::string exact_name() const;
};

class KernelCache {
 public:
  static Result<KernelCache> open();  // in a subfolder of cache_directory()
  explicit KernelCache(std::filesystem::path directory) : directory_(std::move(directory)) {}

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path path_of(std::string_view name) const { return directory_ / name; }
  bool has(std::string_view name) const;
  // A name with a build also finds the kernel that was fetched without one, if it is of that build.
  Result<Kernel> load(std::string_view name) const;
  std::vector<std::string> names() const;  // by version and flavour; builds follow, newest first
  Result<void> remove(std::string_view name) const;

 private:
  Result<Kernel> read(const KernelName& name) const;

  std::filesystem::path directory_;
};

// Resolves the argument of --kernel: the name of a fetched kernel, or a file.
Result<Kernel> find_kernel(const KernelCache& cache, const std::string& name_or_path);

// The text of the note that is kept with a kernel.
std::string kernel_note(const Kernel& kernel);

}  // namespace slalom::vm
