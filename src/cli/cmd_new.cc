// slalom new: writes a file to start from.
#include <filesystem>
#include <iostream>

#include "base/file.h"
#include "cli/command.h"
#include "vm/test/template.h"

namespace slalom {
namespace {

struct Arguments {
  std::string kind;
  std::string name;
};

Result<Exit> write_new(const Arguments& arguments) {
  std::filesystem::path path = arguments.name;
  if (path.extension() != ".toml") path += ".toml";
  const std::string name = path.stem().string();
  if (name.empty() || name.find_first_of("\"\\\n") != std::string::npos)
    return error("\"{}\" is no name for a file", arguments.name);
  std::error_code trouble;
  if (std::filesystem::exists(path, trouble))
    return error("{} is there already: choose another name, or remove it first", path.string());
  TRY(write_file(path, vm::kernel_test_template(name)));
  std::cout << fmt::format("wrote {}\n  next: slalom explore {}\n", path.string(), path.string());
  return Exit::Clean;
}

}  // namespace

void add_new(CLI::App& app, Run& run) {
  auto a = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("new", "Write a file to start from, with every part of it explained.");
  verb->add_option("KIND", a->kind, "kernel-test: system calls that run concurrently in a kernel")
      ->required()
      ->type_name("")
      ->check(CLI::Validator(
          [](const std::string& text) -> std::string {
            return text == "kernel-test" ? "" : fmt::format("is kernel-test, not \"{}\"", text);
          },
          ""));
  verb->add_option("NAME", a->name, "of the file; .toml is added")->required()->type_name("");
  verb->callback([a, &run] { run = [a] { return write_new(*a); }; });
}

}  // namespace slalom
