// KernelTest: what a kernel test's file says (docs/howto-kernel-test.md).
//
// A value with everything checked that can be without a machine; each part knows its line, for messages.
// Paths in it are relative to the file. Not for running it: see test/prepare.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "inputs/call_program.h"

namespace slalom::vm {

struct KernelTest {
  static constexpr size_t kMaxFlows = 8;

  // What the file gives at one place.
  struct Entry {
    std::string text;
    int line = 0;
    bool operator==(const Entry&) const = default;
  };

  struct Flow {
    enum class Kind : uint8_t {
      Calls,    // a list of system calls
      Program,  // of the user's; `path`
      Source,   // in C, compiled for each run; `path`
    };
    std::string name;
    int line = 0;
    Kind kind = Kind::Calls;
    CallProgram calls;
    std::filesystem::path path;
  };

  struct Expectation {
    bool given = false;  // else anything may be found
    std::vector<std::string> kinds;
    std::vector<std::string> titles;
  };

  struct Limits {
    uint64_t preparation = 4'000'000'000;  // instructions until all flows are ready
    uint64_t execution = 20'000'000;       // of one run of the flows
    uint64_t check = 1'000'000'000;        // of the check afterwards
  };

  std::string file;
  std::string name;  // the file's, unless it gives another
  std::string about;
  std::string kernel;
  int kernel_line = 0;  // 0: the default
  Entry debug_info;     // a vmlinux that knows source lines; empty: none is given
  unsigned cpus = 2;
  uint64_t memory = uint64_t{256} << 20;
  std::string append;           // to the kernel's command line
  std::vector<Entry> modules;   // a name, or a .ko file with parameters
  std::vector<Entry> files;     // HOST:GUEST
  std::vector<Entry> setup;     // commands
  Entry check;                  // a command; empty: there is none
  std::vector<Entry> scope;     // "module:NAME", "function:NAME": what a search orders; empty: everything
  bool scheduler = false;       // switch inside the scheduler and timekeeping, too
  std::vector<Entry> contexts;  // "cpuN", "timer", "ipi", "device": what it decides about; empty: everything
  std::vector<Flow> flows;
  Expectation expect;
  Limits limits;

  std::filesystem::path directory() const { return std::filesystem::path(file).parent_path(); }
};

// A module that is a file, as opposed to one of the kernel's own by name.
bool is_module_file(std::string_view module);

// `origin` names the file in messages and is what paths are relative to.
Result<KernelTest> parse_kernel_test(std::string_view text, const std::string& origin);
Result<KernelTest> load_kernel_test(const std::filesystem::path& path);

// True: the text is a kernel test's rather than some other kind of target's.
bool looks_like_kernel_test(std::string_view text);

}  // namespace slalom::vm
