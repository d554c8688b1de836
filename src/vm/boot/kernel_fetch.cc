#include "vm/boot/kernel_fetch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "vm/boot/apt_root.h"
#include "vm/boot/child.h"
#include "vm/boot/debian_mirror.h"

namespace slalom::vm {
namespace {

constexpr const char* kMain = "linux-image-cloud-amd64";

// Where a kernel may be, best place first: security suites have the newest build and the shortest list.
struct Place {
  std::string suite;
  std::string package;
};

struct Recipe {
  std::string name;
  std::string version;  // what the version starts with
  std::vector<Place> places;
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

// What is no longer on mirrors moves here.
constexpr const char* kArchive = "http://archive.debian.org/debian";
constexpr const char* kSecurityArchive = "http://archive.debian.org/debian-security";

std::vector<std::pair<Place, AptSource>> places_to_look(const Recipe& recipe, const FetchOptions& options) {
  std::vector<std::pair<Place, AptSource>> all;
  if (!options.mirror.empty()) {
    for (const Place& place : recipe.places)
      all.push_back({place, {options.mirror, place.suite, options.trust == FetchOptions::Trust::Anyone}});
    return all;
  }
  const DebianMirrors mirrors = configured_mirrors(options.apt_configuration);
  for (const Place& place : recipe.places) {
    const bool security = place.suite.ends_with("-security");
    for (const std::string& uri : security ? mirrors.security : mirrors.main)
      all.push_back({place, {uri, place.suite}});
  }
  if (recipe.name == "debian:sid") return all;  // sid never leaves the mirrors
  for (const Place& place : recipe.places)
    all.push_back({place, {place.suite.ends_with("-security") ? kSecurityArchive : kArchive, place.suite}});
  return all;
}

// A scratch directory that is gone when the work is, however it ends.
class Scratch {
 public:
  explicit Scratch(std::filesystem::path path) : path_(std::move(path)) {}
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Held while a kernel is fetched. The system lets go of it when the process ends, so it is never stale.
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

// A kernel's packages: the image itself, or what a meta-package stands for. Those of the same build only:
// initramfs tools and the like are the business of a system that installs them.
Result<std::vector<KernelPackage>> packages_of(const AptRoot& apt, const Stanza& first) {
  std::vector<Stanza> todo = {first};
  std::vector<KernelPackage> packages;
  while (!todo.empty()) {
    const Stanza stanza = todo.back();
    todo.pop_back();
    const KernelPackage package{stanza.field("Package"), stanza.field("Version"), stanza.field("SHA256")};
    if (std::find(packages.begin(), packages.end(), package) != packages.end()) continue;
    packages.push_back(package);
    std::string depends = stanza.field("Depends");
    std::replace(depends.begin(), depends.end(), '\n', ' ');
    depends += ',';
    for (size_t begin = 0, end = 0; (end = depends.find(',', begin)) != std::string::npos; begin = end + 1) {
      const std::vector<std::string> words = split_words(depends.substr(begin, end - begin));
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

// The packages have the image in /boot, or, since 2026, beside the modules: as vmlinuz-RELEASE or
// RELEASE/vmlinuz.
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

// From the tree of the extracted packages to the form the cache has.
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
  // Debian ships a line in its place that says where the real one is: no symbols, so not kept.
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
  return write_file(into / "kernel.txt", kernel_note(kernel));
}

Result<Kernel> fetch_from(const KernelCache& cache, const AptRoot& apt, const std::filesystem::path& scratch,
                          const std::string& name, const Stanza& found, const FetchOptions& options) {
  Kernel kernel{.name = name};
  std::filesystem::remove_all(scratch / "tree");
  std::filesystem::remove_all(scratch / "ready");
  TRY_ASSIGN(kernel.packages, packages_of(apt, found));
  for (const KernelPackage& package : kernel.packages) {
    options.progress(fmt::format("fetching {} {}", package.package, package.version));
    TRY_ASSIGN(const std::filesystem::path file, apt.download(package.package, package.version));
    TRY_ASSIGN(const ChildOutput done,
               run_child({.program = "dpkg-deb",
                          .arguments = {"-x", file.string(), (scratch / "tree").string()},
                          .environment = {{"LC_ALL", "C.UTF-8"}}},
                         "dpkg"));
    if (done.status != 0) return error("{} cannot be unpacked: {}", file.filename().string(), done.errors);
    std::filesystem::remove(file);
  }
  const std::filesystem::path ready = scratch / "ready";
  TRY(arrange(scratch / "tree", ready, kernel));
  std::filesystem::remove_all(cache.path_of(name));  // what has no note is half of something
  std::filesystem::rename(ready, cache.path_of(name));
  return cache.load(name);
}

Result<Kernel> try_place(const KernelCache& cache, const AptRoot& apt, const std::filesystem::path& scratch,
                         const Recipe& recipe, const Place& place, const AptSource& source,
                         const FetchOptions& options) {
  TRY(apt.update(source));
  TRY_ASSIGN(const std::vector<Stanza> versions, apt.show(place.package));
  // A list may name packages that were already taken away, as those of old releases are: then an older one
  // may still be there, and what is nowhere here may be at the next place.
  Error last = error("it has no {} {}*", place.package, recipe.version);
  for (const Stanza& version : versions) {
    if (!version.field("Version").starts_with(recipe.version)) continue;
    Result<Kernel> kernel = fetch_from(cache, apt, scratch, recipe.name, version, options);
    if (kernel.ok()) return kernel;
    last = kernel.error();
  }
  return last;
}

Result<Kernel> search_and_fetch(const KernelCache& cache, const Recipe& recipe, const FetchOptions& options) {
  const Scratch scratch(cache.directory() / fmt::format(".fetch-{}", ::getpid()));
  TRY_ASSIGN(const AptRoot apt, AptRoot::make(scratch.path() / "apt"));
  std::string failures;
  for (const auto& [place, source] : places_to_look(recipe, options)) {
    options.progress(fmt::format("looking for {} in {} of {}", recipe.name, source.suite, source.uri));
    const Result<Kernel> kernel = try_place(cache, apt, scratch.path(), recipe, place, source, options);
    if (kernel.ok()) return kernel;
    failures += fmt::format("\n  {} at {}: {}", source.suite, source.uri, kernel.error().message);
  }
  return error(
      "{} cannot be fetched:{}\n"
      "Check the network (and http_proxy); or give a mirror that has it: slalom kernel get {} --mirror URL",
      recipe.name, failures, recipe.name);
}

}  // namespace

Result<Kernel> fetch_kernel(const KernelCache& cache, const std::string& name, const FetchOptions& options) {
  const auto recipe =
      std::find_if(recipes().begin(), recipes().end(), [&](const Recipe& each) { return each.name == name; });
  if (recipe == recipes().end() || cache.has(name)) return cache.load(name);
  std::error_code trouble;
  std::filesystem::create_directories(cache.directory(), trouble);
  if (trouble)
    return error("cannot make {}: {}; check the permissions, or set SLALOM_CACHE to another directory",
                 cache.directory().string(), trouble.message());
  TRY_ASSIGN(const Lock lock, Lock::take(cache.directory() / ".lock"));
  if (cache.has(name)) return cache.load(name);  // somebody else has just fetched it
  // What an interrupted one has left.
  for (const std::filesystem::path& leftover : entries(cache.directory(), ".fetch-"))
    std::filesystem::remove_all(leftover, trouble);
  try {
    return search_and_fetch(cache, *recipe, options);
  } catch (const std::filesystem::filesystem_error& failure) {
    return error("{} cannot be put into the cache: {}; check the space and the permissions there", name,
                 failure.what());
  }
}

}  // namespace slalom::vm
