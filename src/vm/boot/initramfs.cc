#include "vm/boot/initramfs.h"

#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/child.h"
#include "base/container.h"
#include "base/file.h"
#include "base/log.h"
#include "kernel_store/cache_files.h"
#include "kernel_store/control_file.h"
#include "kernel_store/elf_file.h"
#include "kernel_store/modules.h"
#include "vm/boot/cpio.h"
#include "vm/boot/shared_libraries.h"

namespace slalom::vm {
namespace {

constexpr size_t kMostCached = 64;  // files; each has some megabytes

struct Device {
  const char* path;
  uint32_t permissions, major, minor;
};

// Enough until the kernel fills /dev itself, or if it does not.
constexpr Device kDevices[] = {{"dev/console", 0600, 5, 1}, {"dev/tty", 0666, 5, 0},
                               {"dev/ttyS0", 0600, 4, 64},  {"dev/null", 0666, 1, 3},
                               {"dev/zero", 0666, 1, 5},    {"dev/random", 0666, 1, 8},
                               {"dev/urandom", 0666, 1, 9}, {"dev/kmsg", 0600, 1, 11}};

Result<std::filesystem::path> find_busybox(const std::filesystem::path& given) {
  std::error_code ignored;
  if (!given.empty()) return given;
  for (const char* path : {"/bin/busybox", "/usr/bin/busybox"})
    if (std::filesystem::exists(path, ignored)) return std::filesystem::path(path);
  return error(
      "there is no busybox for the guest on this machine; install the Debian package busybox-static");
}

Result<void> check_static(const std::filesystem::path& path, std::span<const uint8_t> bytes) {
  const Result<ElfFile> elf = parse_elf(bytes);
  if (!elf.ok() || !elf->is_64bit || elf->machine != ElfFile::kX86_64)
    return error("{} is no program for x86-64, which the guest is", path.string());
  for (const ElfSegment& segment : elf->segments)
    if (segment.type == ElfFile::kInterpreter)
      return error(
          "{} needs shared libraries, which the guest does not have; install the Debian package "
          "busybox-static",
          path.string());
  return {};
}

// The contents of the archive before it is assembled. They also name the archive in the cache.
struct Ingredients {
  std::vector<uint8_t> busybox;
  std::vector<std::string> applets;  // paths in the guest
  struct File {
    std::string guest;
    uint32_t mode = 0;
    std::vector<uint8_t> bytes;  // for a symbolic link, its target
  };
  std::vector<File> files;
};

Result<void> read_extra(const std::filesystem::path& host, const std::string& guest,
                        std::vector<Ingredients::File>& files) {
  struct stat status = {};
  if (::lstat(host.c_str(), &status) != 0) return error("cannot read {}: check the path", host.string());
  Ingredients::File file{guest, status.st_mode, {}};
  std::error_code trouble;
  if (S_ISLNK(status.st_mode)) {
    const std::string target = std::filesystem::read_symlink(host, trouble).string();
    file.bytes.assign(target.begin(), target.end());
  } else if (S_ISREG(status.st_mode)) {
    TRY_ASSIGN(file.bytes, read_file(host));
  } else if (!S_ISDIR(status.st_mode)) {
    return error("{} is neither a file nor a directory: it cannot go into the guest", host.string());
  }
  files.push_back(std::move(file));
  if (!S_ISDIR(status.st_mode)) return {};
  std::vector<std::filesystem::path> inside;
  for (const auto& entry : std::filesystem::directory_iterator(host, trouble)) inside.push_back(entry.path());
  if (trouble) return error("cannot read {}: {}", host.string(), trouble.message());
  std::sort(inside.begin(), inside.end());
  for (const std::filesystem::path& path : inside)
    TRY(read_extra(path, guest + "/" + path.filename().string(), files));
  return {};
}

// Adds the libraries that programs among the files need, unless the user has added them.
Result<void> add_libraries(std::vector<Ingredients::File>& files) {
  std::map<std::string, Ingredients::File> libraries;
  for (const Ingredients::File& file : files) {
    if (!S_ISREG(file.mode)) continue;
    TRY(for_each_shared_object(
        file.guest, file.bytes,
        [&](const std::filesystem::path& path, std::vector<uint8_t> bytes) -> Result<void> {
          libraries.try_emplace(path.string(),
                                Ingredients::File{path.string(), S_IFREG | 0755, std::move(bytes)});
          return {};
        }));
  }
  // Libraries come first, so that the user's files replace them.
  std::vector<Ingredients::File> all;
  for (auto& [path, library] : libraries) all.push_back(std::move(library));
  std::move(files.begin(), files.end(), std::back_inserter(all));
  files = std::move(all);
  return {};
}

// The directories of $PATH in the guest (guest/agent.c).
constexpr std::string_view kCommandDirectories[] = {"usr/local/sbin", "usr/local/bin", "usr/sbin",
                                                    "usr/bin",        "sbin",          "bin"};

// Returns the path in the archive without slashes at its beginning.
std::string_view without_slash(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  return path;
}

// Returns the names of the user's files that the guest's shell finds as commands.
std::set<std::string> given_commands(const std::vector<Ingredients::File>& files) {
  std::set<std::string> names;
  for (const Ingredients::File& file : files) {
    const std::filesystem::path path = without_slash(file.guest);
    const bool is_command =
        std::ranges::find(kCommandDirectories, path.parent_path().string()) != std::end(kCommandDirectories);
    if (is_command && !S_ISDIR(file.mode)) names.insert(path.filename().string());
  }
  return names;
}

bool is_one_of(const std::set<std::string>& commands, const std::string& applet) {
  return commands.contains(std::filesystem::path(applet).filename().string());
}

// Adds the host's shell, unless the user gives one. busybox's shell prefers busybox's commands to all files,
// and the host's takes commands from $PATH.
Result<void> add_shell(std::vector<Ingredients::File>& files) {
  const auto is_shell = [](const Ingredients::File& file) { return without_slash(file.guest) == "bin/sh"; };
  if (std::ranges::any_of(files, is_shell)) return {};
  std::error_code trouble;
  const std::filesystem::path shell = std::filesystem::canonical("/bin/sh", trouble);
  if (trouble) return error("cannot read /bin/sh: {}", trouble.message());
  return read_extra(shell, "bin/sh", files);
}

Result<Ingredients> gather(const InitramfsOptions& options) {
  Ingredients all;
  TRY_ASSIGN(const std::filesystem::path busybox, find_busybox(options.busybox));
  TRY_ASSIGN(all.busybox, read_file(busybox));
  TRY(check_static(busybox, all.busybox));
  TRY_ASSIGN(const ChildOutput list,
             run_child({.program = busybox.string(), .arguments = {"--list-full"}}, "busybox-static"));
  if (list.status != 0) return error("{} does not say what it can do: {}", busybox.string(), list.errors);
  all.applets = split_words(list.output);
  for (const ExtraFile& extra : options.files) {
    // A link that the user names stands for its target. Links within a directory stay links.
    std::error_code trouble;
    const std::filesystem::path real = std::filesystem::canonical(extra.host, trouble);
    if (trouble) return error("cannot read {}: {}", extra.host.string(), trouble.message());
    TRY(read_extra(real, extra.guest, all.files));
  }
  const std::set<std::string> given = given_commands(all.files);
  const size_t applets = all.applets.size();
  std::erase_if(all.applets, [&](const std::string& applet) { return is_one_of(given, applet); });
  if (all.applets.size() != applets) TRY(add_shell(all.files));
  TRY(add_libraries(all.files));
  return all;
}

Result<void> add_modules(const InitramfsOptions& options, CpioArchive& archive) {
  if (options.modules.empty()) return {};
  const Kernel& kernel = options.kernel;
  if (kernel.modules.empty())
    return error(
        "the kernel {} comes without modules: {}; give --modules DIR, or module_directory in the test",
        kernel.name,
        kernel.release.empty()
            ? "its release is not known"
            : fmt::format("there are none beside it, and no /lib/modules/{}", kernel.release));
  TRY_ASSIGN(ModuleTree tree, ModuleTree::open(kernel.modules));
  std::vector<std::string> names;
  std::map<std::string, std::string> parameters;
  for (const std::string& text : options.modules) {
    const WantedModule wanted = parse_wanted_module(text);
    names.push_back(wanted.name);
    if (wanted.parameters.empty()) continue;
    const auto [first, added] = parameters.emplace(wanted.name, wanted.parameters);
    if (!added && first->second != wanted.parameters)
      return error("the module {} is given twice, with \"{}\" and \"{}\": leave out one", wanted.name,
                   first->second, wanted.parameters);
  }
  TRY_ASSIGN(std::vector<Module> modules, tree.with_dependencies(names));
  const std::string release = !kernel.release.empty() ? kernel.release
                              : modules.empty()       ? "unknown"
                                                      : modules.front().built_for;
  const std::string directory = "lib/modules/" + release + "/";
  std::string list;
  std::string dependencies;  // modules.dep, for modprobe in the guest
  for (const Module& module : modules) {
    TRY(check_built_for(module, kernel.release));
    const std::string& given = parameters[module.name];
    TRY(check_parameters(module, given));
    list += "/" + directory + module.path + (given.empty() ? "" : " " + given) + "\n";
    dependencies += module.path + ":";
    for (const std::string& needed : module.depends) {
      const auto found = std::find_if(modules.begin(), modules.end(),
                                      [&](const Module& each) { return each.name == needed; });
      if (found != modules.end()) dependencies += " " + found->path;
    }
    dependencies += "\n";
  }
  std::string aliases;
  for (const Module& module : modules)
    for (const std::string& alias : module.aliases)
      aliases += fmt::format("alias {} {}\n", alias, module.name);
  for (Module& module : modules)
    TRY(archive.add_file(directory + module.path, 0644, std::move(module.bytes)));
  const auto add_text = [&](const std::string& path, const std::string& text) {
    return archive.add_file(path, 0644, {text.begin(), text.end()});
  };
  TRY(add_text(directory + "modules.dep", dependencies));
  TRY(add_text(directory + "modules.alias", aliases));
  return add_text(kModuleList, list);
}

Result<std::vector<uint8_t>> assemble(const InitramfsOptions& options, Ingredients all) {
  CpioArchive archive;
  for (const char* path : {"bin", "dev", "etc", "proc", "root", "sbin", "sys", "usr/bin", "usr/sbin", "var"})
    TRY(archive.add_directory(path));
  TRY(archive.add_directory("tmp", 01777));
  for (const Device& device : kDevices)
    TRY(archive.add_character_device(device.path, device.permissions, device.major, device.minor));
  TRY(archive.add_file("bin/busybox", 0755, std::move(all.busybox)));
  for (const std::string& applet : all.applets)
    if (!archive.has(applet)) TRY(archive.add_symlink(applet, "/bin/busybox"));
  TRY(archive.add_file("init", 0755, {options.agent.begin(), options.agent.end()}));
  TRY(add_modules(options, archive));
  for (Ingredients::File& file : all.files) {
    const uint32_t permissions = file.mode & 07777;
    if (S_ISDIR(file.mode))
      TRY(archive.add_directory(file.guest, permissions));
    else if (S_ISLNK(file.mode))
      TRY(archive.add_symlink(file.guest, std::string(file.bytes.begin(), file.bytes.end())));
    else
      TRY(archive.add_file(file.guest, permissions, std::move(file.bytes)));
  }
  return archive.bytes();
}

// Returns a name made from all inputs. Names of modules are enough, because they belong to the kernel's
// packages.
std::string cache_name(const InitramfsOptions& options, const Ingredients& all) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  if (state == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state.get());
  const auto add = [&](const auto& bytes) {
    const uint64_t size = bytes.size();
    XXH3_128bits_update(state.get(), &size, sizeof size);
    XXH3_128bits_update(state.get(), bytes.data(), bytes.size());
  };
  constexpr std::string_view form = "initramfs 2";  // increment when assemble() or the file format changes
  add(form);
  add(all.busybox);
  for (const std::string& applet : all.applets) add(applet);
  add(options.agent);
  for (const KernelPackage& package : options.kernel.packages) add(package.sha256);
  add(options.kernel.release);
  for (const std::string& module : options.modules) add(module);
  for (const Ingredients::File& file : all.files) {
    add(file.guest);
    add(fmt::format("{:o}", file.mode));
    add(file.bytes);
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}.cpio", hash.high64, hash.low64);
}

// A checksum follows a cached archive. A truncated or changed file is made anew.
constexpr size_t kSum = 8;

std::optional<std::vector<uint8_t>> kept_archive(const std::filesystem::path& path) {
  Result<std::vector<uint8_t>> file = read_file(path);
  if (!file.ok() || file->size() < kSum) return std::nullopt;
  const std::span<const uint8_t> archive = std::span(*file).first(file->size() - kSum);
  ByteReader end{std::span(*file).last(kSum)};
  if (end.fixed64() != checksum(archive)) return std::nullopt;
  file->resize(archive.size());
  return *std::move(file);
}

}  // namespace

