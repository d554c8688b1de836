#include "machine/toy_compiler.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "machine/toy_arithmetic.h"

namespace slalom {
namespace {

template <typename Items>
auto* find_named(Items& items, std::string_view name) {
  const auto found = std::find_if(items.begin(), items.end(), [&](auto& item) { return item.name == name; });
  return found == items.end() ? nullptr : &*found;
}

struct SyncWord {
  std::string_view word;
  OpKind kind;
  ToySyncKind object;
};
constexpr std::array<SyncWord, 12> kSyncWords = {{
    {"lock", OpKind::Lock, ToySyncKind::Mutex},
    {"trylock", OpKind::TryLock, ToySyncKind::Mutex},
    {"unlock", OpKind::Unlock, ToySyncKind::Mutex},
    {"rdlock", OpKind::ReadLock, ToySyncKind::RwLock},
    {"rdunlock", OpKind::ReadUnlock, ToySyncKind::RwLock},
    {"wrlock", OpKind::WriteLock, ToySyncKind::RwLock},
    {"wrunlock", OpKind::WriteUnlock, ToySyncKind::RwLock},
    {"signal", OpKind::Signal, ToySyncKind::Condvar},
    {"broadcast", OpKind::Broadcast, ToySyncKind::Condvar},
    {"down", OpKind::SemWait, ToySyncKind::Semaphore},
    {"up", OpKind::SemPost, ToySyncKind::Semaphore},
    {"arrive", OpKind::BarrierArrive, ToySyncKind::Barrier},
}};
constexpr SyncWord kWaitWord = {"wait", OpKind::Wait, ToySyncKind::Condvar};
constexpr SyncWord kRelockWord = {"wait", OpKind::Lock, ToySyncKind::Mutex};

const SyncWord* sync_word(std::string_view word) {
  for (const SyncWord& entry : kSyncWords)
    if (entry.word == word) return &entry;
  return nullptr;
}

std::string_view kind_name(ToySyncKind kind) {
  static constexpr std::array<std::string_view, 5> kNames = {"mutex", "rwlock", "condvar", "semaphore",
                                                             "barrier"};
  return kNames[static_cast<size_t>(kind)];
}

// After the first problem the compiler goes on, with code that nobody will run.
class Compiler {
 public:
  Compiler(ToyProgram& program, uint32_t block) : program_(program), block_(block) {}

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
  // Where a memory or synchronisation operation goes.
  struct Ref {
    ToyOperand index;
    ToyOperand handle;
    bool heap = false;
    bool atomic = false;
    uint32_t target = 0;
    uint32_t count = 0;
  };

  template <typename... Args>
  void fail(int line, fmt::format_string<Args...> format, Args&&... args) {
    if (!problem_) problem_ = ToyDiagnostic{line, fmt::format(format, std::forward<Args>(args)...)};
  }

  uint32_t here() const { return static_cast<uint32_t>(program_.code.size()); }
  uint16_t fresh_local() { return static_cast<uint16_t>(locals_end_++); }
  uint16_t temp() {
    most_ = std::max(most_, next_ + 1);
    return static_cast<uint16_t>(next_++);
  }

  uint32_t emit(ToyInstruction instruction) {
    const bool reads_only = instruction.op == ToyOp::Load || instruction.kind == OpKind::None;
    if (program_.blocks[block_].kind == ToyBlock::Kind::Final && !reads_only)
      fail(line_, "the final check may only read");
    instruction.live = static_cast<uint16_t>(next_);
    program_.code.push_back(instruction);
    program_.locations.push_back({block_, static_cast<uint32_t>(line_)});
    return here() - 1;
  }

  // Emits an instruction that makes a value, once the registers from `mark` on are not needed after it.
  ToyOperand produce(ToyInstruction instruction, uint32_t mark, std::optional<uint16_t> dest) {
    const uint32_t pc = emit(instruction);
    next_ = mark;
    program_.code[pc].dest = dest ? *dest : temp();
    return ToyOperand::reg(program_.code[pc].dest);
  }

  ToyOperand constant(int64_t value) {
    auto& constants = program_.constants;
    const auto found = std::find(constants.begin(), constants.end(), value);
    const auto index = static_cast<uint32_t>(found - constants.begin());
    if (found == constants.end()) constants.push_back(value);
    return ToyOperand::constant(index);
  }

