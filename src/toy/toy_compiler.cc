#include "toy/toy_compiler.h"

#include <map>
#include <string>
#include <utility>

#include "toy/toy_arithmetic.h"
#include "toy/toy_expr_compiler.h"

namespace slalom {
namespace {

constexpr ToySyncWord kWaitWord = {"wait", OpKind::Wait, ToySyncKind::Condvar};
constexpr ToySyncWord kRelockWord = {"wait", OpKind::Lock, ToySyncKind::Mutex};

class StatementCompiler : private ToyExprCompiler {
 public:
  StatementCompiler(ToyProgram& program, uint32_t block) : ToyExprCompiler(program, block) {}

  std::optional<ToyDiagnostic> run(const std::vector<ToyStmt>& statements) {
    ToyBlock& block = program_.blocks[block_];
    block.first = here();
    locals_["id"] = fresh_local();
    collect(statements);
    next_ = most_ = locals_end_;
    if (block.kind == ToyBlock::Kind::Interrupt) emit({.op = ToyOp::IrqEnter, .kind = OpKind::IrqEnter});
    if (block.kind == ToyBlock::Kind::Timer) emit({.op = ToyOp::TimerFire, .kind = OpKind::TimerFire});
    list(statements);
    line_ = 0;
    emit({.op = ToyOp::End});
    for (const auto& [pc, stmt] : gotos_) {
      const auto label = labels_.find(stmt->word);
      if (label == labels_.end())
        fail(stmt->line, "there is no label `{}` in this code", stmt->word);
      else
        program_.code[pc].target = label->second;
    }
    if (most_ >= ToyOperand::kConstant || program_.constants.size() >= ToyOperand::kConstant)
      fail(1, "this program is too large: at most {} registers and constants", ToyOperand::kConstant - 1);
    block.registers = most_;
    return std::move(problem_);
  }

 private:
  struct Loop {
    std::vector<uint32_t> breaks;
    std::vector<uint32_t> continues;
  };

  // Collects locals, and registers that must keep their value between statements.
  void collect(const std::vector<ToyStmt>& statements) {
    for (const ToyStmt& stmt : statements) {
      for (const ToyExpr& expr : stmt.args) collect_spawns(expr);
      if (stmt.kind == ToyStmt::Kind::Assign && stmt.args[0].kind == ToyExpr::Kind::Name)
        declare_local(stmt.args[0].name, stmt.line);
      if (stmt.kind == ToyStmt::Kind::Word && stmt.word == "spawn") spawned_register(stmt.args[0].name);
      if (stmt.kind == ToyStmt::Kind::For) {
        declare_local(stmt.word, stmt.line);
        loop_ends_[&stmt] = fresh_local();
      }
      collect(stmt.body);
      collect(stmt.otherwise);
    }
  }
  void collect_spawns(const ToyExpr& expr) {
    if (expr.kind == ToyExpr::Kind::Call && expr.name == "spawn" && !expr.args.empty())
      spawned_register(expr.args[0].name);
    for (const ToyExpr& arg : expr.args) collect_spawns(arg);
  }
  void spawned_register(const std::string& thread) {
    if (!spawned_.contains(thread)) spawned_[thread] = fresh_local();
  }
  void declare_local(const std::string& name, int line) {
    if (find_toy_named(program_.shared, name) || locals_.contains(name)) return;
    if (find_toy_param(program_.params, name))
      return fail(line, "`{}` is a parameter and cannot be assigned to", name);
    if (find_toy_named(program_.sync, name))
      return fail(line, "`{}` is a synchronisation object and cannot be assigned to", name);
    locals_[name] = fresh_local();
  }

  void list(const std::vector<ToyStmt>& statements) {
    for (const ToyStmt& stmt : statements) {
      line_ = stmt.line;
      const uint32_t mark = next_;
      statement(stmt);
      next_ = mark;
    }
  }

