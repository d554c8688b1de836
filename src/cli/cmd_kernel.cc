// slalom kernel: fetches, lists and removes the kernels that --kernel can name.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/core/command.h"
#include "finding/finding_json.h"
#include "kernel_store/kernel_builds.h"
#include "kernel_store/kernel_cache.h"
#include "kernel_store/kernel_fetch.h"

namespace slalom {
namespace {

struct KernelArguments {
  std::string action;
  std::string name;
  std::string mirror;
  std::filesystem::path keyring;
  bool unsigned_packages = false;
  bool headers = false;
  bool available = false;
  bool json = false;
};

nlohmann::ordered_json kernel_json(const vm::Kernel& kernel) {
  nlohmann::ordered_json packages = nlohmann::ordered_json::array();
  for (const vm::KernelPackage& each : kernel.packages)
    packages.push_back({{"package", each.package}, {"version", each.version}, {"sha256", each.sha256}});
  return {{"name", kernel.name},
          {"release", kernel.release},
          {"vmlinuz", kernel.vmlinuz.string()},
          {"config", kernel.config.string()},
          {"modules", kernel.modules.string()},
          {"packages", packages}};
}

vm::FetchOptions fetch_options(const KernelArguments& arguments) {
  vm::FetchOptions options{.mirror = arguments.mirror, .keyring = arguments.keyring};
  if (arguments.unsigned_packages) options.trust = vm::FetchOptions::Trust::Anyone;
  if (!arguments.json) options.progress = [](const std::string& what) { std::cerr << what << std::endl; };
  return options;
}

Result<Exit> get(const vm::KernelCache& cache, const KernelArguments& arguments) {
  const vm::FetchOptions options = fetch_options(arguments);
  TRY_ASSIGN(const vm::Kernel kernel, fetch_kernel(cache, arguments.name, options));
  std::filesystem::path headers;
  if (arguments.headers) {
    TRY_ASSIGN(headers, fetch_headers(cache, kernel, options));
  }
  if (arguments.json) {
    nlohmann::ordered_json json = kernel_json(kernel);
    if (arguments.headers) json["headers"] = headers.string();
    std::cout << json_text(json);
    return Exit::Clean;
  }
  std::cout << fmt::format("{}: Linux {} in {}\n", kernel.name, kernel.release,
                           kernel.vmlinuz.parent_path().string());
  if (arguments.headers) std::cout << fmt::format("its headers: {}\n", headers.string());
  return Exit::Clean;
}

// The names of a list that are not in the cache: the newest kernels of the default flavour.
std::vector<std::string> names_to_list(const vm::KernelCache& cache) {
  std::vector<std::string> names = cache.names();
  for (const std::string& name : vm::known_kernels())
    if (!cache.has(name)) names.push_back(name);
  return names;
}

Result<Exit> list(const vm::KernelCache& cache, const KernelArguments& arguments) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  const std::vector<std::string> names = names_to_list(cache);
  size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  for (const std::string& name : names) {
    if (!cache.has(name)) {
      if (arguments.json)
        all.push_back({{"name", name}, {"fetched", false}});
      else
        std::cout << fmt::format("{:<{}}  not here; run: slalom kernel get {}\n", name, width, name);
      continue;
    }
    TRY_ASSIGN(const vm::Kernel kernel, cache.load(name));
    nlohmann::ordered_json entry = kernel_json(kernel);
    entry["fetched"] = true;
    all.push_back(entry);
    if (!arguments.json)
      std::cout << fmt::format("{:<{}}  Linux {} ({})\n", name, width, kernel.release,
                               kernel.packages.front().version);
  }
  if (arguments.json) std::cout << json_text(all);
  return Exit::Clean;
}

// Lists the builds that the mirrors have: of one version and flavour, or of the default flavour of all
// versions.
Result<Exit> list_available(const vm::KernelCache& cache, const KernelArguments& arguments) {
  const std::vector<std::string> names =
      arguments.name.empty() ? vm::known_kernels() : std::vector{arguments.name};
  const vm::FetchOptions options = fetch_options(arguments);
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  bool some = false;
  for (const std::string& text : names) {
    TRY_ASSIGN(const vm::KernelName name, vm::parse_kernel_name(text));
    if (!name.build.empty())
      return error("--available lists all builds: write {}", name.without_build().text());
    const Result<std::vector<vm::KernelBuild>> found = available_builds(name, options);
    if (!found.ok() && text == names.back() && !some) return found.error();
    if (!found.ok()) {
      options.progress(fmt::format("{}: {}", name.text(), found.error().message));
      continue;
    }
    some = true;
    const std::vector<vm::KernelBuild>& builds = *found;
    size_t width = 0;
    for (const vm::KernelBuild& build : builds) width = std::max(width, build.name.text().size());
    for (const vm::KernelBuild& build : builds) {
      const std::string exact = build.name.text();
      const bool here = cache.load(exact).ok();
      if (arguments.json)
        all.push_back({{"name", exact},
                       {"release", build.release},
                       {"suite", build.suite},
                       {"mirror", build.mirror},
                       {"fetched", here}});
      else
        std::cout << fmt::format("{:<{}}  Linux {}, {}{}\n", exact, width, build.release, build.suite,
                                 here ? ", here" : "");
    }
    if (builds.empty() && !arguments.json)
      std::cout << fmt::format("{}: the mirrors have none\n", name.text());
  }
  if (arguments.json) std::cout << json_text(all);
  return Exit::Clean;
}

Result<Exit> remove(const vm::KernelCache& cache, const KernelArguments& arguments) {
  TRY(cache.remove(arguments.name));
  if (arguments.json)
    std::cout << json_text({{"removed", arguments.name}});
  else
    std::cout << "removed " << arguments.name << "\n";
  return Exit::Clean;
}

Result<Exit> kernel(const KernelArguments& given) {
  KernelArguments arguments = given;
  TRY_ASSIGN(const vm::KernelCache cache, vm::KernelCache::open());
  const bool has_mirror = !arguments.mirror.empty();
  const bool asks_mirrors = arguments.action == "get" || (arguments.action == "list" && arguments.available);
  if (arguments.action != "get" && arguments.headers) return error("--headers is for slalom kernel get");
  if (arguments.action != "list" && arguments.available)
    return error("--available is for slalom kernel list");
  if (!asks_mirrors && (has_mirror || arguments.unsigned_packages || !arguments.keyring.empty()))
    return error("--mirror, --keyring and --unsigned are for slalom kernel get and list --available");
  if (arguments.unsigned_packages && !has_mirror)
    return error("--unsigned takes packages that nobody vouches for: say from where, with --mirror URL");
  if (!arguments.keyring.empty()) {
    if (!has_mirror) return error("--keyring is for mirrors of other people: say which, with --mirror URL");
    if (arguments.unsigned_packages)
      return error("--keyring checks signatures, and --unsigned does not: leave out one");
    std::error_code trouble;
    if (!std::filesystem::exists(arguments.keyring, trouble))
      return error("there is no keyring {}", arguments.keyring.string());
  }
  if (arguments.action == "list") {
    if (arguments.available) return list_available(cache, arguments);
    if (!arguments.name.empty()) return error("slalom kernel list takes no name without --available");
    return list(cache, arguments);
  }
  if (arguments.action == "remove") {
    if (arguments.name.empty()) return error("remove which kernel? slalom kernel list shows what is here");
    return remove(cache, arguments);
  }
  if (arguments.name.empty()) arguments.name = vm::kDefaultKernel;
  return get(cache, arguments);
}

}  // namespace