Result<std::vector<uint8_t>> build_initramfs(const InitramfsOptions& options) {
  TRY_ASSIGN(Ingredients all, gather(options));
  return assemble(options, std::move(all));
}

Result<std::vector<uint8_t>> cached_initramfs(const std::filesystem::path& directory,
                                              const InitramfsOptions& options) {
  TRY_ASSIGN(Ingredients all, gather(options));
  // Modules in a user's own directory may change at any time.
  const bool repeatable = options.modules.empty() || !options.kernel.packages.empty();
  if (!repeatable) {
    DEBUG_LOG(Vm, "initramfs: made anew, since the modules of {} may change", options.kernel.name);
    return assemble(options, std::move(all));
  }
  const std::filesystem::path path = directory / cache_name(options, all);
  std::error_code trouble;
  if (std::optional<std::vector<uint8_t>> kept = kept_archive(path)) {
    mark_used(path);
    DEBUG_LOG(Vm, "initramfs: {} from the cache", path.string());
    return *std::move(kept);
  }
  TRY_ASSIGN(std::vector<uint8_t> archive, assemble(options, std::move(all)));
  DEBUG_LOG(Vm, "initramfs: {} was not in the cache, or damaged; made with {} bytes", path.string(),
            archive.size());
  std::filesystem::create_directories(directory, trouble);
  if (trouble)
    return error("cannot make {}: {}; set SLALOM_CACHE to another directory", directory.string(),
                 trouble.message());
  ByteWriter sum;
  sum.fixed64(checksum(archive));
  std::vector<uint8_t> kept = archive;
  kept.insert(kept.end(), sum.bytes().begin(), sum.bytes().end());
  if (const Result<void> written = write_file(path, kept); !written.ok())
    return error("{}; set SLALOM_CACHE to a directory that can be written", written.error().message);
  for (const std::filesystem::path& old : files_to_forget(directory, path.extension().string(), kMostCached))
    std::filesystem::remove(old, trouble);
  return archive;
}

}  // namespace slalom::vm
