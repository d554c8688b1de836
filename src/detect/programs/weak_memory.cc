#include "detect/programs/weak_memory.h"

#include <algorithm>

#include "base/hash.h"
#include "trace/memory_order.h"

namespace slalom {

void WeakMemoryState::clear() {
  agent_index.clear();
  agents.clear();
  clocks.clear();
  cells.clear();
  locations.resize(1);
  free_location = 0;
  meetings.clear();
  looked_at.clear();
  delays.clear();
}

uint32_t WeakMemoryDetector::index_of(AgentId agent) {
  uint32_t& known = state_.agent_index[agent.raw];
  if (known == 0) {
    const auto index = static_cast<uint32_t>(state_.agents.size());
    known = index + 1;
    ClockTable& clocks = state_.clocks;
    clocks.widen(index + 1);
    Agent added;
    added.id = agent;
    added.all = clocks.add_row();
    added.to_load = clocks.add_row();
    added.to_store = clocks.add_row();
    for (uint32_t& row : added.pending_rows) row = clocks.add_row();
    state_.agents.push_back(added);
  }
  return known - 1;
}

uint32_t WeakMemoryDetector::add_location(uint64_t cell, uint8_t bytes) {
  uint32_t index = state_.free_location;
  if (index != 0) {
    state_.free_location = state_.locations[index].next;
    const Location old = state_.locations[index];
    for (uint32_t row : {old.stored, old.loaded, old.kept_stored, old.kept_loaded})
      state_.clocks.copy(row, 0);
    state_.locations[index] = {};
    state_.locations[index].stored = old.stored;
    state_.locations[index].loaded = old.loaded;
    state_.locations[index].kept_stored = old.kept_stored;
    state_.locations[index].kept_loaded = old.kept_loaded;
  } else {
    index = static_cast<uint32_t>(state_.locations.size());
    Location& added = state_.locations.emplace_back();
    for (uint32_t* row : {&added.stored, &added.loaded, &added.kept_stored, &added.kept_loaded})
      *row = state_.clocks.add_row();
  }
  uint32_t& first = state_.cells[cell];
  state_.locations[index].bytes = bytes;
  state_.locations[index].next = first;
  first = index;
  return index;
}

// Forgets the accesses to an object: memory that is allocated again has nothing to do with its earlier use.
void WeakMemoryDetector::forget(ObjectId object, uint64_t size) {
  if (size == 0) return;
  const auto drop = [&](uint32_t& first) {
    while (first != 0) {
      Location& location = state_.locations[first];
      const uint32_t next = location.next;
      location.next = state_.free_location;
      location.loads = {};
      state_.free_location = first;
      first = next;
    }
  };
  const uint64_t begin = object.raw >> 3;
  const uint64_t count = ((object.raw & 7) + size + 7) >> 3;
  if (count > state_.cells.size()) {
    state_.cells.for_each([&](uint64_t cell, uint32_t& first) {
      if (cell - begin < count) drop(first);
    });
    return;
  }
  for (uint64_t i = 0; i < count; ++i)
    if (uint32_t* first = state_.cells.find(begin + i); first != nullptr) drop(*first);
}

// Calls `f` for each location of the bytes. Splits a location that lies in the bytes only partly.
template <typename F>
void WeakMemoryDetector::for_each_location(uint64_t address, uint64_t size, F&& f) {
  uint64_t offset = address & 7;
  uint64_t cell = address >> 3;
  for (uint64_t left = size; left != 0; offset = 0, ++cell) {
    const uint64_t count = std::min(left, 8 - offset);
    left -= count;
    auto bytes = static_cast<uint8_t>(((uint64_t{1} << count) - 1) << offset);
    for (uint32_t index = state_.cells[cell]; index != 0 && bytes != 0;
         index = state_.locations[index].next) {
      const uint8_t common = state_.locations[index].bytes & bytes;
      if (common == 0) continue;
      if (const auto rest = static_cast<uint8_t>(state_.locations[index].bytes & ~bytes); rest != 0) {
        const uint32_t other = add_location(cell, rest);
        Location& whole = state_.locations[index];
        Location& split = state_.locations[other];
        whole.bytes = common;
        split.stores = whole.stores;
        split.loads = whole.loads;
        state_.clocks.copy(split.stored, whole.stored);
        state_.clocks.copy(split.loaded, whole.loaded);
        state_.clocks.copy(split.kept_stored, whole.kept_stored);
        state_.clocks.copy(split.kept_loaded, whole.kept_loaded);
      }
      bytes &= static_cast<uint8_t>(~common);
      f(index);
    }
    if (bytes != 0) f(add_location(cell, bytes));
  }
}

void WeakMemoryDetector::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  const uint32_t agent = index_of(header.agent);
  for (const Access& one : accesses)
    if (is_memory(one.op())) access(one, Step{header.first_step.raw + one.retired}, agent);
}