void add_kernel(CLI::App& app, Run& run) {
  auto a = std::make_shared<KernelArguments>();
  CLI::App* verb =
      app.add_subcommand("kernel", "Fetch Debian's kernels for slalom to run, list them, or remove one.");
  verb->add_option("ACTION", a->action, "get, list or remove")
      ->required()
      ->type_name("")
      ->check(CLI::Validator(
          [](const std::string& text) -> std::string {
            if (text == "get" || text == "list" || text == "remove") return {};
            return fmt::format("is get, list or remove, not \"{}\"", text);
          },
          ""));
  verb->add_option("NAME", a->name,
                   "debian:5.10, debian:6.1 (the default of get), debian:6.12, debian:sid; other flavours as "
                   "debian:6.1:amd64 and debian:6.1:rt; one build as debian:5.10=5.10.218-1")
      ->type_name("");
  verb->add_option("--mirror", a->mirror,
                   "fetch from this Debian mirror, not from those that apt is set up with")
      ->type_name("URL");
  verb->add_option("--keyring", a->keyring,
                   "the keys that must have signed what --mirror has, instead of Debian's")
      ->type_name("FILE");
  verb->add_flag("--unsigned", a->unsigned_packages,
                 "accept packages of --mirror without Debian's signature");
  verb->add_flag("--headers", a->headers, "also fetch the headers of that build, to build modules with");
  verb->add_flag("--available", a->available, "list the builds that the mirrors have: of NAME, or of all");
  verb->add_flag("--json", a->json, "as JSON on standard output");
  verb->callback([a, &run] { run = [a] { return kernel(*a); }; });
}

}  // namespace slalom
