// ToyBuilder: builds a ToyProgram from declarations and code, for tests, generated programs and toy_file.h.
//
//   ToyBuilder b("lost-update");
//   b.shared("x").thread("worker", "x = x + 1", {.copies = 2}).final_check("x == 2", "an update was lost");
//   Result<ToyProgram> program = b.build();
//
// Nothing is checked before build(). Its error names the faulty declaration or line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "toy/toy_lexer.h"
#include "toy/toy_program.h"

namespace slalom {

// Code and its place in a file, for errors.
struct ToyCode {
  std::string text;
  std::string file;    // empty if not in a file
  int first_line = 1;  // in that file

  ToyCode(const char* code) : text(code) {}
  ToyCode(std::string code) : text(std::move(code)) {}
  ToyCode(std::string code, std::string origin, int line)
      : text(std::move(code)), file(std::move(origin)), first_line(line) {}
};

struct ToySharedOptions {
  int64_t init = 0;
  std::optional<int64_t> size = {};  // of an array; empty for a single cell
  bool atomic = false;
  bool persistent = false;  // keeps its value over reset(): nondeterminism, to test imperfect replay
};

struct ToySyncOptions {
  int64_t count = 0;                 // of a semaphore: the initial count; of a barrier: the number of parties
  std::optional<int64_t> size = {};  // of an array
};

struct ToyThreadOptions {
  int64_t copies = 1;
  bool start = true;  // false: runs only if spawned
};

class ToyBuilder {
 public:
  explicit ToyBuilder(std::string name = "toy", std::string about = "");

  ToyBuilder& param(std::string name, int64_t value);
  ToyBuilder& shared(std::string name, ToySharedOptions options = {});
  ToyBuilder& sync(std::string name, ToySyncKind kind, ToySyncOptions options = {});
  ToyBuilder& thread(std::string name, ToyCode code, ToyThreadOptions options = {});
  // `on`: a started thread (its copy 0), or one copy, such as "worker#1".
  ToyBuilder& interrupt(std::string name, std::string on, ToyCode code, int64_t times = 1);
  ToyBuilder& timer(std::string name, ToyCode code);
  ToyBuilder& final_check(ToyCode expression, std::string message = "");
  ToyBuilder& expect(std::vector<std::string> kinds, std::vector<std::string> titles = {});

  const ToyParams& params() const { return program_.params; }
  Result<ToyProgram> build() const;

 private:
  struct Source {
    ToyCode code;
    std::string on;       // of an interrupt
    std::string message;  // of the final check
  };

  void declare(const std::string& name);
  void refuse(std::string message);
  void add_block(ToyBlock block, Source source);
  Result<void> add_agents(ToyProgram& program) const;
  Result<void> compile(ToyProgram& program, uint32_t block) const;

  ToyProgram program_;
  std::vector<Source> sources_;  // of each block
  std::vector<std::string> names_;
  std::string problem_;  // the first problem; empty if there is none
};

}  // namespace slalom