  void statement(const ToyStmt& stmt) {
    switch (stmt.kind) {
      case ToyStmt::Kind::Assign:
        return assign(stmt.args[0], stmt.args[1]);
      case ToyStmt::Kind::Call:
        call(stmt.args[0], std::nullopt, false);
        return;
      case ToyStmt::Kind::Word:
        return word(stmt);
      case ToyStmt::Kind::If:
        return if_statement(stmt);
      case ToyStmt::Kind::While:
        return while_statement(stmt);
      case ToyStmt::Kind::For:
        return for_statement(stmt);
      case ToyStmt::Kind::Label:
        if (!labels_.emplace(stmt.word, here()).second)
          fail(stmt.line, "the label `{}` appears twice", stmt.word);
        return;
      case ToyStmt::Kind::Goto:
        gotos_.emplace_back(emit({.op = ToyOp::Jump}), &stmt);
        return;
      case ToyStmt::Kind::Assert:
        emit({.op = ToyOp::Assert, .x = value(stmt.args[0]), .target = text(stmt.text)});
        return;
      case ToyStmt::Kind::Note:
        emit({.op = ToyOp::Note, .target = text(stmt.text)});
        return;
    }
  }

  uint32_t text(const std::string& content) {
    program_.texts.push_back(content);
    return static_cast<uint32_t>(program_.texts.size() - 1);
  }

  void assign(const ToyExpr& target, const ToyExpr& source) {
    const auto local = locals_.find(target.name);
    if (target.kind == ToyExpr::Kind::Name && local != locals_.end()) {
      const ToyOperand dest = ToyOperand::reg(local->second);
      const ToyOperand result = value(source, local->second);
      if (result != dest) emit({.op = ToyOp::Move, .dest = local->second, .x = result});
      return;
    }
    const Ref ref = memory(target);
    const ToyOperand result = value(source);
    emit_memory(ToyOp::Store, ref.atomic ? OpKind::AtomicStore : OpKind::Store, ref, result);
  }

  void if_statement(const ToyStmt& stmt) {
    const uint32_t mark = next_;
    const ToyOperand condition = value(stmt.args[0]);
    const uint32_t skip = emit({.op = ToyOp::JumpIfZero, .x = condition});
    next_ = mark;
    list(stmt.body);
    if (stmt.otherwise.empty()) return patch({skip});
    const uint32_t done = emit({.op = ToyOp::Jump});
    patch({skip});
    list(stmt.otherwise);
    patch({done});
  }

  void while_statement(const ToyStmt& stmt) {
    const uint32_t top = here();
    const uint32_t mark = next_;
    const ToyOperand condition = value(stmt.args[0]);
    const uint32_t leave = emit({.op = ToyOp::JumpIfZero, .x = condition});
    next_ = mark;
    loops_.emplace_back();
    list(stmt.body);
    for (uint32_t pc : loops_.back().continues) program_.code[pc].target = top;
    line_ = stmt.line;
    emit({.op = ToyOp::Jump, .target = top});
    patch({leave});
    patch(loops_.back().breaks);
    loops_.pop_back();
  }

  void for_statement(const ToyStmt& stmt) {
    const auto variable = locals_.find(stmt.word);
    if (variable == locals_.end())
      return fail(stmt.line, "the loop variable `{}` must be a local: choose another name", stmt.word);
    const uint16_t i = variable->second;
    const uint16_t end = loop_ends_.at(&stmt);
    const uint32_t mark = next_;
    const ToyOperand first = value(stmt.args[0]);
    const ToyOperand last = value(stmt.args[1]);
    emit({.op = ToyOp::Move, .dest = end, .x = last});
    emit({.op = ToyOp::Move, .dest = i, .x = first});
    next_ = mark;
    const uint32_t top = here();
    const ToyOperand more =
        produce({.op = ToyOp::Less, .x = ToyOperand::reg(i), .y = ToyOperand::reg(end)}, mark, std::nullopt);
    const uint32_t leave = emit({.op = ToyOp::JumpIfZero, .x = more});
    next_ = mark;
    loops_.emplace_back();
    list(stmt.body);
    patch(loops_.back().continues);
    line_ = stmt.line;
    emit({.op = ToyOp::Add, .dest = i, .x = ToyOperand::reg(i), .y = constant(1)});
    emit({.op = ToyOp::Jump, .target = top});
    patch({leave});
    patch(loops_.back().breaks);
    loops_.pop_back();
  }

