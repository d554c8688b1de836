// slalom new: writes a template file.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "base/file.h"
#include "cli/core/command.h"
#include "report/core/summary.h"
#include "vm/scenario/file_system_test.h"
#include "vm/scenario/kernel_test.h"
#include "vm/scenario/template.h"

namespace slalom {
namespace {

struct NewArguments {
  std::string kind;
  std::string name;
  vm::FileSystemTestOptions file_system;
  std::string disk = "ram";
  bool no_fsck = false;
  vm::KernelTestLike like = vm::KernelTestLike::Any;
};

// Arguments of the command line appear between quotes in the file.
bool can_be_quoted(const std::string& text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

Result<Exit> write_new(const NewArguments& arguments) {
  std::filesystem::path path = arguments.name;
  if (path.extension() != ".toml") path += ".toml";
  const std::string name = path.stem().string();
  if (!can_be_quoted(name))
    return error("\"{}\" is no name for a test: use ASCII characters, but no quotes and backslashes",
                 printable(arguments.name));
  if (!can_be_quoted(arguments.file_system.kernel))
    return error("--kernel \"{}\" is no kernel: name one of slalom kernel list, or a bzImage or vmlinux",
                 printable(arguments.file_system.kernel));
  std::error_code trouble;
  if (std::filesystem::exists(path, trouble))
    return error("{} is there already: choose another name, or remove it first", path.string());
  std::string text = vm::kernel_test_template(name, arguments.like);
  if (arguments.kind == "fs-test") {
    vm::FileSystemTestOptions options = arguments.file_system;
    options.name = name;
    options.checked = !arguments.no_fsck;
    if (arguments.disk == "loop") options.disk = vm::FileSystemDisk::Loop;
    TRY_ASSIGN(text, vm::file_system_test(options));
  }
  TRY(write_output(path, text));
  std::cout << fmt::format("wrote {}\n  next: slalom explore {}\n", path.string(), path.string());
  return Exit::Clean;
}

}  // namespace

void add_new(CLI::App& app, Run& run) {
  auto a = std::make_shared<NewArguments>();
  CLI::App* verb = app.add_subcommand("new", "Write a file to start from, with every part of it explained.");
  verb->add_option("KIND", a->kind,
                   "kernel-test: system calls that run concurrently in a kernel; fs-test: the same, with "
                   "generated calls on a file system")
      ->required()
      ->type_name("")
      ->check(CLI::Validator(
          [](const std::string& text) -> std::string {
            return text == "kernel-test" || text == "fs-test"
                       ? ""
                       : fmt::format("is kernel-test or fs-test, not \"{}\"", text);
          },
          ""));
  verb->add_option("NAME", a->name, "of the file; .toml is added")->required()->type_name("");
  using Like = vm::KernelTestLike;
  const std::map<std::string, Like> parts = {
      {"net", Like::Net}, {"fs", Like::Fs}, {"ipc", Like::Ipc}, {"io_uring", Like::IoUring}};
  verb->add_option("--like", a->like, "a short start for one part of the kernel: net, fs, ipc, io_uring")
      ->group("Of a kernel-test")
      ->type_name("PART")
      ->transform(CLI::Transformer(parts).description(""))
      ->check(CLI::Validator(
          [](const std::string& text) -> std::string {
            return text.size() == 1 ? "" : fmt::format("is net, fs, ipc or io_uring, not \"{}\"", text);
          },
          ""));
  vm::FileSystemTestOptions& fs = a->file_system;
  const auto number = [&](const char* option, auto& value, const char* about, uint64_t most) {
    verb->add_option(option, value, about)
        ->group("Of an fs-test")
        ->capture_default_str()
        ->type_name("N")
        ->check(whole_number(1, most));
  };
  verb->add_option("--fs", fs.file_system, "the file system: ext4, btrfs, xfs, vfat")
      ->group("Of an fs-test")
      ->capture_default_str()
      ->type_name("FS");
  verb->add_option("--disk", a->disk, "what it lies on: ram, or loop, which has a kernel thread in between")
      ->group("Of an fs-test")
      ->capture_default_str()
      ->type_name("DISK")
      ->check(CLI::Validator(
          [](const std::string& text) -> std::string {
            return text == "ram" || text == "loop" ? "" : fmt::format("is ram or loop, not \"{}\"", text);
          },
          ""));
  verb->add_option("--kernel", fs.kernel, "as in slalom kernel list")
      ->group("Of an fs-test")
      ->capture_default_str()
      ->type_name("NAME");
  number("--seed", fs.seed, "other calls for each", ~uint64_t{0} >> 1);
  number("--calls", fs.calls, "of each flow", 200);
  number("--flows", fs.flows, "that run concurrently", vm::KernelTest::kMaxFlows);
  verb->add_flag("--no-fsck", a->no_fsck, "without the file system's checker after each execution")
      ->group("Of an fs-test");
  verb->callback([a, &run] { run = [a] { return write_new(*a); }; });
}

}  // namespace slalom
