#include "detect/programs/race.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/hash.h"
#include "detect/core/titles.h"

namespace slalom {

void RaceState::clear() {
  agent_index.clear();
  agents.clear();
  clocks.clear();
  released.clear();
  read_released.clear();
  atomics.clear();
  locks.clear();
  contexts.clear();
  cells.clear();
  records.resize(1);
  free_record = 0;
  reported.clear();
  races.clear();
}

uint32_t RaceDetector::index_of(AgentId agent) {
  uint32_t& known = state_.agent_index[agent.raw];
  if (known == 0) {
    const auto index = static_cast<uint32_t>(state_.agents.size());
    CHECK(index <= std::numeric_limits<uint16_t>::max(), "more agents than a Record can tell apart");
    known = index + 1;
    state_.clocks.widen(index + 1);
    Agent added;
    added.id = agent;
    added.clock = state_.clocks.add_row();
    // 0 is what other agents know of an agent before they synchronise with it.
    state_.clocks.row(added.clock)[index] = 1;
    state_.agents.push_back(added);
  }
  return known - 1;
}

void RaceDetector::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  constexpr size_t kSoon = 12;
  const uint32_t agent = index_of(header.agent);
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (i + kSoon < accesses.size()) state_.cells.prefetch(accesses[i + kSoon].address().raw >> 3);
    access(accesses[i], Step{header.first_step.raw + accesses[i].retired}, agent);
  }
}

// The record is passed by value, here and to found(), and stored field by field, so that it stays in
// registers. Copying a struct right after it was built on the stack stalls for longer than everything else
// takes.
inline void RaceDetector::touch(uint64_t cell, const uint32_t* now, Record record) {
  uint32_t& head = state_.cells[cell];
  uint32_t place = 0;  // a dropped record that the new one replaces
  for (uint32_t* link = &head; *link != 0;) {
    const uint32_t index = *link;
    Record& old = state_.records[index];
    if ((old.bytes() & record.bytes()) != 0) {
      const bool ordered = old.clock() <= now[old.agent()];
      if (!ordered) {
        const bool conflict = (old.kind() | record.kind()) == (RaceState::kWrites | RaceState::kPlain);
        if (conflict) [[unlikely]]
          found(cell, old, record);
      } else if ((old.kind() & ~record.kind()) == 0) {
        old.what &= ~uint64_t{record.bytes()};
        if (old.bytes() == 0 && place == 0) {
          place = index;
        } else if (old.bytes() == 0) {
          *link = old.next;
          old.next = state_.free_record;
          state_.free_record = index;
          continue;
        }
      }
    }
    link = &old.next;
  }
  uint32_t next = head;
  if (place != 0) {
    next = state_.records[place].next;
  } else if (state_.free_record != 0) {
    head = place = state_.free_record;
    state_.free_record = state_.records[place].next;
  } else {
    head = place = static_cast<uint32_t>(state_.records.size());
    state_.records.emplace_back();
  }
  Record& slot = state_.records[place];
  slot.what = record.what;
  slot.pc = record.pc;
  slot.step = record.step;
  slot.context = record.context;
  slot.next = next;
}

void RaceDetector::access(const Access& access, Step step, uint32_t agent) {
  const OpKind op = access.op();
  const uint64_t address = access.address().raw;
  const bool atomic = is_atomic(op);
  const bool reads = op == OpKind::Load || op == OpKind::AtomicLoad;
  const bool writes = op == OpKind::CompareExchange ? access.wrote != 0 : !reads;
  if (atomic) acquire(agent, state_.atomics, address);

  Agent& who = state_.agents[agent];
  if (who.context == 0) who.context = state_.contexts.intern(who.now);
  const uint32_t* now = state_.clocks.row(who.clock);
  const uint8_t kind = (writes ? RaceState::kWrites : 0) | (atomic ? 0 : RaceState::kPlain);
  const uint64_t what = Record::pack(op, kind, agent, now[agent]);
  uint64_t offset = address & 7;
  uint64_t cell = address >> 3;
  for (uint64_t left = access.size; left != 0; offset = 0, ++cell) {
    const uint64_t count = std::min(left, 8 - offset);
    const uint64_t bytes = ((uint64_t{1} << count) - 1) << offset;
    touch(cell, now, {what | bytes, access.pc(), step, who.context, 0});
    left -= count;
  }

  if (atomic) {
    if (writes) release(agent, state_.atomics, address);
    who.now.sync = op;
    who.now.pc = access.pc();
    who.now.object = access.address();
    who.context = 0;
  }
}

