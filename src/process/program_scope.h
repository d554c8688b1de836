// Where a search switches the threads of a program: in the parts that the user names, or everywhere but
// there.
//
// A part is "module:libfoo.so" (a loaded file, with or without its folder and what follows its name), or
// "function:push", "function:Queue::push", "function:log_*", also where it was inlined. What it calls belongs
// to it. Of a program with an allocator of its own, linked into it, that is one more part without switches:
// libc calls it while it holds locks of its own.
//
// Modules that a program loads after main() began are looked through when they come.
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
#include "process/program_names.h"

namespace slalom {

Result<void> check_scope(std::string_view text);  // as far as it can be judged without the program

class ProgramScope {
 public:
  using Memory = std::function<std::vector<uint8_t>(preload::Range)>;  // of the process

  static Result<ProgramScope> make(const Program& program, const ProgramNames& names);
  // What is in these modules; sorted, without overlaps. Where it is empty for all that are there when main()
  // begins, the search switches everywhere.
  std::vector<preload::ScopedCode> find_in(std::span<const Zygote::Module> modules, const ProgramNames& names,
                                           const Memory& memory);
  // Fails for the first part that was in none of the modules so far. `when`: up to when that is.
  Result<void> check_found(const char* when) const;

 private:
  // What the user wrote, and whether it was found.
  struct Part {
    preload::ScopedCode::Kind kind;
    std::string text, name;
    bool is_module = false;
    bool found = false;
  };

  preload::ScopedCode::Kind kind_of(const Zygote::Module& module);
  preload::ScopedCode::Kind kind_of(const std::string& symbol, const Zygote::Module& module);

  std::string path_;  // of the program
  bool own_allocator_ = false;
  std::vector<Part> parts_;
  std::vector<std::string> files_;  // that were looked through
  uint32_t functions_ = 0;          // so many were found
};

// Makes room, if there is too little for all of it in a target; fails if that is not enough.
Result<void> fit_scope(std::vector<preload::ScopedCode>& all);

// Parts of a program's code that may overlap: the smaller one covers the larger one, and of two of a size the
// one that is named, atomic rather than not.
std::vector<preload::ScopedCode> without_overlaps(std::vector<preload::ScopedCode> parts);

}  // namespace slalom
