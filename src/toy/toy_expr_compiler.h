// ToyExprCompiler: the lower half of the compiler. It knows the names and registers of one block, and
// compiles expressions, references and calls to instructions. The upper half, toy_compiler.cc, compiles
// statements.
//
// Temporaries form a stack above the locals. next_ is its top; a function that raises it must restore it.
// After the first problem the compiler goes on, with code that will never run.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "toy/toy_parser.h"
#include "toy/toy_program.h"

namespace slalom {

// A word of the language for an operation on a synchronisation object.
struct ToySyncWord {
  std::string_view word;
  OpKind kind;
  ToySyncKind object;
};
const ToySyncWord* toy_sync_word(std::string_view word);

template <typename Items>
auto* find_toy_named(Items& items, std::string_view name) {
  const auto found = std::find_if(items.begin(), items.end(), [&](auto& item) { return item.name == name; });
  return found == items.end() ? nullptr : &*found;
}

class ToyExprCompiler {
 protected:
  // The object of a memory or synchronisation operation.
  struct Ref {
    ToyOperand index;
    ToyOperand handle;
    bool heap = false;
    bool atomic = false;
    uint32_t target = 0;
    uint32_t count = 0;
  };

  ToyExprCompiler(ToyProgram& program, uint32_t block) : program_(program), block_(block) {}
  ~ToyExprCompiler() = default;

  template <typename... Args>
  void fail(int line, fmt::format_string<Args...> format, Args&&... args) {
    if (!problem_) problem_ = ToyDiagnostic{line, fmt::format(format, std::forward<Args>(args)...)};
  }

  uint32_t here() const { return static_cast<uint32_t>(program_.code.size()); }
  uint16_t fresh_local() { return static_cast<uint16_t>(locals_end_++); }
  uint32_t emit(ToyInstruction instruction);
  // Emits an instruction that makes a value. The registers from `mark` on are not needed after it.
  ToyOperand produce(ToyInstruction instruction, uint32_t mark, std::optional<uint16_t> dest);
  ToyOperand constant(int64_t value);
  void patch(const std::vector<uint32_t>& jumps);  // makes these jumps lead here

  // The value may stay in the local from which it is read, because no expression changes a local.
  ToyOperand value(const ToyExpr& expr, std::optional<uint16_t> dest = std::nullopt);
  ToyOperand call(const ToyExpr& expr, std::optional<uint16_t> dest, bool wants_value);
  Ref memory(const ToyExpr& expr);
  void emit_memory(ToyOp op, OpKind kind, const Ref& ref, ToyOperand x);
  Ref sync_ref(const ToySyncWord& word, const ToyExpr& expr);
  void emit_sync(const ToySyncWord& word, const ToyExpr& expr);
  void emit_spawn(const ToyExpr& thread, ToyOperand id);
  std::optional<uint32_t> find_block(ToyBlock::Kind kind, const ToyExpr& expr);

  ToyProgram& program_;
  const uint32_t block_;
  std::optional<ToyDiagnostic> problem_;
  int line_ = 0;
  std::map<std::string, uint16_t> locals_;
  std::map<std::string, uint16_t> spawned_;  // the handle of the last spawned copy of each thread
  uint32_t locals_end_ = 0;
  uint32_t next_ = 0;  // next free register; registers above it are unused
  uint32_t most_ = 0;

 private:
  uint16_t temp();
  ToyOperand element(const ToyExpr& expr, bool array);
  void unknown(const ToyExpr& expr);
  ToyOperand short_circuit(const ToyExpr& expr);
  ToyOperand call_known(const ToyExpr& expr, std::optional<uint16_t> dest);
  ToyOperand memory_call(const ToyExpr& expr, std::optional<uint16_t> dest);
  static ToyInstruction memory_instruction(ToyOp op, OpKind kind, const Ref& ref);
};

}  // namespace slalom
