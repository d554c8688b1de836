// slalom doctor: does this machine have what slalom needs, and how to mend what is missing.
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/container.h"
#include "cli/command.h"
#include "finding/finding_json.h"

namespace slalom {
namespace {

struct Check {
  std::string what;
  bool good = false;
  std::string found;
  std::string advice;  // where it is not good
};

std::vector<Check> examine() {
  std::vector<Check> checks;
  const unsigned cores = std::thread::hardware_concurrency();
  checks.push_back(
      {"processors", cores >= 1, fmt::format("{}", cores), "workers cannot be counted: give --workers N"});

  const auto memory =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE)) >> 20;
  checks.push_back(
      {"memory", memory >= 512, fmt::format("{} MiB", memory), "exhaustive searches want at least 512 MiB"});

  // The real question is not permissions but whether a finding can be written and read back here.
  const std::filesystem::path probe = fmt::format("slalom-doctor-{}.tmp", getpid());
  const std::vector<uint8_t> bytes = {1, 2, 3};
  const Result<void> written = write_container(probe, FileKind::Schedule, bytes);
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
              << ": " << check.found << "\n";
    if (!check.good) std::cout << "      " << check.advice << "\n";
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
