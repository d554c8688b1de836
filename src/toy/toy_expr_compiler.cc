#include "toy/toy_expr_compiler.h"

#include <array>

#include "toy/toy_arithmetic.h"

namespace slalom {
namespace {

constexpr std::array<ToySyncWord, 12> kSyncWords = {{
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

std::string_view kind_name(ToySyncKind kind) {
  static constexpr std::array<std::string_view, 5> kNames = {"mutex", "rwlock", "condvar", "semaphore",
                                                             "barrier"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

const ToySyncWord* toy_sync_word(std::string_view word) {
  for (const ToySyncWord& entry : kSyncWords)
    if (entry.word == word) return &entry;
  return nullptr;
}

uint16_t ToyExprCompiler::temp() {
  most_ = std::max(most_, next_ + 1);
  return static_cast<uint16_t>(next_++);
}

uint32_t ToyExprCompiler::emit(ToyInstruction instruction) {
  const bool reads_only = instruction.op == ToyOp::Load || instruction.kind == OpKind::None;
  if (program_.blocks[block_].kind == ToyBlock::Kind::Final && !reads_only)
    fail(line_, "the final check may only read");
  instruction.live = static_cast<uint16_t>(next_);
  program_.code.push_back(instruction);
  program_.locations.push_back({block_, static_cast<uint32_t>(line_)});
  return here() - 1;
}

ToyOperand ToyExprCompiler::produce(ToyInstruction instruction, uint32_t mark, std::optional<uint16_t> dest) {
  const uint32_t pc = emit(instruction);
  next_ = mark;
  program_.code[pc].dest = dest ? *dest : temp();
  return ToyOperand::reg(program_.code[pc].dest);
}

ToyOperand ToyExprCompiler::constant(int64_t value) {
  auto& constants = program_.constants;
  const auto found = std::find(constants.begin(), constants.end(), value);
  const auto index = static_cast<uint32_t>(found - constants.begin());
  if (found == constants.end()) constants.push_back(value);
  return ToyOperand::constant(index);
}

void ToyExprCompiler::patch(const std::vector<uint32_t>& jumps) {
  for (uint32_t pc : jumps) program_.code[pc].target = here();
}

std::optional<uint32_t> ToyExprCompiler::find_block(ToyBlock::Kind kind, const ToyExpr& expr) {
  static constexpr std::array<std::string_view, 3> kWhat = {"thread", "interrupt", "timer"};
  for (uint32_t i = 0; i < program_.blocks.size(); ++i)
    if (expr.kind == ToyExpr::Kind::Name && program_.blocks[i].kind == kind &&
        program_.blocks[i].name == expr.name)
      return i;
  const std::string_view what = kWhat[static_cast<size_t>(kind)];
  fail(expr.line, "there is no {} `{}`: declare it with [[{}]]", what, expr.name, what);
  return std::nullopt;
}

void ToyExprCompiler::emit_spawn(const ToyExpr& thread, ToyOperand id) {
  const auto block = find_block(ToyBlock::Kind::Thread, thread);
  if (!block) return;
  emit({.op = ToyOp::Spawn,
        .kind = OpKind::Spawn,
        .dest = spawned_.at(thread.name),
        .x = id,
        .target = *block});
}

ToyExprCompiler::Ref ToyExprCompiler::sync_ref(const ToySyncWord& word, const ToyExpr& expr) {
  const ToySyncObject* object = find_toy_named(program_.sync, expr.name);
  if (!object || object->kind != word.object) {
    fail(expr.line, "`{}` needs a {}, and `{}` is not one", word.word, kind_name(word.object), expr.name);
    return {};
  }
  return {element(expr, object->array), {}, false, false, object->first, object->size};
}

void ToyExprCompiler::emit_sync(const ToySyncWord& word, const ToyExpr& expr) {
  const Ref ref = sync_ref(word, expr);
  emit({.op = ToyOp::Sync, .kind = word.kind, .index = ref.index, .target = ref.target, .count = ref.count});
}

ToyOperand ToyExprCompiler::element(const ToyExpr& expr, bool array) {
  const bool indexed = expr.kind == ToyExpr::Kind::Index;
  if (array && !indexed) fail(expr.line, "`{}` is an array: write {}[index]", expr.name, expr.name);
  if (!array && indexed) fail(expr.line, "`{}` is not an array", expr.name);
  return indexed ? value(expr.args[0]) : constant(0);
}

ToyExprCompiler::Ref ToyExprCompiler::memory(const ToyExpr& expr) {
  const bool indexed = expr.kind == ToyExpr::Kind::Index;
  if (!indexed && expr.kind != ToyExpr::Kind::Name) {
    fail(expr.line, "expected a shared variable (x, a[i]) or a heap cell (p[i])");
    return {};
  }
  if (const ToyShared* shared = find_toy_named(program_.shared, expr.name)) {
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

void ToyExprCompiler::unknown(const ToyExpr& expr) {
  if (const ToySyncObject* object = find_toy_named(program_.sync, expr.name))
    return fail(expr.line, "`{}` is a {}, not a value", expr.name, kind_name(object->kind));
  fail(expr.line, "nothing is called `{}`: assign to it before, or declare it in [shared] or [params]",
       expr.name);
}

ToyInstruction ToyExprCompiler::memory_instruction(ToyOp op, OpKind kind, const Ref& ref) {
  ToyInstruction instruction{.op = op, .kind = kind, .heap = ref.heap, .index = ref.index};
  instruction.handle = ref.handle;
  instruction.target = ref.target;
  instruction.count = ref.count;
  return instruction;
}

void ToyExprCompiler::emit_memory(ToyOp op, OpKind kind, const Ref& ref, ToyOperand x) {
  ToyInstruction instruction = memory_instruction(op, kind, ref);
  instruction.x = x;
  emit(instruction);
}

ToyOperand ToyExprCompiler::value(const ToyExpr& expr, std::optional<uint16_t> dest) {
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

// Always uses a register of its own: the result is written before the right side is read.
ToyOperand ToyExprCompiler::short_circuit(const ToyExpr& expr) {
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

ToyOperand ToyExprCompiler::call(const ToyExpr& expr, std::optional<uint16_t> dest, bool wants_value) {
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
    if (toy_sync_word(expr.name))
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

ToyOperand ToyExprCompiler::call_known(const ToyExpr& expr, std::optional<uint16_t> dest) {
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
    const Ref ref = sync_ref(*toy_sync_word(name), expr.args[0]);
    return produce({.op = ToyOp::Sync,
                    .kind = OpKind::TryLock,
                    .index = ref.index,
                    .target = ref.target,
                    .count = ref.count},
                   mark, dest);
  }
  return memory_call(expr, dest);
}

ToyOperand ToyExprCompiler::memory_call(const ToyExpr& expr, std::optional<uint16_t> dest) {
  const uint32_t mark = next_;
  const Ref ref = memory(expr.args[0]);
  const ToyOperand x = expr.args.size() > 1 ? value(expr.args[1]) : constant(0);
  const ToyOperand y = expr.args.size() > 2 ? value(expr.args[2]) : constant(0);
  if (expr.name == "store") {
    emit_memory(ToyOp::Store, OpKind::AtomicStore, ref, x);
    return constant(0);
  }
  ToyInstruction instruction = memory_instruction(ToyOp::Load, OpKind::AtomicLoad, ref);
  if (expr.name == "cas") instruction.op = ToyOp::CompareExchange, instruction.kind = OpKind::CompareExchange;
  if (expr.name == "xchg") instruction.op = ToyOp::Exchange, instruction.kind = OpKind::ReadModifyWrite;
  if (expr.name == "fetch_add") instruction.op = ToyOp::FetchAdd, instruction.kind = OpKind::ReadModifyWrite;
  instruction.x = x;
  instruction.y = y;
  return produce(instruction, mark, dest);
}

}  // namespace slalom
