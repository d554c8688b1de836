// slalom kernel: fetches, lists and removes the kernels that --kernel can name.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "finding/finding_json.h"
#include "kernel_store/kernel_cache.h"
#include "kernel_store/kernel_fetch.h"

namespace slalom {
namespace {

struct KernelArguments {
  std::string action;
  std::string name;
  std::string mirror;
  bool unsigned_packages = false;
  bool headers = false;
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

Result<Exit> get(const vm::KernelCache& cache, const KernelArguments& arguments) {
  vm::FetchOptions options{.mirror = arguments.mirror};
  if (arguments.unsigned_packages) options.trust = vm::FetchOptions::Trust::Anyone;
  if (!arguments.json) options.progress = [](const std::string& what) { std::cerr << what << std::endl; };
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

Result<Exit> list(const vm::KernelCache& cache, const KernelArguments& arguments) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const std::string& name : vm::known_kernels()) {
    if (!cache.has(name)) {
      if (arguments.json)
        all.push_back({{"name", name}, {"fetched", false}});
      else
        std::cout << fmt::format("{:<12}  not here; run: slalom kernel get {}\n", name, name);
      continue;
    }
    TRY_ASSIGN(const vm::Kernel kernel, cache.load(name));
    nlohmann::ordered_json entry = kernel_json(kernel);
    entry["fetched"] = true;
    all.push_back(entry);
    if (!arguments.json)
      std::cout << fmt::format("{:<12}  Linux {} ({})\n", name, kernel.release,
                               kernel.packages.front().version);
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
  if (arguments.action != "get" && (has_mirror || arguments.unsigned_packages || arguments.headers))
    return error("--mirror, --unsigned and --headers are for slalom kernel get");
  if (arguments.unsigned_packages && !has_mirror)
    return error("--unsigned takes packages that nobody vouches for: say from where, with --mirror URL");
  if (arguments.action == "list") {
    if (!arguments.name.empty()) return error("slalom kernel list takes no name");
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
                   "debian:5.10, debian:6.1 (what get fetches unless told), debian:6.12, debian:sid")
      ->type_name("");
  verb->add_option("--mirror", a->mirror,
                   "fetch from this Debian mirror, not from those that apt is set up with")
      ->type_name("URL");
  verb->add_flag("--unsigned", a->unsigned_packages,
                 "accept packages of --mirror without Debian's signature");
  verb->add_flag("--headers", a->headers, "also fetch the headers of that build, to build modules with");
  verb->add_flag("--json", a->json, "as JSON on standard output");
  verb->callback([a, &run] { run = [a] { return kernel(*a); }; });
}

}  // namespace slalom
