#include "inputs/file_system_calls.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <vector>

#include "base/rng.h"

namespace slalom {
namespace {

class Writer {
 public:
  Writer(const FileSystemCallsOptions& options, unsigned flow)
      : options_(options), random_(options.seed, flow) {
    add(4, &Writer::open_file);
    add(6, &Writer::write);
    add(2, &Writer::read);
    add(3, &Writer::truncate);
    add(3, &Writer::allocate);
    add(2, &Writer::sync);
    add(4, &Writer::rename);
    add(3, &Writer::unlink);
    add(2, &Writer::make_directory);
    add(2, &Writer::remove_directory);
    add(2, &Writer::look);
    add(1, &Writer::list);
    add(1, &Writer::copy);
    add(1, &Writer::close);
    if (options_.unix_files) {
      add(3, &Writer::link);
      add(1, &Writer::special_file);
      add(2, &Writer::attributes);
    }
    if (options_.clones) add(3, &Writer::clone);
    if (options_.subvolumes) {
      add(4, &Writer::subvolume);
      add(1, &Writer::device);
      add(2, &Writer::btrfs_file);
    }
  }

  std::string write_all() {
    while (lines_ < options_.calls) (this->*operations_[random_.below(operations_.size())])();
    return text_;
  }

 private:
  using Operation = void (Writer::*)();
  void add(unsigned weight, Operation operation) { operations_.insert(operations_.end(), weight, operation); }

  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> form, Arguments&&... arguments) {
    if (lines_ == options_.calls) return;  // drops the second call of an operation
    text_ += fmt::format(form, std::forward<Arguments>(arguments)...) + "\n";
    ++lines_;
  }
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[random_.below(values.size())];
  }

  // Draws twice in a fixed order. The compiler chooses the order in which a call's arguments are evaluated.
  struct Two {
    std::string first, second;
  };

  std::string path(std::initializer_list<std::string_view> names) {
    return fmt::format("{}/{}", options_.directory, one_of(names));
  }
  std::string file() { return path({"a", "b", "c", "d/a", "d/b", "e/a"}); }
  std::string directory() { return path({"d", "e", "f", "d/g"}); }
  std::string anything() { return random_.below(3) == 0 ? directory() : file(); }
  uint64_t place() { return one_of<uint64_t>({0, 0, 100, 4096, 12'000, 65'536, 1'000'000}); }
  uint64_t size() { return one_of<uint64_t>({1, 512, 4096, 10'000, 20'000}); }

  // Returns an open file, mostly one that is open already.
  unsigned descriptor() {
    if (files_ == 0 || random_.below(4) == 0) open_file();
    return static_cast<unsigned>(random_.below(files_));
  }
  // Opens the directory that contains all files.
  void open_root() {
    if (!root_is_open_) line("root = open(\"{}\", O_RDONLY | O_DIRECTORY)", options_.directory);
    root_is_open_ = true;
  }

  void open_file() {
    if (lines_ == options_.calls) return;
    const std::string name = file();
    line("f{} = open(\"{}\", O_RDWR | O_CREAT{}, 0644)", files_, name,
         one_of<std::string_view>({"", "", "", " | O_APPEND", " | O_TRUNC", " | O_SYNC", " | O_EXCL"}));
    ++files_;
  }
  void write() {
    const unsigned to = descriptor();
    const uint64_t bytes = size();
    line("pwrite64(f{}, buf({}), {}, {})", to, bytes, bytes, place());
  }
  void read() {
    const unsigned from = descriptor();
    line("pread64(f{}, &r{}(4096), 4096, {})", from, lines_, place());
  }
  void truncate() {
    if (random_.below(2) == 0) {
      const unsigned what = descriptor();
      line("ftruncate(f{}, {})", what, place());
    } else {
      line("truncate(\"{}\", {})", file(), place());
    }
  }
  void allocate() {
    const unsigned what = descriptor();
    const auto mode = one_of<std::string_view>({"0", "FALLOC_FL_KEEP_SIZE", "FALLOC_FL_ZERO_RANGE",
                                                "FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE",
                                                "FALLOC_FL_COLLAPSE_RANGE", "FALLOC_FL_INSERT_RANGE"});
    const uint64_t at = one_of<uint64_t>({0, 4096, 8192});
    line("fallocate(f{}, {}, {}, {})", what, mode, at, one_of<uint64_t>({4096, 16'384, 65'536}));
  }
  void sync() {
    const unsigned what = descriptor();
    line("{}(f{})", one_of<std::string_view>({"fsync", "fdatasync", "syncfs"}), what);
  }
  void rename() {
    const bool directories = random_.below(3) == 0;
    const auto [from, to] = directories ? Two{directory(), directory()} : Two{file(), file()};
    if (random_.below(3) == 0)
      line("renameat2(AT_FDCWD, \"{}\", AT_FDCWD, \"{}\", {})", from, to,
           one_of<std::string_view>({"RENAME_EXCHANGE", "RENAME_NOREPLACE"}));
    else
      line("rename(\"{}\", \"{}\")", from, to);
  }
  void unlink() { line("unlink(\"{}\")", file()); }
  void make_directory() { line("mkdir(\"{}\", 0755)", directory()); }
  void remove_directory() { line("rmdir(\"{}\")", directory()); }
  void look() {
    if (random_.below(3) == 0)
      line("statfs(\"{}\", &s{}(120))", options_.directory, lines_);
    else
      line("stat(\"{}\", &s{}(144))", anything(), lines_);
  }
  void list() {
    const unsigned number = lists_++;
    line("l{} = open(\"{}\", O_RDONLY | O_DIRECTORY)", number, path({".", "d", "e"}));
    line("getdents64(l{}, &n{}(2048), 2048)", number, number);
  }
  void copy() {
    const unsigned from = descriptor(), to = descriptor();
    line("copy_file_range(f{}, 0, f{}, 0, {}, 0)", from, to, size());
  }
  void close() {
    const unsigned what = descriptor();
    line("close(f{})", what);
  }

