#include "kernel_store/kernel_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

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

std::string name_list() {
  std::string list;
  for (const std::string& name : known_kernels()) list += (list.empty() ? "" : ", ") + name;
  return list;
}

Error unknown_name(std::string_view name) {
  return error("there is no kernel called \"{}\"; slalom knows {}", name, name_list());
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

const std::vector<std::string>& known_kernels() {
  static const std::vector<std::string> names = {"debian:5.10", "debian:6.1", "debian:6.12", "debian:sid"};
  return names;
}

bool is_known_kernel(std::string_view name) {
  return std::find(known_kernels().begin(), known_kernels().end(), name) != known_kernels().end();
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
  return is_known_kernel(name) && std::filesystem::exists(path_of(name) / kNote, ignored);
}

Result<Kernel> KernelCache::load(std::string_view name) const {
  if (!is_known_kernel(name)) return unknown_name(name);
  if (!has(name)) return error("the kernel {} is not here yet; run: slalom kernel get {}", name, name);
  const std::filesystem::path directory = path_of(name);
  TRY_ASSIGN(const std::vector<uint8_t> bytes, read_file(directory / kNote));
  const std::vector<Stanza> stanzas = parse_control(std::string(bytes.begin(), bytes.end()));
  const auto damaged = [&] {
    return error("{} is damaged; run: slalom kernel get {}, which fetches it anew", directory.string(), name);
  };
  if (stanzas.size() != 1 || stanzas[0].field("Name") != name) return damaged();
  Kernel kernel{.name = std::string(name), .release = stanzas[0].field("Release")};
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
  std::vector<std::string> present;
  for (const std::string& name : known_kernels())
    if (has(name)) present.push_back(name);
  return present;
}

Result<void> KernelCache::remove(std::string_view name) const {
  if (!is_known_kernel(name)) return unknown_name(name);
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
  // Names of fetched kernels contain a colon. A file whose name contains one must be given with a path.
  std::error_code ignored;
  const bool names_file = name_or_path.find('/') != std::string::npos;
  if (!names_file && (is_known_kernel(name_or_path) || name_or_path.starts_with("debian:"))) {
    Result<Kernel> kernel = cache.load(name_or_path);
    DEBUG_LOG(KernelStore, "{}: {}", name_or_path,
              kernel.ok() ? fmt::format("release {}, {}", kernel->release, kernel->vmlinuz.string())
                          : kernel.error().message);
    return kernel;
  }
  if (!std::filesystem::exists(name_or_path, ignored))
    return error("there is no file {}, and no kernel of that name: slalom knows {}", name_or_path,
                 name_list());
  return Kernel{.name = name_or_path, .vmlinuz = name_or_path};
}

}  // namespace slalom::vm