  void word(const ToyStmt& stmt) {
    const std::string& word = stmt.word;
    if (const ToySyncWord* sync = toy_sync_word(word)) {
      emit_sync(*sync, stmt.args[0]);
    } else if (word == "wait") {
      // Evaluates both objects before the agent waits.
      const Ref condvar = sync_ref(kWaitWord, stmt.args[0]);
      const Ref mutex = sync_ref(kRelockWord, stmt.args[1]);
      for (const auto& [kind, ref] : {std::pair(OpKind::Wait, condvar), std::pair(OpKind::Lock, mutex)})
        emit({.op = ToyOp::Sync, .kind = kind, .index = ref.index, .target = ref.target, .count = ref.count});
    } else if (word == "yield") {
      emit({.op = ToyOp::Yield, .kind = OpKind::Yield});
    } else if (word == "exit") {
      emit({.op = ToyOp::End});
    } else if (word == "mask") {
      emit({.op = ToyOp::Mask, .kind = OpKind::IrqMask});
    } else if (word == "unmask") {
      emit({.op = ToyOp::Unmask, .kind = OpKind::IrqUnmask});
    } else if (word == "raise") {
      emit_block(ToyOp::Raise, OpKind::IrqRaise, ToyBlock::Kind::Interrupt, stmt.args[0]);
    } else if (word == "arm") {
      emit_block(ToyOp::Arm, OpKind::TimerArm, ToyBlock::Kind::Timer, stmt.args[0]);
    } else if (word == "cancel") {
      emit_block(ToyOp::Cancel, OpKind::TimerCancel, ToyBlock::Kind::Timer, stmt.args[0]);
    } else if (word == "spawn") {
      emit_spawn(stmt.args[0], constant(0));
    } else if (word == "join") {
      join(stmt.args[0]);
    } else {
      if (loops_.empty()) return fail(stmt.line, "`{}` outside of a loop", word);
      auto& jumps = word == "break" ? loops_.back().breaks : loops_.back().continues;
      jumps.push_back(emit({.op = ToyOp::Jump}));
    }
  }

  void emit_block(ToyOp op, OpKind kind, ToyBlock::Kind block_kind, const ToyExpr& expr) {
    if (const auto block = find_block(block_kind, expr)) emit({.op = op, .kind = kind, .target = *block});
  }

  // Joins the last copy spawned here, else a thread that runs from the start.
  void join(const ToyExpr& target) {
    const auto emit_join = [&](ToyOperand handle) {
      emit({.op = ToyOp::Join, .kind = OpKind::Join, .x = handle});
    };
    if (const auto spawned = spawned_.find(target.name); spawned != spawned_.end())
      return emit_join(ToyOperand::reg(spawned->second));
    for (const ToyInitialAgent& agent : program_.agents)
      if (agent.name == target.name && program_.blocks[agent.block].kind == ToyBlock::Kind::Thread)
        return emit_join(constant(static_cast<int64_t>(agent.id.raw)));
    fail(target.line,
         "cannot join `{}`: name a thread that this code spawns, one that runs from the start (worker, or "
         "worker#0 if it has copies), or write join(handle)",
         target.name);
  }

  std::map<const ToyStmt*, uint16_t> loop_ends_;
  std::map<std::string, uint32_t> labels_;
  std::vector<std::pair<uint32_t, const ToyStmt*>> gotos_;
  std::vector<Loop> loops_;
};

}  // namespace

std::optional<ToyDiagnostic> compile_toy_block(ToyProgram& program, uint32_t block,
                                               const std::vector<ToyStmt>& statements) {
  return StatementCompiler(program, block).run(statements);
}

}  // namespace slalom
