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
#include "kernel_store/kernel_builds.h"
#include "kernel_store/kernel_places.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kMegabyte = 1'000'000;

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
  return {stanza.field("Package"), stanza.field("Version"), stanza.field("SHA256"),
          std::strtoull(stanza.field("Size").c_str(), nullptr, 10)};
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
    options.progress(fmt::format(
        "fetching {} {}{}", package.package, package.version,
        package.size < kMegabyte ? "" : fmt::format(" ({} MB)", (package.size + kMegabyte / 2) / kMegabyte)));
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

// Returns the packages to try, best first: the newest kernel, or the image of the build that is asked for.
Result<std::vector<Stanza>> candidates(const AptRoot& apt, const KernelName& name, const KernelPlace& place) {
  if (name.build.empty()) {
    TRY_ASSIGN(std::vector<Stanza> versions, apt.show(place.newest));
    std::erase_if(versions, [&](const Stanza& each) {
      return !each.field("Version").starts_with(version_prefix(name));
    });
    if (versions.empty()) return error("it has no {} {}*", place.newest, version_prefix(name));
    return versions;
  }
  TRY_ASSIGN(std::vector<Stanza> images, images_in(apt, name));
  std::string others;
  for (const Stanza& image : images) others += (others.empty() ? "it has " : ", ") + image.field("Version");
  std::erase_if(images, [&](const Stanza& image) { return image.field("Version") != name.build; });
  if (images.empty()) return Error{others.empty() ? "it has no build of it" : others};
  return images;
}

Result<void> try_place(const KernelCache& cache, const Workshop& at, const KernelName& name,
                       const KernelPlace& place) {
  TRY_ASSIGN(const std::vector<Stanza> versions, candidates(at.apt, name, place));
  // A list may contain packages that were already removed, as for old releases. Then an older version may
  // still exist, or the next place may have the package.
  Error last = error("it has none");
  for (const Stanza& version : versions) {
    const Result<void> done = fetch_from(cache, at, name.text(), version);
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

using TryPlace = std::function<Result<void>(const Workshop&, const KernelPlace&)>;

Result<void> search(const KernelCache& cache, const KernelName& name, const std::string& what,
                    const FetchOptions& options, const TryPlace& try_it) {
  const FetchFolder scratch(cache.directory() / fmt::format(".fetch-{}", ::getpid()));
  TRY_ASSIGN(const AptRoot apt, AptRoot::make(scratch.path() / "apt"));
  std::string failures;
  bool unreachable = false;
  for (const KernelPlace& place : places_of(name, options)) {
    const AptSource& source = place.source;
    options.progress(fmt::format("looking for {} in {} of {}", what, source.suite, source.uri));
    Result<void> done = apt.update(source);
    unreachable |= !done.ok();
    if (done.ok()) done = try_it({apt, scratch.path(), options}, place);
    DEBUG_LOG(KernelStore, "{} in {} of {}: {}", what, source.suite, source.uri,
              done.ok() ? "fetched" : done.error().message);
    if (done.ok()) return {};
    failures += fmt::format("\n  {} at {}: {}", source.suite, source.uri, done.error().message);
  }
  return error("{} cannot be fetched:{}{}", what, failures,
               unreachable ? "\nCheck the network (and http_proxy)" : "");
}

// Fetches unless there() is true. Takes a lock, because another process may be fetching the same.
Result<void> fetch_once(const KernelCache& cache, const KernelName& name, const std::string& what,
                        const FetchOptions& options, const std::function<bool()>& there,
                        const TryPlace& try_it) {
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
    return search(cache, name, what, options, try_it);
  } catch (const std::filesystem::filesystem_error& failure) {
    return error("{} cannot be put into the cache: {}; check the space and the permissions there", what,
                 failure.what());
  }
}

}  // namespace

Result<Kernel> fetch_kernel(const KernelCache& cache, const std::string& text, const FetchOptions& options) {
  TRY_ASSIGN(const KernelName name, parse_kernel_name(text));
  const auto there = [&] { return cache.load(text).ok(); };  // a damaged kernel is fetched again
  if (there()) return cache.load(text);
  const Result<void> done = fetch_once(
      cache, name, name.text(), options, there,
      [&](const Workshop& at, const KernelPlace& place) { return try_place(cache, at, name, place); });
  if (!done.ok())
    return error("{}\nAnother mirror may have it: slalom kernel get {} --mirror URL{}", done.error().message,
                 name.text(),
                 name.build.empty()
                     ? ""
                     : fmt::format("\nAll builds that the mirrors have: slalom kernel list {} --available",
                                   name.without_build().text()));
  return cache.load(text);
}

Result<std::filesystem::path> fetch_headers(const KernelCache& cache, const Kernel& kernel,
                                            const FetchOptions& options) {
  const Result<KernelName> name = parse_kernel_name(kernel.exact_name());
  if (!name.ok() || kernel.packages.empty())
    return error("{} is not one of Debian's kernels: its headers are where it was built", kernel.name);
  const std::filesystem::path into = cache.directory().parent_path() / "headers" / kernel.release;
  // make does not support such paths, and its message is unclear.
  if (into.string().find_first_of(" :\t") != std::string::npos)
    return error("modules cannot be built in {}: set SLALOM_CACHE to a directory without spaces and colons",
                 into.string());
  const auto there = [&] { return std::filesystem::exists(into); };
  if (!there()) {
    const Result<void> done = fetch_once(
        cache, *name, "linux-headers-" + kernel.release, options, there,
        [&](const Workshop& at, const KernelPlace&) { return fetch_headers_from(into, at, kernel); });
    if (!done.ok())
      return error(
          "{}; or, if Debian has a newer {} by now, take that: slalom kernel remove {}, and get it again",
          done.error().message, kernel.name, kernel.name);
  }
  return into / "usr/src" / ("linux-headers-" + kernel.release);
}

}  // namespace slalom::vm