// Forgets the accesses to an object: memory that is allocated again has nothing to do with its earlier use.
void RaceDetector::forget(ObjectId object, uint64_t size) {
  if (size == 0) return;
  const auto drop = [&](uint32_t& head) {
    while (head != 0) {
      Record& record = state_.records[head];
      const uint32_t next = record.next;
      record.next = state_.free_record;
      state_.free_record = head;
      head = next;
    }
  };
  const uint64_t first = object.raw >> 3;
  const uint64_t count = ((object.raw & 7) + size + 7) >> 3;
  if (state_.cells.empty()) return;
  // Scanning the table takes time for its capacity, which may be much larger than its size.
  constexpr uint64_t kManyCells = 1 << 16;
  if (count > kManyCells && count > state_.cells.size()) {
    state_.cells.for_each([&](uint64_t cell, uint32_t& head) {
      if (cell - first < count) drop(head);
    });
    return;
  }
  for (uint64_t i = 0; i < count; ++i)
    if (uint32_t* head = state_.cells.find(first + i); head != nullptr) drop(*head);
}

void RaceDetector::acquire(uint32_t agent, const FlatMap<uint32_t>& rows, uint64_t key) {
  if (const uint32_t* row = rows.find(key); row != nullptr)
    state_.clocks.join(state_.agents[agent].clock, *row);
}

void RaceDetector::release(uint32_t agent, FlatMap<uint32_t>& rows, uint64_t key) {
  release_into(agent, rows[key]);
}

void RaceDetector::release_into(uint32_t agent, uint32_t& row) {
  if (row == 0) row = state_.clocks.add_row();
  const uint32_t own = state_.agents[agent].clock;
  state_.clocks.join(row, own);
  uint32_t& clock = state_.clocks.row(own)[agent];
  CHECK(clock < std::numeric_limits<uint32_t>::max(), "a clock of the race detector ran over");
  ++clock;
}

void RaceDetector::hold(uint32_t agent, ObjectId lock) {
  uint32_t& locks = state_.agents[agent].now.locks;
  locks = state_.locks.with(locks, lock);
}

void RaceDetector::let_go(uint32_t agent, ObjectId lock) {
  uint32_t& locks = state_.agents[agent].now.locks;
  locks = state_.locks.without(locks, lock);
}

void RaceDetector::on_event(const Event& event) {
  if (event.op == OpKind::Alloc) forget(event.object, static_cast<uint64_t>(event.value));
  if (!event.agent) return;
  const uint32_t agent = index_of(event.agent);
  const bool synchronises = synchronise(event, agent);
  if (event.op == OpKind::Wake) return;  // belongs to what its agent did before it
  Agent& who = state_.agents[agent];
  who.previous = event.op;
  if (!synchronises) return;
  who.now.sync = event.op;
  who.now.pc = event.pc;
  who.now.object = event.object;
  who.context = 0;
}