  void link() {
    const auto [from, to] = Two{file(), file()};
    if (random_.below(3) == 0)
      line("symlink(\"a\", \"{}\")", to);
    else
      line("link(\"{}\", \"{}\")", from, to);
  }
  void special_file() { line("mknod(\"{}\", S_IFIFO | 0644, 0)", file()); }
  void attributes() {
    const std::string what = anything();
    const auto name = one_of<std::string_view>({"x", "y"});
    switch (random_.below(5)) {
      case 0:
        return line("chmod(\"{}\", 0{})", what, one_of<std::string_view>({"600", "644", "755"}));
      case 1:
        return line("chown(\"{}\", {}, 1)", what, random_.below(3));
      case 2:
        return line("utimensat(AT_FDCWD, \"{}\", 0, 0)", what);
      case 3:
        return line("setxattr(\"{}\", \"user.{}\", buf(200), {}, 0)", what, name,
                    one_of<uint64_t>({1, 100, 200}));
      default:
        return line("removexattr(\"{}\", \"user.{}\")", what, name);
    }
  }
  void clone() {
    const unsigned from = descriptor(), to = descriptor();
    line("ioctl(f{}, FICLONE, f{})", to, from);
  }

  void subvolume() {
    open_root();
    const auto name = one_of<std::string_view>({"s0", "s1"});
    switch (random_.below(4)) {
      case 0:
        return line("ioctl(root, BTRFS_IOC_SUBVOL_CREATE, {{i64 0, text(4088, \"{}\")}})", name);
      case 1:
      case 2:
        return line("ioctl(root, BTRFS_IOC_SNAP_CREATE, {{i64 root, text(4088, \"{}\")}})", name);
      default:
        return line("ioctl(root, BTRFS_IOC_SNAP_DESTROY, {{i64 0, text(4088, \"{}\")}})", name);
    }
  }
  void device() {
    open_root();
    line("ioctl(root, BTRFS_IOC_{}_DEV, {{i64 0, text(4088, \"{}\")}})",
         one_of<std::string_view>({"ADD", "RM"}), options_.second_device);
  }
  void btrfs_file() {
    if (random_.below(2) == 0) {
      const unsigned what = descriptor();
      line("ioctl(f{}, BTRFS_IOC_DEFRAG, 0)", what);
    } else {
      open_root();
      line("ioctl(root, BTRFS_IOC_{}, 0)", one_of<std::string_view>({"SYNC", "START_SYNC"}));
    }
  }

  const FileSystemCallsOptions& options_;
  Rng random_;
  std::vector<Operation> operations_;  // one entry per operation, repeated by its weight
  std::string text_;
  unsigned lines_ = 0, files_ = 0, lists_ = 0;
  bool root_is_open_ = false;
};

}  // namespace

std::string file_system_calls(const FileSystemCallsOptions& options, unsigned flow) {
  return Writer(options, flow).write_all();
}

}  // namespace slalom
