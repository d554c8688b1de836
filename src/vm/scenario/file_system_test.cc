#include "vm/scenario/file_system_test.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "inputs/file_system_calls.h"
#include "vm/scenario/kernel_test.h"

namespace slalom::vm {
namespace {

struct FileSystem {
  std::string_view name;
  std::string_view modules;  // kernel modules, as in a test file; empty if built in
  std::string_view package;
  std::string_view make, check;  // names of the programs
  std::string_view make_options, check_options;
  unsigned device;  // KiB
  std::string_view memory;
  bool unix_files, clones, subvolumes;
};
constexpr FileSystem kFileSystems[] = {
    {"ext4", "", "e2fsprogs", "mkfs.ext4", "e2fsck", "-q", "-fn", 16'384, "256M", true, false, false},
    {"btrfs", R"(, "btrfs")", "btrfs-progs", "mkfs.btrfs", "btrfs", "-q -f", "check --readonly", 131'072,
     "512M", true, true, true},
    {"xfs", R"(, "xfs")", "xfsprogs", "mkfs.xfs", "xfs_repair", "-q -f", "-n", 327'680, "768M", true, true,
     false},
    {"vfat", R"(, "vfat", "nls_cp437", "nls_ascii")", "dosfstools", "mkfs.vfat", "fsck.vfat", "", "-n",
     16'384, "256M", false, false, false},
};

// How a test gets its two disks of the given size in KiB.
struct Disk {
  std::string_view option, device, module, second_device;
  std::string setup;
};
Disk make_disk(FileSystemDisk kind, unsigned size) {
  if (kind == FileSystemDisk::Ram)
    return {"", "/dev/ram0", "brd", "/dev/ram1",
            fmt::format(R"(  "modprobe -r brd; modprobe brd rd_nr=2 rd_size={}",)", size)};
  return {" --disk loop", "/dev/loop0", "loop", "/dev/loop1",
          fmt::format(R"(  "mkdir -p /disks && mount -t tmpfs -o size=100% none /disks",
  "for i in 0 1; do truncate -s {}K /disks/$i && losetup /dev/loop$i /disks/$i || exit 1; done",)",
                      size)};
}

std::optional<std::string> find_program(std::string_view name) {
  for (const std::string_view directory : {"/usr/sbin", "/sbin", "/usr/bin", "/usr/local/sbin"}) {
    const std::filesystem::path path = std::filesystem::path(directory) / name;
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path.string();
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string_view> file_systems() {
  std::vector<std::string_view> names;
  for (const FileSystem& one : kFileSystems) names.push_back(one.name);
  return names;
}

Result<std::string> file_system_test(const FileSystemTestOptions& options) {
  const auto* fs = std::ranges::find(kFileSystems, options.file_system, &FileSystem::name);
  if (fs == std::end(kFileSystems))
    return error("there are no tests for {}, but for {}", options.file_system,
                 fmt::join(file_systems(), ", "));
  std::string files;
  for (const std::string_view program : {fs->make, fs->check}) {
    const std::optional<std::string> host = find_program(program);
    if (!host) return error("{} is not installed: apt-get install {}", program, fs->package);
    files += fmt::format("{}\"{}:/sbin/{}\"", files.empty() ? "" : ", ", *host, program);
  }
  const Disk disk = make_disk(options.disk, fs->device);
  std::string text = fmt::format(
      R"(# Generated calls on {0}: slalom new fs-test {1} --fs {0}{2} --seed {3} --calls {4} --flows {5}
name = "{1}"
about = "{0}, seed {3}"
kernel = "{6}"
memory = "{7}"
)",
      fs->name, options.name, disk.option, options.seed, options.calls, options.flows, options.kernel,
      fs->memory);
  if (options.disk == FileSystemDisk::Loop && options.flows < KernelTest::kMaxFlows)
    text += fmt::format("cpus = {}  # one for the kernel threads that move data to and from the disk\n",
                        options.flows + 1);
  text += fmt::format(
      R"(modules = ["{0}"{1}]
files = [{2}]
setup = [
{3}
  "{4} {5} {6}",
  "mkdir -p /mnt && mount -t {7} {6} /mnt",
  "mkdir /mnt/d /mnt/e; for i in a b d/a; do head -c 10000 /dev/zero > /mnt/$i; done; sync",
]
)",
      disk.module, fs->modules, files, disk.setup, fs->make, fs->make_options, disk.device, fs->name);
  if (options.checked)
    text += fmt::format("check = \"umount /mnt && {} {} {} > /dev/console 2>&1\"\n", fs->check,
                        fs->check_options, disk.device);
  const FileSystemCallsOptions calls{.unix_files = fs->unix_files,
                                     .clones = fs->clones,
                                     .subvolumes = fs->subvolumes,
                                     .second_device = disk.second_device,
                                     .calls = options.calls,
                                     .seed = options.seed};
  for (unsigned flow = 0; flow < options.flows; ++flow)
    text += fmt::format("\n[[flow]]\ncalls = '''\n{}'''\n", file_system_calls(calls, flow));
  text += "\n[expect]\nkinds = []\n\n[limits]\npreparation = 40_000_000_000\n";
  return text;
}

}  // namespace slalom::vm
