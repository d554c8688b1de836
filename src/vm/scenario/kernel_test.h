// KernelTest: the contents of a kernel test file (docs/howto-kernel-test.md).
//
// A value, checked as far as possible without a machine. Each part knows its line, for messages. Paths are
// relative to the file. It does not run tests: see vm/scenario/prepare.h.
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

  // A text and its line in the file.
  struct Entry {
    std::string text;
    int line = 0;
    bool operator==(const Entry&) const = default;
  };

  struct Flow {
    enum class Kind : uint8_t {
      Calls,    // a list of system calls
      Program,  // the user's; `path`
      Source,   // C source, compiled for each run; `path`
    };
    std::string name;
    int line = 0;
    Kind kind = Kind::Calls;
    CallProgram calls;
    CallProgram prepare;  // calls that are made before the flow is ready; empty if there are none
    std::filesystem::path path;
    size_t process = 0;  // the first flow of its process; flows of one process are threads
  };

  struct Expectation {
    bool given = false;  // false: the test expects nothing in particular
    std::vector<std::string> kinds;
    std::vector<std::string> titles;
  };

  struct Limits {
    uint64_t preparation = 4'000'000'000;  // instructions until all flows are ready
    uint64_t execution = 20'000'000;       // instructions of one run of the flows
    uint64_t check = 1'000'000'000;        // instructions of the check afterwards
  };

  std::string file;
  std::string name;  // the file's name unless the test sets another
  std::string about;
  std::string kernel;
  int kernel_line = 0;     // 0: the file names no kernel
  Entry debug_info;        // a vmlinux with source lines; empty if none is given
  Entry module_directory;  // where the modules of a kernel of one's own are; empty: where they usually are
  unsigned cpus = 2;
  uint64_t memory = uint64_t{256} << 20;
  std::string append;          // added to the kernel's command line
  std::vector<Entry> modules;  // a name or a .ko file, with parameters
  std::vector<Entry> files;    // HOST:GUEST
  std::vector<Entry> setup;    // commands
  Entry check;                 // a command; empty if there is none
  // "module:NAME", "function:NAME": code whose accesses a search orders; empty: all.
  std::vector<Entry> scope;
  bool scheduler = false;  // true: also switch inside the scheduler and timekeeping
  // "cpuN", "timer", "ipi", "device": contexts that a search decides about; empty: all.
  std::vector<Entry> contexts;
  std::vector<Entry> detectors;  // needed besides the usual ones
  CallProgram prepare;           // calls that are made once for all flows; empty if there are none
  std::vector<Flow> flows;
  Expectation expect;
  Limits limits;

  // Prepared lists are numbered: 0 is for all flows, 1 + i for flow i. Returns nullptr if there is none.
  const CallProgram* prepared(uint64_t list) const;

  std::filesystem::path directory() const { return std::filesystem::path(file).parent_path(); }
};

// Uses another kernel than the file says, and other modules for it. Empty: the file's.
void use_kernel(KernelTest& test, const std::string& kernel, const std::string& module_directory);

// Returns true if `module` is a file, not the name of one of the kernel's own modules.
bool is_module_file(std::string_view module);

// `origin` is the file's name for messages. Paths are relative to it.
Result<KernelTest> parse_kernel_test(std::string_view text, const std::string& origin);
Result<KernelTest> load_kernel_test(const std::filesystem::path& path);

// Returns true if the text is a kernel test, not another kind of target.
bool looks_like_kernel_test(std::string_view text);

}  // namespace slalom::vm
