// ProgramScope: the places where a search switches the threads of a program: in the parts that the user
// names, or everywhere except there.
//
// A part is "module:libfoo.so" (a loaded file, with or without its folder and the rest of its name), or
// "function:push", "function:Queue::push", "function:log_*", also where the function was inlined. Functions
// called from a part belong to it. If an allocator is linked into the program, it is one more part without
// switches, because libc calls it while it holds locks of its own.
//
// Modules that a program loads after main() began are searched when they are loaded.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "preload/protocol.h"
#include "process/launch/program.h"
#include "process/launch/zygote.h"
#include "process/names/program_names.h"
#include "symbols/code_part.h"

namespace slalom {

Result<void> check_scope(std::string_view text);  // checks only what can be checked without the program

class ProgramScope {
 public:
  using Memory = std::function<std::vector<uint8_t>(preload::Range)>;  // reads the memory of the process

  static Result<ProgramScope> make(const Program& program, const ProgramNames& names);
  // Returns the scoped code of these modules; sorted, without overlaps. If it is empty for all modules that
  // are loaded when main() begins, the search switches everywhere.
  std::vector<preload::ScopedCode> find_in(std::span<const Zygote::Module> modules, const ProgramNames& names,
                                           const Memory& memory);
  // Fails for the first part that was found in no module so far. `when` completes the message: up to when.
  Result<void> check_found(const char* when) const;

 private:
  // A part as the user wrote it, and whether it was found.
  struct Part {
    preload::ScopedCode::Kind kind;
    std::string text;
    CodePart code;
    bool found = false;
  };

  preload::ScopedCode::Kind kind_of(const Zygote::Module& module);
  preload::ScopedCode::Kind kind_of(const std::string& symbol, const Zygote::Module& module);

  std::string path_;  // path of the program
  bool own_allocator_ = false;
  std::vector<Part> parts_;
  std::vector<std::string> files_;  // file names of the modules searched so far
  uint32_t functions_ = 0;          // number of functions found
};

// Drops less important code if a target has too little room for all of it. Fails if that is not enough.
Result<void> fit_scope(std::vector<preload::ScopedCode>& all);

// Removes overlaps between parts of a program's code. A smaller part covers a larger one. Among parts of
// equal size, a named part covers an unnamed one, and an atomic part one of the scope.
std::vector<preload::ScopedCode> without_overlaps(std::vector<preload::ScopedCode> parts);

}  // namespace slalom
