#include "kernel_store/kernel_fetch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/child.h"
#include "base/file.h"
#include "base/log.h"
#include "kernel_store/apt_root.h"
#include "kernel_store/debian_mirror.h"

namespace slalom::vm {
namespace {

constexpr const char* kMain = "linux-image-cloud-amd64";

// The suites and packages that may contain a kernel, best first. Security suites have the newest build and
// the shortest list.
struct PackagePlace {
  std::string suite;
  std::string package;
};

struct Recipe {
  std::string name;
  std::string version;  // a prefix of the version
  std::vector<PackagePlace> places;
};

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = {
      {"debian:5.10", "5.10.", {{"bullseye-security", kMain}, {"bullseye", kMain}}},
      {"debian:6.1", "6.1.", {{"bookworm-security", kMain}, {"bookworm", kMain}}},
      {"debian:6.12",
       "6.12.",
       {{"bookworm-security", "linux-image-6.12-cloud-amd64"},
        {"bookworm-backports", kMain},
        {"trixie-security", kMain},
        {"trixie", kMain}}},
      {"debian:sid", "", {{"sid", kMain}}},
  };
  return all;
}

// Packages that mirrors no longer have are moved here.
constexpr const char* kArchive = "http://archive.debian.org/debian";
constexpr const char* kSecurityArchive = "http://archive.debian.org/debian-security";

std::vector<std::pair<PackagePlace, AptSource>> places_to_look(const Recipe& recipe,
                                                               const FetchOptions& options) {
  std::vector<std::pair<PackagePlace, AptSource>> all;
  if (!options.mirror.empty()) {
    for (const PackagePlace& place : recipe.places)
      all.push_back({place, {options.mirror, place.suite, options.trust == FetchOptions::Trust::Anyone}});
    return all;
  }
  const DebianMirrors mirrors = configured_mirrors(options.apt_configuration);
  for (const PackagePlace& place : recipe.places) {
    const bool security = place.suite.ends_with("-security");
    for (const std::string& uri : security ? mirrors.security : mirrors.main)
      all.push_back({place, {uri, place.suite}});
  }
  if (recipe.name == "debian:sid") return all;  // sid is never moved to the archive
  for (const PackagePlace& place : recipe.places)
    all.push_back({place, {place.suite.ends_with("-security") ? kSecurityArchive : kArchive, place.suite}});
  return all;
}

// A temporary directory. The destructor removes it.
class FetchFolder {
 public:
  explicit FetchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  ~FetchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FetchFolder(const FetchFolder&) = delete;
  FetchFolder& operator=(const FetchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Held while a kernel is fetched. The operating system releases it when the process ends, so it never becomes
// stale.
class Lock {
 public:
  static Result<Lock> take(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || ::flock(file, LOCK_EX) != 0) {
      const int code = errno;
      if (file >= 0) ::close(file);
      return error("cannot lock {}: {}; check the permissions", path.string(), std::strerror(code));
    }
    return Lock(file);
  }
  ~Lock() {
    if (file_ >= 0) ::close(file_);
  }
  Lock(Lock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Lock& operator=(Lock&&) = delete;

 private:
  explicit Lock(int file) : file_(file) {}
  int file_;
};

// Returns the dependencies of a package, each as its words: a name, perhaps followed by a version.
std::vector<std::vector<std::string>> dependencies(const Stanza& stanza) {
  std::string depends = stanza.field("Depends");
  std::replace(depends.begin(), depends.end(), '\n', ' ');
  depends += ',';
  std::vector<std::vector<std::string>> all;
  for (size_t begin = 0, end = 0; (end = depends.find(',', begin)) != std::string::npos; begin = end + 1)
    if (std::vector<std::string> words = split_words(depends.substr(begin, end - begin)); !words.empty())
      all.push_back(std::move(words));
  return all;
}

KernelPackage package_of(const Stanza& stanza) {
  return {stanza.field("Package"), stanza.field("Version"), stanza.field("SHA256")};
}

// Returns the packages of a kernel: the image itself, or those that a meta-package depends on. Only packages
// of the same build; initramfs tools and the like matter only on a system that installs them.
Result<std::vector<KernelPackage>> packages_of(const AptRoot& apt, const Stanza& first) {
  std::vector<Stanza> todo = {first};
  std::vector<KernelPackage> packages;
  while (!todo.empty()) {
    const Stanza stanza = todo.back();
    todo.pop_back();
    const KernelPackage package = package_of(stanza);
    if (std::find(packages.begin(), packages.end(), package) != packages.end()) continue;
    packages.push_back(package);
    for (const std::vector<std::string>& words : dependencies(stanza)) {
      if (words.size() != 3 || words[1] != "(=" || words[2] != package.version + ")") continue;
      if (!words[0].starts_with("linux-")) continue;
      TRY_ASSIGN(const std::vector<Stanza> versions, apt.show(words[0]));
      const auto found = std::find_if(versions.begin(), versions.end(), [&](const Stanza& each) {
        return each.field("Version") == package.version;
      });
      if (found == versions.end())
        return error(
            "{} {} needs {}, which the mirror does not have; it may be in the middle of an update: try "
            "again later, or give another one with --mirror URL",
            package.package, package.version, words[0]);
      todo.push_back(*found);
    }
  }
  return packages;
}

std::vector<std::filesystem::path> entries(const std::filesystem::path& directory, std::string_view prefix) {
  std::vector<std::filesystem::path> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// The image is in /boot as vmlinuz-RELEASE or, since 2026, next to the modules as RELEASE/vmlinuz.
struct ImagePlace {
  std::string release;
  std::filesystem::path image, config, symbols;
};

std::vector<ImagePlace> find_images(const std::filesystem::path& tree) {
  std::vector<ImagePlace> found;
  for (const std::filesystem::path& image : entries(tree / "boot", "vmlinuz-")) {
    const std::string release = image.filename().string().substr(std::string_view("vmlinuz-").size());
    found.push_back(
        {release, image, tree / ("boot/config-" + release), tree / ("boot/System.map-" + release)});
  }
  for (const char* parent : {"lib/modules", "usr/lib/modules"}) {
    for (const std::filesystem::path& at : entries(tree / parent, ""))
      if (std::filesystem::exists(at / "vmlinuz"))
        found.push_back({at.filename().string(), at / "vmlinuz", at / "config", at / "System.map"});
  }
  return found;
}

// Moves the extracted packages into the layout of the cache.
Result<void> arrange(const std::filesystem::path& tree, const std::filesystem::path& into, Kernel& kernel) {
  const std::vector<ImagePlace> images = find_images(tree);
  if (images.size() != 1)
    return error("the packages of {} hold {} kernel images instead of one; please report this", kernel.name,
                 images.size());
  const ImagePlace& place = images[0];
  kernel.release = place.release;
  std::filesystem::create_directories(into);
  std::filesystem::rename(place.image, into / "vmlinuz");
  std::error_code absent;
  std::filesystem::rename(place.config, into / "config", absent);
  // Debian ships one line that names the real file. It contains no symbols, so it is not kept.
  if (std::filesystem::file_size(place.symbols, absent) > 4096 && !absent)
    std::filesystem::rename(place.symbols, into / "System.map", absent);
  else
    std::filesystem::remove(place.symbols, absent);
  for (const char* parent : {"lib/modules", "usr/lib/modules"}) {
    const std::filesystem::path modules = tree / parent / kernel.release;
    if (!std::filesystem::is_directory(modules, absent)) continue;
    for (const char* link : {"build", "source"}) std::filesystem::remove(modules / link, absent);
    std::filesystem::rename(modules, into / "modules");
    break;
  }
  kernel.vmlinuz = into / "vmlinuz";
  return write_file(into / "kernel.txt", kernel_note(kernel));
}

// Downloads packages and extracts them into one tree.
Result<void> unpack(const AptRoot& apt, const std::vector<KernelPackage>& packages,
                    const std::filesystem::path& tree, const FetchOptions& options) {
  std::filesystem::remove_all(tree);
  for (const KernelPackage& package : packages) {
    options.progress(fmt::format("fetching {} {}", package.package, package.version));
    TRY_ASSIGN(const std::filesystem::path file, apt.download(package.package, package.version));
    TRY_ASSIGN(const ChildOutput done, run_child({.program = "dpkg-deb",
                                                  .arguments = {"-x", file.string(), tree.string()},
                                                  .environment = {{"LC_ALL", "C.UTF-8"}}},
                                                 "dpkg"));
    if (done.status != 0) return error("{} cannot be unpacked: {}", file.filename().string(), done.errors);
    std::filesystem::remove(file);
  }
  return {};
}

// The working environment of a fetch: apt with the list of one place, and a temporary directory.
struct Workshop {
  const AptRoot& apt;
  std::filesystem::path scratch;
  const FetchOptions& options;
};

Result<void> fetch_from(const KernelCache& cache, const Workshop& at, const std::string& name,
                        const Stanza& found) {
  Kernel kernel{.name = name};
  TRY_ASSIGN(kernel.packages, packages_of(at.apt, found));
  TRY(unpack(at.apt, kernel.packages, at.scratch / "tree", at.options));
  const std::filesystem::path ready = at.scratch / "ready";
  std::filesystem::remove_all(ready);
  TRY(arrange(at.scratch / "tree", ready, kernel));
  std::filesystem::remove_all(cache.path_of(name));  // a directory without a note is incomplete
  std::filesystem::rename(ready, cache.path_of(name));
  return {};
}

Result<void> try_place(const KernelCache& cache, const Workshop& at, const Recipe& recipe,
                       const PackagePlace& place) {
  TRY_ASSIGN(const std::vector<Stanza> versions, at.apt.show(place.package));
  // A list may contain packages that were already removed, as for old releases. Then an older version may
  // still exist, or the next place may have the package.
  Error last = error("it has no {} {}*", place.package, recipe.version);
  for (const Stanza& version : versions) {
    if (!version.field("Version").starts_with(recipe.version)) continue;
    const Result<void> done = fetch_from(cache, at, recipe.name, version);
    if (done.ok()) return {};
    last = done.error();
  }
  return last;
}

// Returns the packages of a kernel's headers: those of that build, and their tools, which may be newer.
// Compilers are the host's.
Result<std::vector<KernelPackage>> header_packages(const AptRoot& apt, const Kernel& kernel) {
  const std::string version = kernel.packages.front().version;
  std::vector<std::string> todo = {"linux-headers-" + kernel.release};
  std::vector<KernelPackage> packages;
  while (!todo.empty()) {
    const std::string name = todo.back();
    todo.pop_back();
    TRY_ASSIGN(const std::vector<Stanza> versions, apt.show(name));
    auto found = std::find_if(versions.begin(), versions.end(),
                              [&](const Stanza& each) { return each.field("Version") == version; });
    if (found == versions.end() && name.starts_with("linux-kbuild-")) found = versions.begin();
    if (found == versions.end()) return error("it has no {} {}", name, version);
    const KernelPackage package = package_of(*found);
    if (std::find(packages.begin(), packages.end(), package) != packages.end()) continue;
    packages.push_back(package);
    for (const std::vector<std::string>& words : dependencies(*found))
      if (words[0].starts_with("linux-headers-") || words[0].starts_with("linux-kbuild-"))
        todo.push_back(words[0]);
  }
  return packages;
}

// The headers' Makefile includes the common Makefile by its installed path. Here it is elsewhere, but next to
// the headers in both cases.
Result<void> make_relocatable(const std::filesystem::path& makefile) {
  TRY_ASSIGN(const std::vector<uint8_t> bytes, read_file(makefile));
  std::string text(bytes.begin(), bytes.end());
  constexpr std::string_view kInstalled = "include /usr/src/";
  if (const size_t at = text.find(kInstalled); at != std::string::npos)
    text.replace(at, kInstalled.size(), "include $(dir $(realpath $(lastword $(MAKEFILE_LIST))))../");
  return write_file(makefile, text);
}

Result<void> fetch_headers_from(const std::filesystem::path& into, const Workshop& at, const Kernel& kernel) {
  TRY_ASSIGN(const std::vector<KernelPackage> packages, header_packages(at.apt, kernel));
  const std::filesystem::path tree = at.scratch / "tree";
  TRY(unpack(at.apt, packages, tree, at.options));
  TRY(make_relocatable(tree / "usr/src" / ("linux-headers-" + kernel.release) / "Makefile"));
  std::filesystem::create_directories(into.parent_path());
  std::filesystem::rename(tree, into);
  return {};
}

Result<void> search(const KernelCache& cache, const Recipe& recipe, const std::string& what,
                    const FetchOptions& options,
                    const std::function<Result<void>(const Workshop&, const PackagePlace&)>& try_it) {
  const FetchFolder scratch(cache.directory() / fmt::format(".fetch-{}", ::getpid()));
  TRY_ASSIGN(const AptRoot apt, AptRoot::make(scratch.path() / "apt"));
  std::string failures;
  for (const auto& [place, source] : places_to_look(recipe, options)) {
    options.progress(fmt::format("looking for {} in {} of {}", what, source.suite, source.uri));
    Result<void> done = apt.update(source);
    if (done.ok()) done = try_it({apt, scratch.path(), options}, place);
    DEBUG_LOG(KernelStore, "{} in {} of {}: {}", what, source.suite, source.uri,
              done.ok() ? "fetched" : done.error().message);
    if (done.ok()) return {};
    failures += fmt::format("\n  {} at {}: {}", source.suite, source.uri, done.error().message);
  }
  return error("{} cannot be fetched:{}\nCheck the network (and http_proxy)", what, failures);
}

// Fetches unless there() is true. Takes a lock, because another process may be fetching the same.
Result<void> fetch_once(const KernelCache& cache, const Recipe& recipe, const std::string& what,
                        const FetchOptions& options, const std::function<bool()>& there,
                        const std::function<Result<void>(const Workshop&, const PackagePlace&)>& try_it) {
  std::error_code trouble;
  std::filesystem::create_directories(cache.directory(), trouble);
  if (trouble)
    return error("cannot make {}: {}; check the permissions, or set SLALOM_CACHE to another directory",
                 cache.directory().string(), trouble.message());
  TRY_ASSIGN(const Lock lock, Lock::take(cache.directory() / ".lock"));
  if (there()) return {};
  // Remove the leftovers of interrupted fetches.
  for (const std::filesystem::path& leftover : entries(cache.directory(), ".fetch-"))
    std::filesystem::remove_all(leftover, trouble);
  try {
    return search(cache, recipe, what, options, try_it);
  } catch (const std::filesystem::filesystem_error& failure) {
    return error("{} cannot be put into the cache: {}; check the space and the permissions there", what,
                 failure.what());
  }
}

const Recipe* find_recipe(const std::string& name) {
  const auto recipe =
      std::find_if(recipes().begin(), recipes().end(), [&](const Recipe& each) { return each.name == name; });
  return recipe == recipes().end() ? nullptr : &*recipe;
}

}  // namespace

Result<Kernel> fetch_kernel(const KernelCache& cache, const std::string& name, const FetchOptions& options) {
  const Recipe* recipe = find_recipe(name);
  const auto there = [&] { return cache.load(name).ok(); };  // a damaged kernel is fetched again
  if (recipe == nullptr || there()) return cache.load(name);
  const Result<void> done = fetch_once(
      cache, *recipe, name, options, there,
      [&](const Workshop& at, const PackagePlace& place) { return try_place(cache, at, *recipe, place); });
  if (!done.ok())
    return error("{}; or give a mirror that has it: slalom kernel get {} --mirror URL", done.error().message,
                 name);
  return cache.load(name);
}

Result<std::filesystem::path> fetch_headers(const KernelCache& cache, const Kernel& kernel,
                                            const FetchOptions& options) {
  const Recipe* recipe = find_recipe(kernel.name);
  if (recipe == nullptr || kernel.packages.empty())
    return error("{} is not one of Debian's kernels: its headers are where it was built", kernel.name);
  const std::filesystem::path into = cache.directory().parent_path() / "headers" / kernel.release;
  // make does not support such paths, and its message is unclear.
  if (into.string().find_first_of(" :\t") != std::string::npos)
    return error("modules cannot be built in {}: set SLALOM_CACHE to a directory without spaces and colons",
                 into.string());
  const auto there = [&] { return std::filesystem::exists(into); };
  if (!there()) {
    const Result<void> done = fetch_once(
        cache, *recipe, "linux-headers-" + kernel.release, options, there,
        [&](const Workshop& at, const PackagePlace&) { return fetch_headers_from(into, at, kernel); });
    if (!done.ok())
      return error(
          "{}; or, if Debian has a newer {} by now, take that: slalom kernel remove {}, and get it again",
          done.error().message, kernel.name, kernel.name);
  }
  return into / "usr/src" / ("linux-headers-" + kernel.release);
}

}  // namespace slalom::vm
