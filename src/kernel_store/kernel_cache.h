// The kernels that were fetched: where they are kept, what they are called, what belongs to each.
//
// A kernel is a directory that appears and disappears as a whole, so that whoever looks finds all of it or
// nothing. Filling it is kernel_fetch's job.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slalom::vm {

inline constexpr std::string_view kDefaultKernel = "debian:6.1";

// $SLALOM_CACHE, or slalom/ in the user's cache directory.
Result<std::filesystem::path> cache_directory();

// Names that `slalom kernel get` knows.
const std::vector<std::string>& known_kernels();
bool is_known_kernel(std::string_view name);

struct KernelPackage {
  std::string package;
  std::string version;
  std::string sha256;
  bool operator==(const KernelPackage&) const = default;
};

struct Kernel {
  std::string name;     // debian:6.1; of a user's own file: its path
  std::string release;  // what uname -r says; empty for a user's own file
  std::vector<KernelPackage> packages;
  std::filesystem::path vmlinuz;
  std::filesystem::path config;   // empty: there is none
  std::filesystem::path symbols;  // System.map; empty: there is none
  std::filesystem::path modules;  // the directory with kernel/...; empty: there is none
};

class KernelCache {
 public:
  static Result<KernelCache> open();  // below cache_directory()
  explicit KernelCache(std::filesystem::path directory) : directory_(std::move(directory)) {}

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path path_of(std::string_view name) const { return directory_ / name; }
  bool has(std::string_view name) const;
  Result<Kernel> load(std::string_view name) const;
  std::vector<std::string> names() const;  // sorted as known_kernels()
  Result<void> remove(std::string_view name) const;

 private:
  std::filesystem::path directory_;
};

// What the user names with --kernel: a fetched kernel, or a file.
Result<Kernel> find_kernel(const KernelCache& cache, const std::string& name_or_path);

// The note kept beside a kernel.
std::string kernel_note(const Kernel& kernel);

}  // namespace slalom::vm
