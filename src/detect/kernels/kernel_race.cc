#include "detect/kernels/kernel_race.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/hash.h"
#include "detect/kernels/kernel_race_report.h"

namespace slalom {
namespace {

constexpr uint64_t kAhead = 24;  // cells to prefetch ahead in a long access
constexpr size_t kMostCpus = 128;
constexpr size_t kMostRaces = 4096;  // pairs of places and cells in one execution

constexpr uint8_t bits(uint64_t count) {
  return static_cast<uint8_t>((uint64_t{1} << count) - 1);
}

}  // namespace

void KernelRaceState::clear() {
  agent_index.clear();
  agents.clear();
  cpus.clear();
  clocks.clear();
  context.clear();
  running = other = 0;
  cells.clear();
  records.resize(1);
  free_record = 0;
  race_index.clear();
  races.clear();
}

uint8_t KernelRaceDetector::cpu_of(AgentId id) {
  while (id.parent()) id = id.parent();
  for (size_t i = 0; i < state_.cpus.size(); ++i)
    if (state_.cpus[i].id == id) return static_cast<uint8_t>(i);
  const auto index = static_cast<uint32_t>(state_.cpus.size());
  CHECK(index < kMostCpus, "more CPUs than a Record can tell apart");
  state_.clocks.widen(index + 1);
  Cpu added;
  added.id = id;
  added.clock = state_.clocks.add_row();
  // 0 is what other CPUs know of a CPU before they synchronise with it.
  state_.clocks.row(added.clock)[index] = 1;
  state_.cpus.push_back(added);
  return static_cast<uint8_t>(index);
}

uint32_t KernelRaceDetector::agent_of(AgentId id) {
  uint32_t& known = state_.agent_index[id.raw];
  if (known == 0) {
    CHECK(state_.agents.size() <= std::numeric_limits<uint16_t>::max(), "more agents than a Record can name");
    state_.agents.push_back({id, cpu_of(id)});
    known = static_cast<uint32_t>(state_.agents.size());
  }
  return known - 1;
}

// Inlined, and records are passed by value, so that they stay in registers. Reading a record in larger words
// than it was written in stalls the processor (see RaceDetector::touch).
[[gnu::always_inline]] inline void KernelRaceDetector::touch(Cell& cell, uint64_t key, const uint32_t* now,
                                                             Record record) {
  uint32_t place = 0;  // a dropped record that the new one replaces
  for (uint32_t* link = &cell.first; *link != 0;) {
    const uint32_t index = *link;
    Record& old = state_.records[index];
    if ((old.bytes() & record.bytes()) != 0) {
      if (old.clock() > now[old.cpu()]) {
        if (old.writes() || record.writes()) [[unlikely]]
          found(key, old, record);
      } else if (record.writes() || !old.writes()) {
        // An access that races with the old one in these bytes races with the new one too.
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
  uint32_t next = cell.first;
  if (place != 0) {
    next = state_.records[place].next;
  } else if (state_.free_record != 0) {
    cell.first = place = state_.free_record;
    state_.free_record = state_.records[place].next;
  } else {
    cell.first = place = static_cast<uint32_t>(state_.records.size());
    state_.records.emplace_back();
  }
  Record& slot = state_.records[place];
  slot.what = record.what;
  slot.pc = record.pc;
  slot.step = record.step;
  slot.value = record.value;
  slot.address = record.address;
  slot.where = record.where;
  slot.size = record.size;
  slot.next = next;
}

// Handles `bytes` of one cell. The record's `what` lacks these bytes and the clock.
[[gnu::always_inline]] inline void KernelRaceDetector::touch_cell(uint64_t key, uint8_t bytes, uint8_t index,
                                                                  bool locked, Record record) {
  const Cpu& cpu = state_.cpus[index];
  Cell& cell = state_.cells[key];
  if (locked) cell.sync |= bytes;
  if ((cell.sync & bytes) != 0) [[unlikely]] {
    if (locked || !record.writes()) acquire(cpu, cell.clock);
    if (record.writes()) {
      if (cell.clock == 0) cell.clock = state_.clocks.add_row();
      release(index, cell.clock);
    }
  }
  const uint8_t plain = bytes & ~cell.sync;
  if (plain == 0) return;
  const uint32_t* now = state_.clocks.row(cpu.clock);
  record.what |= uint64_t{now[index]} << 32 | plain;
  if (cell.owner != index + 1) {
    cell.owner = cell.owner == 0 ? static_cast<uint8_t>(index + 1) : Cell::kShared;
  } else if (Record& front = state_.records[cell.first];
             front.bytes() == plain && (record.writes() ? front.next == 0 : !front.writes())) {
    // Fast path: one CPU owns most memory, and mostly repeats the same kind of access. It does what touch()
    // would do: nothing here is concurrent, and other records that a read overlaps were dropped when the
    // front one came.
    record.next = front.next;
    front = record;
    return;
  }
  touch(cell, key, now, record);
}

// Handles an access to more than one cell.
[[gnu::noinline]] void KernelRaceDetector::access_cells(const Access& access, uint8_t index, bool locked,
                                                        const Record& record) {
  const uint64_t offset = access.physical & 7;
  uint64_t key = access.physical >> 3;
  uint64_t left = offset + access.size;  // from the first cell's start
  for (uint64_t begin = offset; left != 0; begin = 0, ++key) {
    const uint64_t end = std::min<uint64_t>(left, 8);
    state_.cells.prefetch(key + kAhead);
    touch_cell(key, bits(end) & static_cast<uint8_t>(0xff << begin), index, locked, record);
    left -= end;
  }
}

[[gnu::always_inline]] inline void KernelRaceDetector::access(const Access& access, uint64_t step,
                                                              uint32_t agent, uint8_t index,
                                                              KernelContext::Where where) {
  const bool locked = is_atomic(access.op());
  const bool writes = access.wrote != 0 || access.op() == OpKind::Store;
  const uint64_t offset = access.physical & 7;
  const auto record = [&] {
    return Record{Record::pack(writes, index, agent, 0),
                  access.pc(),
                  Step{step},
                  access.value,
                  access.address(),
                  where,
                  static_cast<uint32_t>(access.size),
                  0};
  };
  if (offset + access.size <= 8) [[likely]]
    return touch_cell(access.physical >> 3, static_cast<uint8_t>(bits(access.size) << offset), index, locked,
                      record());
  access_cells(access, index, locked, record());
}

void KernelRaceDetector::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  if (accesses.empty() || !header.agent) return;
  const uint32_t agent = agent_of(header.agent);
  const uint8_t cpu = state_.agents[agent].cpu;
  if (state_.running != cpu) state_.other = std::exchange(state_.running, cpu);
  KernelContext::Where where = state_.context.where(header.agent);
  batch_ = accesses;
  first_step_ = header.first_step;
  for (const Access& one : accesses) {
    // Memory that no other context touches cannot race, and orders nothing.
    if (one.is_private) continue;
    if (!is_memory(one.op())) {
      where = state_.context.on_transfer(header.agent, one);
      continue;
    }
    current_ = &one;
    access(one, header.first_step.raw + one.retired, agent, cpu, where);
  }
  state_.cpus[cpu].latest = latest_at(state_.cpus[cpu], accesses.size());
}

// Returns the state of a CPU whose latest accesses are the first `count` of this batch.
KernelRaceState::Latest KernelRaceDetector::latest_at(const Cpu& cpu, size_t count) const {
  uint64_t now = 0;
  while (count > 0) {
    const Access& one = batch_[--count];
    const uint64_t made = first_step_.raw + one.retired + 1;
    if (!is_memory(one.op()) || made == now) continue;
    if (now != 0) return {now, made};
    now = made;
  }
  if (now == 0 || now == cpu.latest.now) return cpu.latest;
  return {now, cpu.latest.now};
}

void KernelRaceDetector::acquire(const Cpu& cpu, uint32_t row) {
  if (row != 0) state_.clocks.join(cpu.clock, row);
}

void KernelRaceDetector::release(uint8_t cpu, uint32_t row) {
  const uint32_t own = state_.cpus[cpu].clock;
  state_.clocks.join(row, own);
  uint32_t& clock = state_.clocks.row(own)[cpu];
  CHECK(clock < std::numeric_limits<uint32_t>::max(), "a clock of the race detector ran over");
  ++clock;
}

void KernelRaceDetector::on_event(const Event& event) {
  state_.context.on_event(event);
  if (event.op != OpKind::IrqEnter || !event.agent) return;
  // The event names the CPU. The id of an interrupt context does not always name it.
  const uint8_t cpu = cpu_of(AgentId::initial(static_cast<uint32_t>(event.object.raw)));
  state_.agents[agent_of(event.agent)].cpu = cpu;
  if (event.value < kFirstIpiVector || state_.cpus.size() < 2) return;
  const uint8_t sender = state_.running != cpu ? state_.running : state_.other;
  if (sender != cpu) release(sender, state_.cpus[cpu].clock);
}

void KernelRaceDetector::found(uint64_t key, Record first, Record second) {
  const auto [low, high] = std::minmax(first.pc.raw, second.pc.raw);
  uint32_t& known = state_.race_index[combine(low, high, key)];
  if (known == 0) {
    if (state_.races.size() >= kMostRaces) return;
    state_.races.push_back({key, first, second, 0, false});
    known = static_cast<uint32_t>(state_.races.size());
  }
  KernelRaceState::Race& race = state_.races[known - 1];
  race.bytes |= first.bytes() & second.bytes();
  if (race.simultaneous) return;
  const auto made = static_cast<size_t>(current_ - batch_.data()) + 1;
  if (first.step.raw + 1 > latest_at(state_.cpus[second.cpu()], made).before) {
    race.first = first;  // the pair to show
    race.second = second;
    race.simultaneous = true;
  }
}

std::vector<KernelRaceState::Race> KernelRaceDetector::races() const {
  std::vector<KernelRaceState::Race> result;
  for (const KernelRaceState::Race& race : state_.races) {
    const Cell* cell = state_.cells.find(race.cell);
    const bool wanted = mode_ == KernelRaceOptions::Mode::HappensBefore || race.simultaneous;
    if (wanted && cell != nullptr && (race.bytes & ~cell->sync) != 0) result.push_back(race);
  }
  return result;
}

void KernelRaceDetector::on_end(const Outcome&) {
  for (Verdict& verdict : race_reports(races(), state_, names_, internals_)) report(std::move(verdict));
}

}  // namespace slalom