void WeakMemoryDetector::access(const Access& access, Step step, uint32_t agent) {
  const OpKind op = access.op();
  const bool locked = op == OpKind::ReadModifyWrite || op == OpKind::CompareExchange;
  const bool loads = locked || op == OpKind::Load || op == OpKind::AtomicLoad;
  const bool stores = op == OpKind::CompareExchange ? access.wrote != 0 : locked || !loads;
  if (locked) fence(agent);
  const auto touch = [&] {
    const Agent& who = state_.agents[agent];
    return RecentAccess{agent, who.stores, who.fenced, op, access.pc(), step, access.address()};
  };
  const uint64_t address = access.address().raw;
  if (loads) for_each_location(address, access.size, [&](uint32_t index) { load(index, touch()); });
  if (stores) {
    ++state_.agents[agent].stores;
    for_each_location(address, access.size, [&](uint32_t index) { store(index, touch()); });
    note_pending(touch());
  }
  if (locked || (op == OpKind::AtomicStore && !is_weak(access))) fence(agent);
}

void WeakMemoryDetector::load(uint32_t index, const RecentAccess& touch) {
  ClockTable& clocks = state_.clocks;
  const Agent& agent = state_.agents[touch.agent];
  Location& location = state_.locations[index];
  judge(location, touch, agent.to_load);
  clocks.join(agent.all, location.stored);
  clocks.join(location.loaded, agent.all);
  // The agent may read its own last store from its buffer, which orders nothing for others.
  const RecentAccess& last = location.stores[0];
  if (last.op != OpKind::None && last.agent != touch.agent) clocks.join(agent.to_load, location.kept_stored);
  clocks.join(agent.to_store, agent.to_load);
  clocks.join(location.kept_loaded, agent.to_load);
  if (touch.stores == touch.fenced) return;
  auto& loads = location.loads;
  const auto same = std::find_if(loads.begin(), loads.end() - 1, [&](const RecentAccess& other) {
    return other.op == OpKind::None || (other.agent == touch.agent && other.pc == touch.pc);
  });
  std::move_backward(loads.begin(), same, same + 1);
  loads[0] = touch;
}

void WeakMemoryDetector::store(uint32_t index, const RecentAccess& touch) {
  ClockTable& clocks = state_.clocks;
  const Agent& agent = state_.agents[touch.agent];
  Location& location = state_.locations[index];
  judge(location, touch, agent.to_store);
  clocks.join(agent.all, location.stored);
  clocks.join(agent.all, location.loaded);
  clocks.join(agent.to_store, location.kept_stored);
  clocks.join(agent.to_store, location.kept_loaded);
  clocks.row(agent.all)[touch.agent] = touch.stores;
  clocks.row(agent.to_store)[touch.agent] = touch.stores;
  clocks.join(location.stored, agent.all);
  clocks.join(location.kept_stored, agent.to_store);
  std::move_backward(location.stores.begin(), location.stores.end() - 1, location.stores.end());
  location.stores[0] = touch;
}

void WeakMemoryDetector::note_pending(const RecentAccess& store) {
  Agent& agent = state_.agents[store.agent];
  const uint32_t slot = store.stores % WeakMemoryState::kPending;
  agent.pending[slot] = store;
  state_.clocks.copy(agent.pending_rows[slot], agent.to_store);
}

void WeakMemoryDetector::fence(uint32_t index) {
  Agent& agent = state_.agents[index];
  state_.clocks.join(agent.to_load, agent.to_store);
  agent.fenced = agent.stores;
}

void WeakMemoryDetector::meet(uint32_t index, ObjectId object) {
  ClockTable& clocks = state_.clocks;
  WeakMemoryState::Meeting& meeting = state_.meetings[object.raw];
  if (meeting.all == 0) {
    meeting.all = clocks.add_row();
    meeting.kept = clocks.add_row();
  }
  const Agent& agent = state_.agents[index];
  clocks.join(agent.all, meeting.all);
  clocks.join(agent.to_store, meeting.kept);
  fence(index);
  clocks.join(meeting.all, agent.all);
  clocks.join(meeting.kept, agent.to_store);
}

void WeakMemoryDetector::pass_on(uint32_t from, uint32_t to) {
  fence(from);
  const Agent& agent = state_.agents[from];
  const Agent& other = state_.agents[to];
  state_.clocks.join(other.all, agent.all);
  state_.clocks.join(other.to_load, agent.to_load);
  state_.clocks.join(other.to_store, agent.to_store);
}

