// slalom cc, slalom c++: run the compiler with options that show slalom every memory access of the compiled
// code.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/core/command.h"

namespace slalom {
namespace {

// Replaces this process by the compiler, so that its output and exit code reach the user unchanged.
Result<Exit> compile(const std::string& compiler, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {compiler, "-g", "-fsanitize=thread"});
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execvp(compiler.c_str(), pointers.data());
  return error("{} cannot be run ({}); install it, for instance with: apt install {}", compiler,
               std::strerror(errno), compiler);
}

void add(CLI::App& app, Run& run, const char* name, const char* compiler) {
  CLI::App* verb = app.add_subcommand(
      name, fmt::format("Compile with {} so that slalom run sees the program's memory accesses.", compiler));
  verb->prefix_command();
  verb->footer(fmt::format("All arguments go to {}, after -g -fsanitize=thread.\n", compiler));
  verb->callback(
      [verb, compiler, &run] { run = [verb, compiler] { return compile(compiler, verb->remaining()); }; });
}

}  // namespace

void add_cc(CLI::App& app, Run& run) {
  add(app, run, "cc", "gcc");
  add(app, run, "c++", "g++");
}

}  // namespace slalom
