#include "toy/toy_core.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "toy/toy_arithmetic.h"

namespace slalom {
namespace {

constexpr size_t kMostAccesses = 256;      // in one batch; Access::retired has room for many more steps
constexpr uint32_t kInvisibleStep = 1000;  // this many invisible instructions in a row count as one step

}  // namespace

ToyCore::ToyCore(std::shared_ptr<const ToyProgram> program) : program_(std::move(program)), names_(program_) {
  for (const ToyShared& shared : program_->shared)
    state_.cells.insert(state_.cells.end(), shared.size, shared.init);
  state_.sync.resize(program_->sync_objects());
  for (const ToySyncObject& object : program_->sync)
    if (object.kind == ToySyncKind::Semaphore)
      for (uint32_t i = 0; i < object.size; ++i) state_.sync[object.first + i].count = object.count;
  for (const ToyInitialAgent& initial : program_->agents) {
    const ToyBlock& block = program_->blocks[initial.block];
    ToyAgent& added = agent(add_agent(initial.id, initial.block, initial.copy));
    added.pending = block.pending;
    if (block.kind != ToyBlock::Kind::Thread) added.status = ToyAgent::Status::Idle;
    if (!initial.interrupts) continue;
    added.interrupts = *initial.interrupts;
    agent(*initial.interrupts).interruptible = true;
  }
  initial_ = state_;
  accesses_.reserve(kMostAccesses);
}

void ToyCore::reset(uint64_t max_steps) {
  for (const ToyShared& shared : program_->shared)
    if (shared.persistent)
      std::copy_n(state_.cells.begin() + shared.first, shared.size, initial_.cells.begin() + shared.first);
  restore(initial_);
  max_steps_ = max_steps;
}

void ToyCore::begin(EventSink& sink) {
  sink_ = &sink;
  accesses_.clear();
  enabled_changed_ = false;
  for (size_t i = 0; i < state_.order.size() && !fault_; ++i)
    if (agent(state_.order[i]).status == ToyAgent::Status::Ready) run_invisible(state_.order[i]);
  refresh_all();
}

void ToyCore::step(uint32_t self, std::optional<uint32_t> answer) {
  yielded_ = false;
  enabled_changed_ = false;
  affects_others_ = false;
  state_.arity = 0;
  if (agent(self).interruptible && !answer)
    tell(self, OpKind::CpuUse, toy_cpu(agent(self).id), agent(self).cpu);
  if (!execute(self, answer)) return;
  ToyAgent& me = agent(self);
  ++me.pc;
  ++me.ops;
  if (me.status == ToyAgent::Status::Ready && !fault_) run_invisible(self);
  ++state_.steps;
  if (affects_others_) {
    refresh_all();
  } else {
    refresh(self);
  }
}

void ToyCore::run_invisible(uint32_t self) {
  ToyAgent& me = agent(self);
  uint32_t left = kInvisibleStep;
  while (true) {
    const ToyInstruction& code = instruction(me);
    if (code.kind != OpKind::None) return;
    if (--left == 0) {
      ++state_.idle_steps;
      if (over_limit()) return;
      left = kInvisibleStep;
    }
    uint32_t next = me.pc + 1;
    switch (code.op) {
      case ToyOp::Move:
        set(me, code.dest, value(me, code.x));
        break;
      case ToyOp::Not:
        set(me, code.dest, value(me, code.x) == 0);
        break;
      case ToyOp::Jump:
        next = code.target;
        break;
      case ToyOp::JumpIfZero:
        if (value(me, code.x) == 0) next = code.target;
        break;
      case ToyOp::JumpIfNonzero:
        if (value(me, code.x) != 0) next = code.target;
        break;
      case ToyOp::Assert:
        if (value(me, code.x) == 0) {
          fail(self, Faulted::Kind::Assertion, program_->texts[code.target]);
          return;
        }
        break;
      case ToyOp::Note:
        tell(self, OpKind::Note, {}, 0, 0, {}, program_->texts[code.target]);
        break;
      case ToyOp::End:
        return end(self);
      default: {
        const auto result = toy_arithmetic(code.op, value(me, code.x), value(me, code.y));
        if (!result) {
          fail(self, Faulted::Kind::Crash, "division by zero");
          return;
        }
        set(me, code.dest, *result);
      }
    }
    me.pc = next;
  }
}

void ToyCore::end(uint32_t self) {
  ToyAgent& me = agent(self);
  const ToyBlock& block = program_->blocks[me.block];
  affects_others_ = true;
  switch (block.kind) {
    case ToyBlock::Kind::Thread:
      tell(self, OpKind::Exit, toy_agent(me.id), 0, 0, me.id);
      [[fallthrough]];
    case ToyBlock::Kind::Final:
      me.status = ToyAgent::Status::Ended;
      return;
    case ToyBlock::Kind::Interrupt: {
      ToyAgent& interrupted = agent(me.interrupts);
      tell(self, OpKind::IrqExit, toy_cpu(interrupted.id), interrupted.cpu);
      interrupted.cpu = 0;
      break;
    }
    case ToyBlock::Kind::Timer:
      break;
  }
  // The context waits for its next run, in the same state as before the first.
  me.status = ToyAgent::Status::Idle;
  me.pc = block.first;
  std::fill_n(state_.registers.begin() + me.frame, block.registers, 0);
}

bool ToyCore::fail(uint32_t self, Faulted::Kind kind, std::string what) {
  const ToyAgent& me = agent(self);
  if (program_->blocks[me.block].kind == ToyBlock::Kind::Final) what = "final check: " + what;
  tell(self, OpKind::Fail, {}, 0, 0, {}, what);
  fault_ = Faulted{kind, me.id, toy_place(me.pc), std::move(what)};
  return false;
}

// Runs as an invisible agent, whose loads emit nothing.
void ToyCore::check_final() {
  if (!program_->final_block) return;
  const uint32_t self = add_agent({}, *program_->final_block, 0);
  run_invisible(self);
  while (agent(self).status != ToyAgent::Status::Ended && !fault_ && !over_limit()) {
    ToyAgent& me = agent(self);
    const Cell cell = resolve(me, instruction(me));
    if (!cell.found) {
      bad_access(self, instruction(me));
      break;
    }
    set(me, instruction(me).dest, state_.cells[cell.at]);
    ++me.pc;
    run_invisible(self);
  }
  state_.registers.resize(agent(self).frame);
  state_.order.erase(std::find(state_.order.begin(), state_.order.end(), self));
  state_.agents.pop_back();
}

uint32_t ToyCore::add_agent(AgentId id, uint32_t block, int64_t copy) {
  const auto index = static_cast<uint32_t>(state_.agents.size());
  const auto position =
      std::lower_bound(state_.order.begin(), state_.order.end(), id,
                       [&](uint32_t other, AgentId wanted) { return agent(other).id < wanted; });
  CHECK(position == state_.order.end() || agent(*position).id != id, "two agents are called {}", id.path());
  state_.order.insert(position, index);
  ToyAgent added;
  added.id = id;
  added.block = block;
  added.pc = program_->blocks[block].first;
  added.frame = static_cast<uint32_t>(state_.registers.size());
  state_.agents.push_back(added);
  state_.registers.resize(added.frame + program_->blocks[block].registers, 0);
  state_.registers[added.frame] = copy;  // the local `id`
  return index;
}

bool ToyCore::can_run(const ToyAgent& agent) const {
  if (agent.status == ToyAgent::Status::Idle) {
    if (agent.interrupts == kNoToyIndex) return slalom::can_run(OpKind::TimerFire, agent.pending);
    return agent.pending > 0 && slalom::can_run(OpKind::IrqEnter, this->agent(agent.interrupts).cpu);
  }
  if (agent.status != ToyAgent::Status::Ready) return false;
  if (!slalom::can_run(OpKind::CpuUse, agent.cpu)) return false;
  const ToyInstruction& code = instruction(agent);
  if (code.op == ToyOp::Sync) {
    const auto object = sync_index(agent, code);
    return !object || slalom::can_run(code.kind, sync_state(*object, code.kind));
  }
  if (code.op == ToyOp::Join) {
    const uint32_t joined = find_agent(AgentId{static_cast<uint64_t>(value(agent, code.x))});
    return joined == kNoToyIndex || this->agent(joined).status == ToyAgent::Status::Ended;
  }
  return true;
}

void ToyCore::refresh(uint32_t index) {
  ToyAgent& me = agent(index);
  const bool enabled = can_run(me);
  if (enabled == me.enabled) return;
  me.enabled = enabled;
  enabled_changed_ = true;
  state_.enabled_hash ^= mix(me.id.raw);
  enabled ? ++state_.enabled_count : --state_.enabled_count;
}

void ToyCore::refresh_all() {
  for (uint32_t i = 0; i < state_.agents.size(); ++i) refresh(i);
}

bool ToyCore::all_ended() const {
  return std::all_of(state_.agents.begin(), state_.agents.end(), [](const ToyAgent& agent) {
    return agent.status == ToyAgent::Status::Ended || agent.status == ToyAgent::Status::Idle;
  });
}

PendingOp ToyCore::pending(uint32_t index) const {
  const ToyAgent& me = agent(index);
  const ToyInstruction& code = instruction(me);
  PendingOp result{code.kind, {}, toy_place(me.pc)};
  switch (code.op) {
    case ToyOp::Load:
    case ToyOp::Store:
    case ToyOp::Exchange:
    case ToyOp::FetchAdd:
    case ToyOp::CompareExchange:
      result.object = resolve(me, code).address;
      break;
    case ToyOp::Sync:
      if (const auto object = sync_index(me, code)) result.object = toy_sync(*object);
      break;
    case ToyOp::Spawn:
      result.object = toy_agent(me.id.child(me.spawned));
      break;
    case ToyOp::Join:
      result.object = toy_agent(AgentId{static_cast<uint64_t>(value(me, code.x))});
      break;
    case ToyOp::Alloc:
      result.object = toy_heap(me.id, me.allocated);
      break;
    case ToyOp::Free:
      result.object = ObjectId{static_cast<uint64_t>(value(me, code.x))};
      break;
    case ToyOp::Mask:
    case ToyOp::Unmask:
      result.object = toy_cpu(me.id);
      break;
    case ToyOp::Raise:
      result.object = toy_interrupt(code.target);
      break;
    case ToyOp::Arm:
    case ToyOp::Cancel:
      result.object = toy_timer(code.target);
      break;
    case ToyOp::IrqEnter:
      result.object = toy_cpu(agent(me.interrupts).id);
      break;
    case ToyOp::TimerFire:
      result.object = toy_timer(me.block);
      break;
    default:
      break;
  }
  return result;
}

// Returns the agents for which an agent waits; empty if no single agent is responsible.
std::vector<AgentId> ToyCore::holders(const ToyAgent& waiting) const {
  const ToyInstruction& code = instruction(waiting);
  std::vector<AgentId> result;
  if (code.op == ToyOp::Join) result.push_back(AgentId{static_cast<uint64_t>(value(waiting, code.x))});
  if (code.op != ToyOp::Sync) return result;
  const uint32_t object = sync_index(waiting, code).value_or(kNoToyIndex);
  if (object == kNoToyIndex) return result;
  const ToySync& sync = state_.sync[object];
  if (sync.owner != kNoToyIndex) result.push_back(agent(sync.owner).id);
  for (const ToyReadHold& hold : state_.read_holds)
    if (hold.sync == object) result.push_back(agent(hold.agent).id);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

Deadlocked ToyCore::deadlock() const {
  Deadlocked result;
  for (uint32_t index : state_.order) {
    const ToyAgent& me = agent(index);
    const PendingOp op = pending(index);
    switch (me.status) {
      case ToyAgent::Status::Ended:
        break;
      case ToyAgent::Status::Idle:
        // An interrupt that cannot come because its agent has masked it.
        if (me.interrupts != kNoToyIndex && me.pending > 0)
          result.waiting.push_back({me.id, op.kind, op.object, op.pc, {agent(me.interrupts).id}});
        break;
      case ToyAgent::Status::Waiting:
      case ToyAgent::Status::AtBarrier: {
        const uint32_t pc = me.pc - 1;
        result.waiting.push_back({me.id, program_->code[pc].kind, toy_sync(me.waits_on), toy_place(pc), {}});
        break;
      }
      case ToyAgent::Status::Ready:
        if (me.cpu == 2) {
          Deadlocked::Waiting waiting{me.id, OpKind::CpuUse, toy_cpu(me.id), op.pc, {}};
          for (const ToyAgent& other : state_.agents)
            if (other.interrupts == index && other.status != ToyAgent::Status::Idle)
              waiting.held_by.push_back(other.id);
          result.waiting.push_back(std::move(waiting));
        } else {
          result.waiting.push_back({me.id, op.kind, op.object, op.pc, holders(me)});
        }
    }
  }
  return result;
}

void ToyCore::flush() {
  if (accesses_.empty()) return;
  sink_->on_accesses(accesses_, batch_);
  accesses_.clear();
}

void ToyCore::tell(uint32_t self, OpKind kind, ObjectId object, uint64_t state, int64_t value, AgentId other,
                   std::string_view text) {
  flush();
  const ToyAgent& me = agent(self);
  sink_->on_event({.step = Step{state_.steps},
                   .agent = me.id,
                   .op = kind,
                   .pc = toy_place(me.pc),
                   .object = object,
                   .state = state,
                   .other = other,
                   .value = value,
                   .text = text});
}

void ToyCore::record(const ToyAgent& me, OpKind kind, ObjectId address, int64_t value, bool wrote) {
  if (accesses_.size() == kMostAccesses) flush();
  if (accesses_.empty()) batch_ = {me.id, 0, Step{state_.steps}};
  accesses_.push_back({.pc_bits = toy_place(me.pc).raw,
                       .op_bits = static_cast<uint64_t>(kind),
                       .modify_bits = 0,
                       .address_bits = address.raw,
                       .retired = state_.steps - batch_.first_step.raw,
                       .value = static_cast<uint64_t>(value),
                       .physical = address.raw,
                       .size = 8,
                       .ring = 0,
                       .wrote = wrote,
                       .unordered = 0,
                       .unused = 0});
}

}  // namespace slalom
