// slalom doctor: checks whether this machine has what slalom needs, and says how to fix what is missing.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/container.h"
#include "base/file.h"
#include "cli/core/command.h"
#include "finding/finding_json.h"
#include "finding/signing_key.h"
#include "kernel_store/kernel_cache.h"

namespace slalom {
namespace {

struct Check {
  std::string what;
  bool good = false;
  std::string found;
  std::string advice;  // advice if the check fails
};

// Returns the path of a program in PATH; empty if it is not there.
std::string find_in_path(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::istringstream folders(variable == nullptr ? "/usr/bin:/bin" : variable);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string path = folder + "/" + name; access(path.c_str(), X_OK) == 0) return path;
  return {};
}

// Returns whether files can be created in this folder or, if it does not exist, in the nearest existing
// folder above it.
bool can_be_written(std::filesystem::path folder) {
  std::error_code ignored;
  while (!std::filesystem::exists(folder, ignored) && folder.has_relative_path())
    folder = folder.parent_path();
  return std::filesystem::is_directory(folder, ignored) && access(folder.c_str(), W_OK | X_OK) == 0;
}

Check examine_home() {
  const char* home = std::getenv("HOME");
  const bool set = home != nullptr && *home != '\0';
  std::error_code ignored;
  const bool good = set && std::filesystem::is_directory(home, ignored);
  return {"HOME", good, set ? home : "not set",
          "set HOME to your folder: slalom keeps its cache and its key there"};
}

Check examine_cache() {
  const Result<std::filesystem::path> cache = vm::cache_directory();
  if (!cache.ok()) return {"cache", false, "none", cache.error().message};
  const bool good = can_be_written(*cache);
  return {"cache", good, cache->string() + (good ? "" : ", which cannot be written"),
          "check its permissions, or set SLALOM_CACHE to another folder"};
}

Check examine_key() {
  const Result<std::filesystem::path> path = SigningKey::path();
  if (!path.ok()) return {"signing key", false, "none", path.error().message};
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(*path, ignored))) {
    const bool good = can_be_written(path->parent_path());
    return {"signing key", good, good ? "none yet: the first finding makes it" : "none, and none can be made",
            fmt::format("make {} a folder that you can write to", path->parent_path().string())};
  }
  const Result<SigningKey> key = SigningKey::load();
  return {"signing key", key.ok(), path->string(), key.ok() ? "" : key.error().message};
}

// Only kernel tests and slalom boot need one.
void examine_kernels(std::vector<Check>& checks) {
  const Result<vm::KernelCache> cache = vm::KernelCache::open();
  std::string here;
  for (const std::string& name : cache.ok() ? cache->names() : std::vector<std::string>()) {
    const Result<vm::Kernel> kernel = cache->load(name);
    if (!kernel.ok()) checks.push_back({"kernel " + name, false, "damaged", kernel.error().message});
    if (kernel.ok()) here += (here.empty() ? "" : ", ") + name;
  }
  checks.push_back(
      {"kernels", true,
       here.empty() ? fmt::format("none (for kernel tests: slalom kernel get {})", vm::kDefaultKernel) : here,
       ""});
}

std::vector<Check> examine() {
  std::vector<Check> checks;
  const unsigned cores = std::thread::hardware_concurrency();
  checks.push_back(
      {"processors", cores >= 1, fmt::format("{}", cores), "workers cannot be counted: give --workers N"});

  const auto memory =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE)) >> 20;
  checks.push_back(
      {"memory", memory >= 512, fmt::format("{} MiB", memory), "exhaustive searches want at least 512 MiB"});

  // Tests by writing and reading a real finding, because correct permissions would not be enough.
  const std::filesystem::path probe = fmt::format("slalom-doctor-{}.tmp", getpid());
  const std::vector<uint8_t> bytes = {1, 2, 3};
  const Result<std::vector<uint8_t>> packed = pack_container(FileKind::Schedule, bytes);
  const Result<void> written = packed.ok() ? write_file(probe, *packed) : Error(packed.error());
  const Result<std::vector<uint8_t>> back =
      written.ok() ? read_container(probe, FileKind::Schedule) : Error(written.error());
  std::error_code ignored;
  std::filesystem::remove(probe, ignored);
  const bool kept = back.ok() && *back == bytes;
  checks.push_back(
      {"findings can be written here", kept, kept ? "yes" : "no",
       back.ok() ? "files come back changed: check the disk" : back.error().message + "; or give --out DIR"});

  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  checks.push_back({"open files", files.rlim_cur >= 256, fmt::format("{}", files.rlim_cur),
                    "raise the limit: ulimit -n 1024"});
  checks.push_back(examine_home());
  checks.push_back(examine_cache());
  checks.push_back(examine_key());
  const std::string gdb = find_in_path("gdb");
  checks.push_back(
      {"gdb", true, gdb.empty() ? "none (for slalom replay --gdb: install the package gdb)" : gdb, ""});
  examine_kernels(checks);
  return checks;
}

Result<Exit> doctor(bool json) {
  const std::vector<Check> checks = examine();
  bool good = true;
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  const Style style = output_style();
  for (const Check& check : checks) {
    good = good && check.good;
    all.push_back({{"check", check.what},
                   {"ok", check.good},
                   {"found", check.found},
                   {"advice", check.good ? "" : check.advice}});
    if (json) continue;
    std::cout << (check.good ? style.paint(Ink::Green, "ok  ") : style.paint(Ink::Red, "FIX ")) << check.what
              << ": " << printable(check.found) << "\n";
    if (!check.good) std::cout << "      " << printable(check.advice) << "\n";
  }
  if (json)
    std::cout << json_text({{"ok", good}, {"checks", all}});
  else
    std::cout << (good ? "This machine is ready.\n"
                       : "Mend what is marked FIX, then run slalom doctor again.\n");
  return good ? Exit::Clean : Exit::Usage;
}

}  // namespace

void add_doctor(CLI::App& app, Run& run) {
  auto json = std::make_shared<bool>(false);
  CLI::App* verb = app.add_subcommand("doctor", "Check that this machine has what slalom needs.");
  verb->add_flag("--json", *json, "as JSON on standard output");
  verb->callback([json, &run] { run = [json] { return doctor(*json); }; });
}

}  // namespace slalom
