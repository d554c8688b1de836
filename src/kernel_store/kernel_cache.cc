#include "kernel_store/kernel_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "base/file.h"
#include "base/log.h"
#include "kernel_store/control_file.h"

namespace slalom::vm {
namespace {

constexpr std::string_view kNote = "kernel.txt";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string joined(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

// The place of a name in a list for people.
auto rank_of(const KernelName& name) {
  const auto version = std::ranges::find(known_kernels(), KernelName{.version = name.version}.text());
  const auto flavour = std::ranges::find(kernel_flavours(), name.flavour);
  return std::tuple(version - known_kernels().begin(), flavour - kernel_flavours().begin(),
                    !name.build.empty());
}

std::filesystem::path if_present(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? path : std::filesystem::path();
}

}  // namespace

Result<std::filesystem::path> cache_directory() {
  if (const std::string own = environment("SLALOM_CACHE"); !own.empty()) return std::filesystem::path(own);
  // The XDG specification makes a relative XDG_CACHE_HOME invalid.
  if (const std::string shared = environment("XDG_CACHE_HOME"); shared.starts_with('/'))
    return std::filesystem::path(shared) / "slalom";
  if (const std::string home = environment("HOME"); !home.empty())
    return std::filesystem::path(home) / ".cache/slalom";
  return error("there is no place for slalom's cache: set HOME, or SLALOM_CACHE to a directory");
}

std::string Kernel::exact_name() const {
  if (packages.empty()) return name;
  const Result<KernelName> known = parse_kernel_name(name);
  if (!known.ok()) return name;
  return KernelName{known->version, known->flavour, packages.front().version}.text();
}

std::string kernel_note(const Kernel& kernel) {
  Stanza note;
  note.add("Name", kernel.name);
  note.add("Release", kernel.release);
  std::string packages;
  for (const KernelPackage& each : kernel.packages)
    packages += fmt::format("\n{} {} {}", each.package, each.version, each.sha256);
  note.add("Packages", packages);
  std::error_code trouble;
  if (const auto size = std::filesystem::file_size(kernel.vmlinuz, trouble); !trouble)
    note.add("Image-Size", fmt::format("{}", size));
  return note.text();
}

Result<KernelCache> KernelCache::open() {
  TRY_ASSIGN(const std::filesystem::path root, cache_directory());
  return KernelCache(root / "kernels");
}

bool KernelCache::has(std::string_view name) const {
  std::error_code ignored;
  const Result<KernelName> known = parse_kernel_name(name);
  return known.ok() && std::filesystem::exists(path_of(known->text()) / kNote, ignored);
}

Result<Kernel> KernelCache::load(std::string_view text) const {
  TRY_ASSIGN(const KernelName name, parse_kernel_name(text));
  if (has(name.text())) return read(name);
  const std::string base = name.without_build().text();
  if (!name.build.empty() && has(base)) {
    const Result<Kernel> newest = read(name.without_build());
    if (newest.ok() && newest->packages.front().version == name.build) return newest;
  }
  std::vector<std::string> similar;
  for (const std::string& here : names()) {
    if (parse_kernel_name(here)->without_build() != name.without_build()) continue;
    const Result<Kernel> kernel = load(here);
    similar.push_back(kernel.ok() ? kernel->exact_name() : here);
  }
  return error("the kernel {} is not here{}; run: slalom kernel get {}", name.text(),
               similar.empty() ? "" : fmt::format(" (but {})", joined(similar)), name.text());
}

Result<Kernel> KernelCache::read(const KernelName& known) const {
  const std::string name = known.text();
  const std::filesystem::path directory = path_of(name);
  TRY_ASSIGN(const std::vector<uint8_t> bytes, read_file(directory / kNote));
  const std::vector<Stanza> stanzas = parse_control(std::string(bytes.begin(), bytes.end()));
  const auto damaged = [&] {
    return error("{} is damaged; run: slalom kernel get {}, which fetches it anew", directory.string(), name);
  };
  if (stanzas.size() != 1 || stanzas[0].field("Name") != name) return damaged();
  Kernel kernel{.name = name, .release = stanzas[0].field("Release")};
  const std::vector<std::string> words = split_words(stanzas[0].field("Packages"));
  if (kernel.release.empty() || words.empty() || words.size() % 3 != 0) return damaged();
  for (size_t i = 0; i < words.size(); i += 3)
    kernel.packages.push_back({words[i], words[i + 1], words[i + 2]});
  kernel.vmlinuz = if_present(directory / "vmlinuz");
  kernel.config = if_present(directory / "config");
  kernel.symbols = if_present(directory / "System.map");
  kernel.modules = if_present(directory / "modules");
  if (kernel.vmlinuz.empty()) return damaged();
  std::error_code trouble;
  const std::string size = fmt::format("{}", std::filesystem::file_size(kernel.vmlinuz, trouble));
  if (const std::string noted = stanzas[0].field("Image-Size"); !noted.empty() && noted != size)
    return damaged();
  return kernel;
}

std::vector<std::string> KernelCache::names() const {
  std::vector<KernelName> present;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, ignored)) {
    const std::string file = entry.path().filename().string();
    if (Result<KernelName> name = parse_kernel_name(file); name.ok() && name->text() == file && has(file))
      present.push_back(*std::move(name));
  }
  std::ranges::sort(present, [](const KernelName& a, const KernelName& b) {
    if (rank_of(a) != rank_of(b)) return rank_of(a) < rank_of(b);
    return is_older_build(b.build, a.build);
  });
  std::vector<std::string> names;
  for (const KernelName& name : present) names.push_back(name.text());
  return names;
}

Result<void> KernelCache::remove(std::string_view text) const {
  TRY_ASSIGN(const KernelName known, parse_kernel_name(text));
  const std::string name = known.text();
  std::error_code trouble;
  if (!std::filesystem::exists(path_of(name), trouble))
    return error("the kernel {} is not here; slalom kernel list shows what is", name);
  // Rename the directory first, so that no reader finds half of it.
  const std::filesystem::path doomed = directory_ / fmt::format(".remove-{}", ::getpid());
  std::filesystem::remove_all(doomed, trouble);
  std::filesystem::rename(path_of(name), doomed, trouble);
  if (!trouble) std::filesystem::remove_all(doomed, trouble);
  if (trouble)
    return error("cannot remove {}: {}; check the permissions", path_of(name).string(), trouble.message());
  return {};
}

Result<Kernel> find_kernel(const KernelCache& cache, const std::string& name_or_path) {
  if (looks_like_kernel_name(name_or_path)) {
    Result<Kernel> kernel = cache.load(name_or_path);
    DEBUG_LOG(KernelStore, "{}: {}", name_or_path,
              kernel.ok() ? fmt::format("release {}, {}", kernel->release, kernel->vmlinuz.string())
                          : kernel.error().message);
    return kernel;
  }
  std::error_code ignored;
  if (!std::filesystem::exists(name_or_path, ignored))
    return error("there is no file {}, and no kernel of that name: slalom knows {}", name_or_path,
                 joined(known_kernels()));
  return Kernel{.name = name_or_path, .vmlinuz = name_or_path};
}

}  // namespace slalom::vm
