// The visible operations of toy programs.
#include <algorithm>

#include "base/check.h"
#include "toy/toy_core.h"

namespace slalom {
namespace {

constexpr int64_t kMostChoices = UINT32_MAX;

AgentId agent_of(int64_t handle) {
  return AgentId{static_cast<uint64_t>(handle)};
}

}  // namespace

bool ToyCore::execute(uint32_t self, std::optional<uint32_t> answer) {
  const ToyInstruction& code = instruction(agent(self));
  switch (code.op) {
    case ToyOp::Load:
    case ToyOp::Store:
    case ToyOp::Exchange:
    case ToyOp::FetchAdd:
    case ToyOp::CompareExchange:
      return memory(self, code);
    case ToyOp::Yield:
      tell(self, OpKind::Yield, {});
      yielded_ = true;
      return true;
    case ToyOp::Choose:
      return choose(self, code, answer);
    case ToyOp::Alloc:
      return allocate(self, code);
    case ToyOp::Free:
      return free(self, code);
    default:
      break;
  }
  affects_others_ = true;
  switch (code.op) {
    case ToyOp::Sync:
      return synchronise(self, code, answer);
    case ToyOp::Spawn:
      return spawn(self, code);
    case ToyOp::Join:
      return join(self, code);
    case ToyOp::Mask:
    case ToyOp::Unmask:
      mask(self, code.kind);
      return true;
    case ToyOp::Raise:
    case ToyOp::Arm:
    case ToyOp::Cancel:
      change_context(self, code);
      return true;
    case ToyOp::IrqEnter:
    case ToyOp::TimerFire:
      enter_context(self);
      return true;
    default:
      CHECK(false, "instruction {} is not a visible one", agent(self).pc);
  }
  return false;
}

ToyCore::Cell ToyCore::resolve(const ToyAgent& me, const ToyInstruction& code) const {
  Cell cell;
  const auto index = static_cast<uint64_t>(value(me, code.index));
  if (!code.heap) {
    if (index >= code.count) return cell;
    cell.at = static_cast<uint32_t>(code.target + index);
    cell.address = toy_cell(cell.at);
  } else {
    const uint32_t found = find_heap(value(me, code.handle));
    if (found == kNoToyIndex || index >= state_.heap[found].size) return cell;
    const ToyHeapObject& object = state_.heap[found];
    cell.at = static_cast<uint32_t>(object.first + index);
    cell.address = toy_heap_cell(object.id, static_cast<uint32_t>(index));
    cell.heap = object.id;
    cell.live = object.live;
  }
  cell.found = true;
  return cell;
}

bool ToyCore::bad_access(uint32_t self, const ToyInstruction& code) {
  const ToyAgent& me = agent(self);
  const int64_t index = value(me, code.index);
  if (code.heap && find_heap(value(me, code.handle)) == kNoToyIndex)
    return fail(self, Faulted::Kind::Crash, fmt::format("{} is not a heap handle", value(me, code.handle)));
  const uint32_t size = code.heap ? state_.heap[find_heap(value(me, code.handle))].size : code.count;
  return fail(self, Faulted::Kind::Crash,
              fmt::format("index {} is out of range: there are {} elements", index, size));
}

bool ToyCore::memory(uint32_t self, const ToyInstruction& code) {
  ToyAgent& me = agent(self);
  const Cell cell = resolve(me, code);
  if (!cell.found) return bad_access(self, code);
  if (code.heap) tell(self, OpKind::HeapUse, cell.heap, cell.live);
  int64_t& slot = code.heap ? state_.heap_cells[cell.at] : state_.cells[cell.at];
  const int64_t old = slot;  // 0 if the object was freed
  int64_t written = value(me, code.x);
  int64_t reported = old;
  bool wrote = true;
  switch (code.op) {
    case ToyOp::Load:
      set(me, code.dest, old);
      wrote = false;
      break;
    case ToyOp::Store:
      reported = written;
      break;
    case ToyOp::Exchange:
      set(me, code.dest, old);
      reported = written;
      break;
    case ToyOp::FetchAdd:
      set(me, code.dest, old);
      reported = written = static_cast<int64_t>(static_cast<uint64_t>(old) + static_cast<uint64_t>(written));
      break;
    default:  // CompareExchange
      wrote = old == written;
      written = value(me, code.y);
      set(me, code.dest, wrote);
  }
  if (wrote && cell.live) slot = written;
  record(me, code.kind, cell.address, reported, wrote);
  return true;
}

std::optional<uint32_t> ToyCore::sync_index(const ToyAgent& me, const ToyInstruction& code) const {
  const auto index = static_cast<uint64_t>(value(me, code.index));
  if (index >= code.count) return std::nullopt;
  return static_cast<uint32_t>(code.target + index);
}

uint64_t ToyCore::sync_state(uint32_t object, OpKind kind) const {
  const ToySync& sync = state_.sync[object];
  const bool owned = sync.owner != kNoToyIndex;
  switch (kind) {
    case OpKind::Lock:
    case OpKind::TryLock:
    case OpKind::Unlock:
      return owned;
    case OpKind::ReadLock:
    case OpKind::ReadUnlock:
    case OpKind::WriteLock:
    case OpKind::WriteUnlock:
      return uint64_t{sync.count} << 1 | owned;
    case OpKind::SemWait:
    case OpKind::SemPost:
      return sync.count;
    default:
      return 0;
  }
}

bool ToyCore::synchronise(uint32_t self, const ToyInstruction& code, std::optional<uint32_t> answer) {
  const auto found = sync_index(agent(self), code);
  if (!found) return bad_access(self, code);
  const uint32_t object = *found;
  ToySync& sync = state_.sync[object];
  const uint64_t before = sync_state(object, code.kind);
  switch (code.kind) {
    case OpKind::Lock:
    case OpKind::WriteLock:
      sync.owner = self;
      break;
    case OpKind::TryLock: {
      const bool success = before == 0;
      if (success) sync.owner = self;
      set(agent(self), code.dest, success);
      tell(self, OpKind::TryLock, toy_sync(object), before, success);
      return true;
    }
    case OpKind::ReadLock:
      ++sync.count;
      state_.read_holds.push_back({object, self});
      break;
    case OpKind::SemWait:
      --sync.count;
      break;
    case OpKind::SemPost:
      ++sync.count;
      break;
    case OpKind::Unlock:
    case OpKind::WriteUnlock:
      if (sync.owner != self) return not_held(self, code.kind, object);
      sync.owner = kNoToyIndex;
      break;
    case OpKind::ReadUnlock: {
      auto& holds = state_.read_holds;
      const auto hold = std::find(holds.begin(), holds.end(), ToyReadHold{object, self});
      if (hold == holds.end()) return not_held(self, code.kind, object);
      holds.erase(hold);
      --sync.count;
      break;
    }
    case OpKind::Wait:
      return wait(self, object);
    case OpKind::Signal:
    case OpKind::Broadcast:
      return signal(self, code.kind, object, answer);
    default:
      return arrive(self, object);
  }
  tell(self, code.kind, toy_sync(object), before);
  return true;
}

bool ToyCore::not_held(uint32_t self, OpKind kind, uint32_t object) {
  return fail(self, Faulted::Kind::Crash,
              fmt::format("{} of {}, which {} does not hold", name(kind), names_.object(toy_sync(object)),
                          names_.agent(agent(self).id)));
}

// The mutex is that of the following Lock, which the agent executes when it has been woken.
bool ToyCore::wait(uint32_t self, uint32_t condvar) {
  ToyAgent& me = agent(self);
  const ToyInstruction& relock = program_->code[me.pc + 1];
  const auto mutex = sync_index(me, relock);
  if (!mutex) return bad_access(self, relock);
  if (state_.sync[*mutex].owner != self) return not_held(self, OpKind::Wait, *mutex);
  tell(self, OpKind::Wait, toy_sync(condvar));
  tell(self, OpKind::Unlock, toy_sync(*mutex), 1);
  state_.sync[*mutex].owner = kNoToyIndex;
  me.status = ToyAgent::Status::Waiting;
  me.waits_on = condvar;
  return true;
}

void ToyCore::wake(uint32_t self, uint32_t other, ObjectId object) {
  tell(self, OpKind::Wake, object, 0, 0, agent(other).id);
  agent(other).status = ToyAgent::Status::Ready;
  agent(other).waits_on = kNoToyIndex;
}

bool ToyCore::signal(uint32_t self, OpKind kind, uint32_t condvar, std::optional<uint32_t> answer) {
  std::vector<uint32_t> woken;
  for (uint32_t index : state_.order)
    if (agent(index).status == ToyAgent::Status::Waiting && agent(index).waits_on == condvar)
      woken.push_back(index);
  if (kind == OpKind::Signal && woken.size() > 1) {
    if (!answer) {
      state_.arity = static_cast<uint32_t>(woken.size());
      return false;
    }
    woken = {woken[*answer]};
  }
  tell(self, kind, toy_sync(condvar), 0, static_cast<int64_t>(woken.size()));
  for (uint32_t index : woken) wake(self, index, toy_sync(condvar));
  return true;
}

// The last agent to arrive releases the others. They run on to their next visible operation at once, so that
// it is known.
bool ToyCore::arrive(uint32_t self, uint32_t barrier) {
  ToyAgent& me = agent(self);
  ToySync& sync = state_.sync[barrier];
  tell(self, OpKind::BarrierArrive, toy_sync(barrier));
  if (++sync.count < program_->sync_at(barrier).count) {
    me.status = ToyAgent::Status::AtBarrier;
    me.waits_on = barrier;
    return true;
  }
  sync.count = 0;
  std::vector<uint32_t> released;
  for (uint32_t index : state_.order)
    if (agent(index).status == ToyAgent::Status::AtBarrier && agent(index).waits_on == barrier)
      released.push_back(index);
  for (uint32_t index : released) wake(self, index, toy_sync(barrier));
  for (uint32_t index : released)
    if (!fault_) run_invisible(index);
  return true;
}

bool ToyCore::spawn(uint32_t self, const ToyInstruction& code) {
  const AgentId child = agent(self).id.child(agent(self).spawned++);
  const uint32_t index = add_agent(child, code.target, value(agent(self), code.x));
  names_.learn(child, code.target);
  set(agent(self), code.dest, static_cast<int64_t>(child.raw));
  tell(self, OpKind::Spawn, toy_agent(child), 0, 0, child);
  run_invisible(index);
  return true;
}

bool ToyCore::join(uint32_t self, const ToyInstruction& code) {
  const AgentId joined = agent_of(value(agent(self), code.x));
  if (!joined) return fail(self, Faulted::Kind::Crash, "join of a thread that has not been spawned");
  if (find_agent(joined) == kNoToyIndex)
    return fail(self, Faulted::Kind::Crash,
                fmt::format("join of {}, which is no thread's handle", value(agent(self), code.x)));
  tell(self, OpKind::Join, toy_agent(joined), 1, 0, joined);
  return true;
}

bool ToyCore::choose(uint32_t self, const ToyInstruction& code, std::optional<uint32_t> answer) {
  const int64_t arity = value(agent(self), code.x);
  if (arity < 1 || arity > kMostChoices)
    return fail(self, Faulted::Kind::Crash,
                fmt::format("choose({}): there must be between 1 and {} values", arity, kMostChoices));
  if (arity > 1 && !answer) {
    state_.arity = static_cast<uint32_t>(arity);
    return false;
  }
  const uint32_t chosen = arity == 1 ? 0 : *answer;
  tell(self, OpKind::Choose, {}, 0, chosen);
  set(agent(self), code.dest, chosen);
  return true;
}

bool ToyCore::allocate(uint32_t self, const ToyInstruction& code) {
  ToyAgent& me = agent(self);
  const int64_t size = value(me, code.x);
  if (size < 1 || size > kToyMaxHeapCells)
    return fail(self, Faulted::Kind::Crash,
                fmt::format("alloc({}): a heap object has between 1 and {} cells", size, kToyMaxHeapCells));
  const ObjectId id = toy_heap(me.id, me.allocated++);
  const auto position =
      std::lower_bound(state_.heap.begin(), state_.heap.end(), id,
                       [](const ToyHeapObject& object, ObjectId wanted) { return object.id < wanted; });
  CHECK(position == state_.heap.end() || position->id != id, "two heap objects are called {:#x}", id.raw);
  const auto first = static_cast<uint32_t>(state_.heap_cells.size());
  state_.heap.insert(position, {id, first, static_cast<uint32_t>(size), true});
  state_.heap_cells.resize(first + static_cast<size_t>(size), 0);
  tell(self, OpKind::Alloc, id, 0, size);
  set(me, code.dest, static_cast<int64_t>(id.raw));
  return true;
}

bool ToyCore::free(uint32_t self, const ToyInstruction& code) {
  const int64_t handle = value(agent(self), code.x);
  const uint32_t found = find_heap(handle);
  if (found == kNoToyIndex)
    return fail(self, Faulted::Kind::Crash, fmt::format("free({}): not a heap handle", handle));
  ToyHeapObject& object = state_.heap[found];
  tell(self, OpKind::Free, object.id, object.live);
  object.live = false;
  std::fill_n(state_.heap_cells.begin() + object.first, object.size, 0);
  return true;
}

void ToyCore::mask(uint32_t self, OpKind kind) {
  ToyAgent& me = agent(self);
  tell(self, kind, toy_cpu(me.id), me.cpu);
  me.cpu = static_cast<uint8_t>(state_after(kind, me.cpu));
}

void ToyCore::enter_context(uint32_t self) {
  ToyAgent& me = agent(self);
  if (me.interrupts == kNoToyIndex) {
    tell(self, OpKind::TimerFire, toy_timer(me.block), me.pending);
    me.pending = static_cast<uint32_t>(state_after(OpKind::TimerFire, me.pending));
  } else {
    ToyAgent& interrupted = agent(me.interrupts);
    tell(self, OpKind::IrqTake, toy_interrupt(me.block), me.pending);
    me.pending = static_cast<uint32_t>(state_after(OpKind::IrqTake, me.pending));
    tell(self, OpKind::IrqEnter, toy_cpu(interrupted.id), interrupted.cpu);
    interrupted.cpu = static_cast<uint8_t>(state_after(OpKind::IrqEnter, interrupted.cpu));
  }
  me.status = ToyAgent::Status::Ready;
}

void ToyCore::change_context(uint32_t self, const ToyInstruction& code) {
  const uint32_t context = find_context(code.target);
  const ObjectId object = code.kind == OpKind::IrqRaise ? toy_interrupt(code.target) : toy_timer(code.target);
  tell(self, code.kind, object, agent(context).pending);
  agent(context).pending = static_cast<uint32_t>(state_after(code.kind, agent(context).pending));
  if (code.kind != OpKind::TimerCancel) tell(self, OpKind::Wake, object, 0, 0, agent(context).id);
}

uint32_t ToyCore::find_agent(AgentId id) const {
  const auto position =
      std::lower_bound(state_.order.begin(), state_.order.end(), id,
                       [&](uint32_t index, AgentId wanted) { return agent(index).id < wanted; });
  return position != state_.order.end() && agent(*position).id == id ? *position : kNoToyIndex;
}

uint32_t ToyCore::find_context(uint32_t block) const {
  for (uint32_t i = 0; i < program_->agents.size(); ++i)
    if (program_->agents[i].block == block) return i;
  CHECK(false, "block {} has no agent of its own", block);
  return kNoToyIndex;
}

uint32_t ToyCore::find_heap(int64_t handle) const {
  const ObjectId id{static_cast<uint64_t>(handle)};
  const auto position =
      std::lower_bound(state_.heap.begin(), state_.heap.end(), id,
                       [](const ToyHeapObject& object, ObjectId wanted) { return object.id < wanted; });
  return position != state_.heap.end() && position->id == id
             ? static_cast<uint32_t>(position - state_.heap.begin())
             : kNoToyIndex;
}

}  // namespace slalom