  void patch(const std::vector<uint32_t>& jumps) {
    for (uint32_t pc : jumps) program_.code[pc].target = here();
  }

  // Locals, and registers that must keep their value between statements.
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
    if (find_named(program_.shared, name) || locals_.contains(name)) return;
    if (find_toy_param(program_.params, name))
      return fail(line, "`{}` is a parameter and cannot be assigned to", name);
    if (find_named(program_.sync, name))
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
    if (const SyncWord* sync = sync_word(word)) {
      emit_sync(*sync, stmt.args[0]);
    } else if (word == "wait") {
      // Both objects are evaluated before the agent goes to sleep.
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

  std::optional<uint32_t> find_block(ToyBlock::Kind kind, const ToyExpr& expr) {
    static constexpr std::array<std::string_view, 3> kWhat = {"thread", "interrupt", "timer"};
    for (uint32_t i = 0; i < program_.blocks.size(); ++i)
      if (expr.kind == ToyExpr::Kind::Name && program_.blocks[i].kind == kind &&
          program_.blocks[i].name == expr.name)
        return i;
    const std::string_view what = kWhat[static_cast<size_t>(kind)];
    fail(expr.line, "there is no {} `{}`: declare it with [[{}]]", what, expr.name, what);
    return std::nullopt;
  }

  void emit_block(ToyOp op, OpKind kind, ToyBlock::Kind block_kind, const ToyExpr& expr) {
    if (const auto block = find_block(block_kind, expr)) emit({.op = op, .kind = kind, .target = *block});
  }

  void emit_spawn(const ToyExpr& thread, ToyOperand id) {
    const auto block = find_block(ToyBlock::Kind::Thread, thread);
    if (!block) return;
    emit({.op = ToyOp::Spawn,
          .kind = OpKind::Spawn,
          .dest = spawned_.at(thread.name),
          .x = id,
          .target = *block});
  }

  // The last one spawned here, else a thread that runs from the start.
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

  Ref sync_ref(const SyncWord& word, const ToyExpr& expr) {
    const ToySyncObject* object = find_named(program_.sync, expr.name);
    if (!object || object->kind != word.object) {
      fail(expr.line, "`{}` needs a {}, and `{}` is not one", word.word, kind_name(word.object), expr.name);
      return {};
    }
    return {element(expr, object->array), {}, false, false, object->first, object->size};
  }
  void emit_sync(const SyncWord& word, const ToyExpr& expr) {
    const Ref ref = sync_ref(word, expr);
    emit(
        {.op = ToyOp::Sync, .kind = word.kind, .index = ref.index, .target = ref.target, .count = ref.count});
  }

  ToyOperand element(const ToyExpr& expr, bool array) {
    const bool indexed = expr.kind == ToyExpr::Kind::Index;
    if (array && !indexed) fail(expr.line, "`{}` is an array: write {}[index]", expr.name, expr.name);
    if (!array && indexed) fail(expr.line, "`{}` is not an array", expr.name);
    return indexed ? value(expr.args[0]) : constant(0);
  }

  Ref memory(const ToyExpr& expr) {
    const bool indexed = expr.kind == ToyExpr::Kind::Index;
    if (!indexed && expr.kind != ToyExpr::Kind::Name) {
      fail(expr.line, "expected a shared variable (x, a[i]) or a heap cell (p[i])");
      return {};
    }
    if (const ToyShared* shared = find_named(program_.shared, expr.name)) {
      if (indexed && !shared->array)
        fail(expr.line, "`{}` is not an array; to use it as a heap handle, copy it to a local first",
             expr.name);
      return {element(expr, shared->array), {}, false, shared->atomic, shared->first, shared->size};
    }
    const auto local = locals_.find(expr.name);
    if (indexed && local != locals_.end())
      return {value(expr.args[0]), ToyOperand::reg(local->second), true, false, 0, 0};
    if (local != locals_.end())
      fail(expr.line, "`{}` is a local: only shared variables and heap cells can be used here", expr.name);
    else
      unknown(expr);
    return {};
  }

  void unknown(const ToyExpr& expr) {
    if (const ToySyncObject* object = find_named(program_.sync, expr.name))
      return fail(expr.line, "`{}` is a {}, not a value", expr.name, kind_name(object->kind));
    fail(expr.line, "nothing is called `{}`: assign to it before, or declare it in [shared] or [params]",
         expr.name);
  }

  static ToyInstruction memory_instruction(ToyOp op, OpKind kind, const Ref& ref) {
    ToyInstruction instruction{.op = op, .kind = kind, .heap = ref.heap, .index = ref.index};
    instruction.handle = ref.handle;
    instruction.target = ref.target;
    instruction.count = ref.count;
    return instruction;
  }
  void emit_memory(ToyOp op, OpKind kind, const Ref& ref, ToyOperand x) {
    ToyInstruction instruction = memory_instruction(op, kind, ref);
    instruction.x = x;
    emit(instruction);
  }

  // A value may stay in the local it is read from, since no expression changes a local.
  ToyOperand value(const ToyExpr& expr, std::optional<uint16_t> dest = std::nullopt) {
    if (const auto number = fold_toy_constant(expr, program_.params)) return constant(*number);
    const uint32_t mark = next_;
    switch (expr.kind) {
      case ToyExpr::Kind::Name:
        if (const auto local = locals_.find(expr.name); local != locals_.end())
          return ToyOperand::reg(local->second);
        [[fallthrough]];
      case ToyExpr::Kind::Index: {
        const Ref ref = memory(expr);
        return produce(memory_instruction(ToyOp::Load, ref.atomic ? OpKind::AtomicLoad : OpKind::Load, ref),
                       mark, dest);
      }
      case ToyExpr::Kind::Unary: {
        const ToyOperand x = value(expr.args[0]);
        if (expr.name == "!") return produce({.op = ToyOp::Not, .x = x}, mark, dest);
        return produce({.op = ToyOp::Subtract, .x = constant(0), .y = x}, mark, dest);
      }
      case ToyExpr::Kind::Binary: {
        if (expr.name == "&&" || expr.name == "||") return short_circuit(expr);
        const ToyOperator& op = toy_operator(expr.name);
        ToyOperand x = value(expr.args[0]);
        ToyOperand y = value(expr.args[1]);
        if (op.swapped) std::swap(x, y);
        return produce({.op = op.op, .x = x, .y = y}, mark, dest);
      }
      case ToyExpr::Kind::Call:
        return call(expr, dest, true);
      case ToyExpr::Kind::Number:
        break;
    }
    return constant(expr.number);
  }

  // Always into a register of its own: the result is written before the right side is read.
  ToyOperand short_circuit(const ToyExpr& expr) {
    const uint32_t mark = next_;
    const ToyOperand left = value(expr.args[0]);
    next_ = mark;
    const uint16_t result = temp();
    const auto truth = [&](ToyOperand x) {
      emit({.op = ToyOp::NotEqual, .dest = result, .x = x, .y = constant(0)});
    };
    truth(left);
    const uint32_t skip = emit(
        {.op = expr.name == "&&" ? ToyOp::JumpIfZero : ToyOp::JumpIfNonzero, .x = ToyOperand::reg(result)});
    truth(value(expr.args[1]));
    patch({skip});
    next_ = mark + 1;
    return ToyOperand::reg(result);
  }

  ToyOperand call(const ToyExpr& expr, std::optional<uint16_t> dest, bool wants_value) {
    struct Function {
      std::string_view name;
      size_t fewest, most;
      bool gives_value;
    };
    static constexpr std::array<Function, 11> kFunctions = {{
        {"cas", 3, 3, true},
        {"xchg", 2, 2, true},
        {"fetch_add", 2, 2, true},
        {"load", 1, 1, true},
        {"trylock", 1, 1, true},
        {"choose", 1, 1, true},
        {"alloc", 1, 1, true},
        {"spawn", 1, 2, true},
        {"store", 2, 2, false},
        {"free", 1, 1, false},
        {"join", 1, 1, false},
    }};
    const auto function = std::find_if(kFunctions.begin(), kFunctions.end(),
                                       [&](const Function& entry) { return entry.name == expr.name; });
    if (function == kFunctions.end()) {
      if (sync_word(expr.name))
        fail(expr.line, "`{}` is a statement: write it without parentheses", expr.name);
      else
        fail(expr.line, "there is no function `{}`", expr.name);
      return {};
    }
    if (expr.args.size() < function->fewest || expr.args.size() > function->most) {
      fail(expr.line, "{} takes {} argument{}, not {}", expr.name, function->fewest,
           function->fewest == 1 ? "" : "s", expr.args.size());
      return {};
    }
    if (wants_value && !function->gives_value) fail(expr.line, "{}() gives no value", expr.name);
    return call_known(expr, dest);
  }

  ToyOperand call_known(const ToyExpr& expr, std::optional<uint16_t> dest) {
    const uint32_t mark = next_;
    const std::string& name = expr.name;
    if (name == "choose" || name == "alloc") {
      const ToyOperand x = value(expr.args[0]);
      const bool choose = name == "choose";
      return produce({.op = choose ? ToyOp::Choose : ToyOp::Alloc,
                      .kind = choose ? OpKind::Choose : OpKind::Alloc,
                      .x = x},
                     mark, dest);
    }
    if (name == "spawn") {
      const ToyOperand id = expr.args.size() == 2 ? value(expr.args[1]) : constant(0);
      emit_spawn(expr.args[0], id);
      if (!spawned_.contains(expr.args[0].name)) return {};
      return produce({.op = ToyOp::Move, .x = ToyOperand::reg(spawned_.at(expr.args[0].name))}, mark, dest);
    }
    if (name == "free" || name == "join") {
      const ToyOperand x = value(expr.args[0]);
      if (name == "free") emit({.op = ToyOp::Free, .kind = OpKind::Free, .x = x});
      if (name == "join") emit({.op = ToyOp::Join, .kind = OpKind::Join, .x = x});
      return constant(0);
    }
    if (name == "trylock") {
      const Ref ref = sync_ref(*sync_word(name), expr.args[0]);
      return produce({.op = ToyOp::Sync,
                      .kind = OpKind::TryLock,
                      .index = ref.index,
                      .target = ref.target,
                      .count = ref.count},
                     mark, dest);
    }
    return memory_call(expr, dest);
  }

  ToyOperand memory_call(const ToyExpr& expr, std::optional<uint16_t> dest) {
    const uint32_t mark = next_;
    const Ref ref = memory(expr.args[0]);
    const ToyOperand x = expr.args.size() > 1 ? value(expr.args[1]) : constant(0);
    const ToyOperand y = expr.args.size() > 2 ? value(expr.args[2]) : constant(0);
    if (expr.name == "store") {
      emit_memory(ToyOp::Store, OpKind::AtomicStore, ref, x);
      return constant(0);
    }
    ToyInstruction instruction = memory_instruction(ToyOp::Load, OpKind::AtomicLoad, ref);
    if (expr.name == "cas")
      instruction.op = ToyOp::CompareExchange, instruction.kind = OpKind::CompareExchange;
    if (expr.name == "xchg") instruction.op = ToyOp::Exchange, instruction.kind = OpKind::ReadModifyWrite;
    if (expr.name == "fetch_add")
      instruction.op = ToyOp::FetchAdd, instruction.kind = OpKind::ReadModifyWrite;
    instruction.x = x;
    instruction.y = y;
    return produce(instruction, mark, dest);
  }

  ToyProgram& program_;
  const uint32_t block_;
  std::optional<ToyDiagnostic> problem_;
  int line_ = 0;
  std::map<std::string, uint16_t> locals_;
  std::map<std::string, uint16_t> spawned_;  // the handle of the last one of each thread
  std::map<const ToyStmt*, uint16_t> loop_ends_;
  uint32_t locals_end_ = 0;
  uint32_t next_ = 0;  // free register: those above it are not in use
  uint32_t most_ = 0;
  std::map<std::string, uint32_t> labels_;
  std::vector<std::pair<uint32_t, const ToyStmt*>> gotos_;
  std::vector<Loop> loops_;
};

}  // namespace

std::optional<ToyDiagnostic> compile_toy_block(ToyProgram& program, uint32_t block,
                                               const std::vector<ToyStmt>& statements) {
  return Compiler(program, block).run(statements);
}

}  // namespace slalom