bool RaceDetector::synchronise(const Event& event, uint32_t agent) {
  const uint64_t object = event.object.raw;
  switch (event.op) {
    case OpKind::TryLock:
      if (event.value == 0) return false;
      [[fallthrough]];
    case OpKind::Lock:
    case OpKind::ReadLock:
    case OpKind::IrqMask:
      acquire(agent, state_.released, object);
      hold(agent, event.object);
      return true;
    case OpKind::WriteLock:
      acquire(agent, state_.released, object);
      acquire(agent, state_.read_released, object);
      hold(agent, event.object);
      return true;
    case OpKind::Unlock:
    case OpKind::WriteUnlock:
    case OpKind::IrqUnmask:
    case OpKind::IrqExit:
      release(agent, state_.released, object);
      let_go(agent, event.object);
      return true;
    case OpKind::ReadUnlock:
      release(agent, state_.read_released, object);
      let_go(agent, event.object);
      return true;
    case OpKind::IrqEnter:
      acquire(agent, state_.released, object);
      state_.clocks.join(state_.agents[agent].clock, state_.agents[agent].wakes);
      hold(agent, event.object);
      return true;
    case OpKind::TimerFire:
      acquire(agent, state_.released, object);
      state_.clocks.join(state_.agents[agent].clock, state_.agents[agent].wakes);
      return true;
    case OpKind::SemWait:
    case OpKind::Join:
    case OpKind::Acquire:
      acquire(agent, state_.released, object);
      return true;
    case OpKind::SemPost:
    case OpKind::Exit:
    case OpKind::TimerArm:
    case OpKind::Release:
      release(agent, state_.released, object);
      return true;
    case OpKind::BarrierArrive:
      // The last agent to arrive is thus ordered after all others, and its wakes pass that order on to them.
      acquire(agent, state_.released, object);
      release(agent, state_.released, object);
      return true;
    case OpKind::Spawn: {
      if (!event.other) return false;  // a process with memory of its own
      const uint32_t child = index_of(event.other);
      release_into(agent, state_.agents[child].clock);
      return true;
    }
    case OpKind::Wake: {
      const uint32_t woken = index_of(event.other);
      const OpKind cause = state_.agents[agent].previous;
      // A handler or timer may run already. Only its next run comes after the operation that raised or armed
      // it.
      const bool later = cause == OpKind::IrqRaise || cause == OpKind::TimerArm;
      release_into(agent, later ? state_.agents[woken].wakes : state_.agents[woken].clock);
      return true;
    }
    case OpKind::Wait:
    case OpKind::Signal:
    case OpKind::Broadcast:
      return true;
    default:
      return false;
  }
}

void RaceDetector::found(uint64_t cell, Record first, Record second) {
  uint8_t& known = state_.reported[combine(first.pc.raw, second.pc.raw, cell, first.op(), second.op())];
  if (known != 0) return;
  known = 1;
  const auto byte = static_cast<unsigned>(first.bytes() & second.bytes());
  const ObjectId object{cell * 8 + static_cast<uint64_t>(std::countr_zero(byte))};
  const uint64_t hash = hash_text(title(object, first, second));
  for (const RaceState::Race& race : state_.races)
    if (race.title == hash) return;
  state_.races.push_back({object, first, second, hash});
}

std::string RaceDetector::title(ObjectId object, const Record& first, const Record& second) const {
  std::string a = fmt::format("{} ({})", names_.place(first.pc), name(first.op()));
  std::string b = fmt::format("{} ({})", names_.place(second.pc), name(second.op()));
  if (b < a) std::swap(a, b);
  return fmt::format("data race on {}: {} / {}", generic_name(names_.object(object)), a, b);
}

std::string RaceDetector::held(const Record& record) const {
  std::vector<std::string> locks;
  for (ObjectId lock : state_.locks.list(state_.contexts[record.context].locks))
    locks.push_back(names_.object(lock));
  return fmt::format("{} held {}", names_.place(record.pc),
                     locks.empty() ? "nothing" : fmt::format("{}", fmt::join(locks, ", ")));
}

std::string RaceDetector::last_sync(const Record& record) const {
  const Context& context = state_.contexts[record.context];
  const std::string agent = names_.agent(state_.agents[record.agent()].id);
  if (context.sync == OpKind::None) return fmt::format("{} had not synchronised with anything.", agent);
  return fmt::format("The last synchronisation of {} before it was {} of {} at {}.", agent,
                     name(context.sync), names_.object(context.object), names_.place(context.pc));
}

Evidence RaceDetector::evidence(const Record& record, ObjectId object) const {
  return {record.step, state_.agents[record.agent()].id, record.pc,
          fmt::format("{} of {}", name(record.op()), names_.object(object))};
}

void RaceDetector::on_end(const Outcome&) {
  for (const RaceState::Race& race : state_.races) {
    Verdict verdict;
    verdict.kind = BugKind::DataRace;
    verdict.severity = Severity::Race;
    verdict.title = title(race.object, race.first, race.second);
    verdict.detail = fmt::format("Nothing orders these two accesses: {}; {}. {} {}", held(race.first),
                                 held(race.second), last_sync(race.first), last_sync(race.second));
    verdict.evidence = {evidence(race.first, race.object), evidence(race.second, race.object)};
    report(std::move(verdict));
  }
}

}  // namespace slalom