void WeakMemoryDetector::on_event(const Event& event) {
  if (event.op == OpKind::Alloc) forget(event.object, static_cast<uint64_t>(event.value));
  if (!event.agent) return;
  const uint32_t agent = index_of(event.agent);
  switch (event.op) {
    case OpKind::Spawn:
    case OpKind::Wake:
      if (event.other) pass_on(agent, index_of(event.other));
      return;
    case OpKind::None:
    case OpKind::Yield:
    case OpKind::Choose:
    case OpKind::Alloc:
    case OpKind::Free:
    case OpKind::HeapUse:
    case OpKind::Note:
    case OpKind::Fail:
    case OpKind::GoOn:
    case OpKind::Console:
    case OpKind::Claim:
      return;
    default:
      return meet(agent, event.object);
  }
}

void WeakMemoryDetector::judge(const Location& location, const RecentAccess& touch, uint32_t kept_row) {
  const Agent& agent = state_.agents[touch.agent];
  const uint32_t* all = state_.clocks.row(agent.all);
  const uint32_t* kept = state_.clocks.row(kept_row);
  for (const RecentAccess& before : location.stores) {
    if (before.op == OpKind::None || before.agent == touch.agent) return;  // the agent sees its own store
    if (all[before.agent] < before.stores || kept[before.agent] >= before.stores) continue;
    uint8_t& known = state_.looked_at[combine(before.pc.raw, touch.pc.raw, before.op, touch.op)];
    if (known == 0) {
      known = 1;
      state_.delays.push_back(explain(before, touch));
    }
  }
}

// Finds the store that may be delayed past a load of the same agent, so that `after` comes before `before`.
WeakMemoryState::Delay WeakMemoryDetector::explain(const RecentAccess& before,
                                                   const RecentAccess& after) const {
  Delay delay{before, after, before, after, true};
  const Agent& agent = state_.agents[after.agent];
  const auto knows = [&](uint32_t row) { return state_.clocks.row(row)[before.agent] >= before.stores; };
  // Case 1: the access `after` itself overtakes the first of its agent's stores that comes after `before`.
  if (knows(agent.to_store)) {
    const uint32_t waiting = std::min(agent.stores - agent.fenced, WeakMemoryState::kPending);
    for (uint32_t number = agent.stores - waiting + 1; number <= agent.stores; ++number) {
      const uint32_t slot = number % WeakMemoryState::kPending;
      if (!knows(agent.pending_rows[slot])) continue;
      delay.store = agent.pending[slot];
      return delay;
    }
  }
  // Case 2: a load that read a value that another agent has changed since overtakes `before`.
  const RecentAccess* overtaking = nullptr;
  for (const Location& location : state_.locations)
    for (const RecentAccess& load : location.loads) {
      const bool overtakes = load.op != OpKind::None && load.agent == before.agent &&
                             load.stores >= before.stores && load.fenced < before.stores;
      const bool changed =
          std::any_of(location.stores.begin(), location.stores.end(), [&](const RecentAccess& s) {
            return s.op != OpKind::None && s.agent != load.agent && s.step > load.step;
          });
      if (overtakes && changed && (overtaking == nullptr || load.step < overtaking->step)) overtaking = &load;
    }
  if (overtaking != nullptr)
    delay.load = *overtaking;
  else
    delay.certain = false;
  return delay;
}

void WeakMemoryDetector::on_end(const Outcome&) {
  const auto evidence = [&](const RecentAccess& touch) {
    return Evidence{touch.step, state_.agents[touch.agent].id, touch.pc,
                    fmt::format("{} of {}", name(touch.op), names_.object(touch.object))};
  };
  const auto words = [&](const RecentAccess& touch) {
    return fmt::format("{} ({})", names_.place(touch.pc), name(touch.op));
  };
  for (const Delay& delay : state_.delays) {
    Verdict verdict;
    verdict.kind = BugKind::WeakMemory;
    verdict.severity = Severity::Race;
    if (delay.certain) {
      verdict.title =
          fmt::format("weak memory: {} may take effect after {}", words(delay.store), words(delay.load));
      verdict.detail = fmt::format(
          "Nothing between these two accesses of {} empties the processor's store buffer (a sequentially "
          "consistent store or fence would). So the {} at {} may come before the {} at {}, which no "
          "interleaving shows.",
          names_.agent(state_.agents[delay.store.agent].id), name(delay.after.op),
          names_.place(delay.after.pc), name(delay.before.op), names_.place(delay.before.pc));
      verdict.evidence = {evidence(delay.store), evidence(delay.load)};
      for (const RecentAccess* touch : {&delay.before, &delay.after})
        if (touch->step != delay.store.step && touch->step != delay.load.step)
          verdict.evidence.push_back(evidence(*touch));
    } else {
      verdict.title =
          fmt::format("weak memory: {} may come before {}", words(delay.after), words(delay.before));
      verdict.detail =
          "Somewhere between these two accesses a thread stores and then loads with nothing in between that "
          "empties the processor's store buffer. So they may come in the other order, which no interleaving "
          "shows.";
      verdict.evidence = {evidence(delay.before), evidence(delay.after)};
    }
    report(std::move(verdict));
  }
}

}  // namespace slalom
