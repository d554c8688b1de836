#include "vm/gdb/debugger.h"

#include <algorithm>

namespace slalom::vm {
namespace {

// Single steps between two calls of DebuggerOptions::between.
constexpr unsigned kStepsAtOnce = 10'000;
// Distances of checkpoints before a position that was reached by going back. They make the next step back
// short.
constexpr uint64_t kApproaches[] = {1'000'000, 30'000, 1'000};

}  // namespace

Debugger::Debugger(Execution& execution, DebuggerOptions options)
    : execution_(execution),
      options_(std::move(options)),
      history_(execution, options_.most_checkpoints),
      tap_(*this, {.rings = 0xf, .accesses = false, .events = false}),
      position_{.executed = pc().executed(), .delivered = false} {
  pc().attach(&tap_);
  history_.begin(position_);
}

Debugger::~Debugger() {
  pc().attach(nullptr);
  pc().set_places({});
}

void Debugger::apply() {
  bool grown = false;
  // Hooks of removed breakpoints stay, because gdb removes and sets its breakpoints at every stop.
  for (const uint64_t address : breakpoints)
    grown |= hooked_.insert(static_cast<uint16_t>(address % kPageSize)).second;
  const std::vector<Watchpoint> watched(watchpoints.begin(), watchpoints.end());
  if (!grown && watched == watched_) return;
  watched_ = watched;
  tap_.watches.clear();
  for (const Watchpoint& one : watched_)
    tap_.watches.push_back({.first = one.first,
                            .last = one.last,
                            .reads = one.kind != Watchpoint::Kind::Write,
                            .writes = one.kind != Watchpoint::Kind::Read,
                            .after = true});
  pc().set_places({.where = Places::Where::Listed, .listed = {}, .page_offsets = hooked_});
  pc().attach(&tap_);
}

uint64_t Debugger::address_of(unsigned id) {
  const Cpu& cpu = pc().cpu(id);
  const uint64_t rip = cpu.regs.gpr[kRip];
  return cpu.mode.is_long() ? rip : static_cast<uint32_t>(cpu.regs.segments[kCs].base + rip);
}

DebugStop Debugger::watch_stop() {
  const unsigned cpu = pc().current();
  const AccessHit& hit = pc().cpu(cpu).hit;
  CHECK(hit.watch < watched_.size(), "watchpoint {} of {}", hit.watch, watched_.size());
  const Watchpoint& watch = watched_[hit.watch];
  return {.kind = DebugStop::Kind::Watch,
          .cpu = cpu,
          .watch = watch,
          .address = std::max(hit.address, watch.first)};
}

std::optional<DebugStop> Debugger::advance_to(uint64_t executed) {
  while (position_.executed < executed) {
    if (ended_) return DebugStop{.kind = DebugStop::Kind::End, .cpu = pc().current(), .why = *ended_};
    const HistoryPoint from = position_;
    const PcStop stop = execution_.forward(executed - from.executed);
    position_ = {.executed = pc().executed(), .delivered = stop == PcStop::Place};
    switch (stop) {
      case PcStop::Place: {
        if (position_ == from) break;  // it already stood there
        const unsigned cpu = pc().current();
        if (!breakpoints.contains(address_of(cpu))) break;
        return DebugStop{.kind = DebugStop::Kind::Break, .cpu = cpu};
      }
      case PcStop::Access:
        return watch_stop();
      case PcStop::PowerOff:
      case PcStop::Reset:
      case PcStop::Shutdown:
      case PcStop::Exit:
      case PcStop::Idle:
      case PcStop::Unknown:
        ended_ = stop;
        break;
      case PcStop::Budget:
      case PcStop::Halted:
      case PcStop::Paused:
      case PcStop::Event:
      case PcStop::Hypercall:
      case PcStop::Window:
        break;
    }
  }
  return std::nullopt;
}

void Debugger::checkpoint_if_due() {
  if (position_.executed - history_.latest(position_).executed >= options_.checkpoint_every)
    history_.add(position_);
}

DebugStop Debugger::step(unsigned cpu) {
  apply();
  const uint64_t before = retired(cpu);
  for (unsigned steps = 1;; ++steps) {
    if (const auto stop = advance_to(position_.executed + 1)) return *stop;
    checkpoint_if_due();
    if (retired(cpu) != before) return {.kind = DebugStop::Kind::Step, .cpu = cpu};
    // Other CPUs have their turns first.
    if (steps % kStepsAtOnce == 0 && options_.between())
      return {.kind = DebugStop::Kind::Interrupted, .cpu = pc().current()};
  }
}

DebugStop Debugger::go() {
  apply();
  while (true) {
    const uint64_t due = history_.latest(position_).executed + options_.checkpoint_every;
    const uint64_t end = position_.executed + options_.slice;
    if (const auto stop = advance_to(due > position_.executed ? std::min(due, end) : end)) return *stop;
    checkpoint_if_due();
    if (options_.between()) return {.kind = DebugStop::Kind::Interrupted, .cpu = pc().current()};
  }
}

void Debugger::restore(HistoryPoint checkpoint) {
  history_.restore(checkpoint);
  position_ = checkpoint;
  ended_.reset();
}

void Debugger::run_over_to(uint64_t executed) {
  while (position_.executed < executed) {
    const auto stop = advance_to(executed);
    CHECK(!stop || stop->kind != DebugStop::Kind::End, "the past ended at instruction {}, before {}",
          position_.executed, executed);
  }
}

void Debugger::go_to(HistoryPoint place) {
  restore(history_.latest(place));
  for (const uint64_t approach : kApproaches) {
    if (place.executed < approach || place.executed - approach <= position_.executed) continue;
    run_over_to(place.executed - approach);
    history_.add(position_);
  }
  run_over_to(place.executed);
  if (place.delivered && !position_.delivered) {
    const PcStop stop = execution_.forward(1);
    CHECK(stop == PcStop::Place && pc().executed() == place.executed,
          "the machine did not come to instruction {} again", place.executed);
    position_ = place;
  }
}

void Debugger::go_to(uint64_t executed) {
  if (executed == history_.first().executed)
    restore(history_.first());
  else
    go_to(HistoryPoint{.executed = executed, .delivered = false});
}

bool Debugger::last_hit_before(HistoryPoint end, std::optional<Hit>& last) {
  while (position_.executed < end.executed) {
    const auto stop = advance_to(std::min(end.executed, position_.executed + options_.slice));
    if (stop && stop->kind == DebugStop::Kind::End) break;
    if (stop) {
      HistoryPoint at = position_;
      if (stop->kind == DebugStop::Kind::Watch) at.executed -= 1;
      last = Hit{.position = at, .stop = *stop};
    } else if (position_ < end && options_.between()) {
      return true;
    }
  }
  return false;
}

DebugStop Debugger::go_back() {
  apply();
  const HistoryPoint start = position_;
  for (HistoryPoint end = start; end > history_.first();) {
    // Strictly before `end`, which has been searched already.
    const HistoryPoint from = history_.latest(end.delivered ? HistoryPoint{end.executed, false}
                                                            : HistoryPoint{end.executed - 1, true});
    restore(from);
    std::optional<Hit> last;
    if (last_hit_before(end, last)) {
      go_to(start);
      return {.kind = DebugStop::Kind::Interrupted, .cpu = pc().current()};
    }
    if (last) {
      go_to(last->position);
      return last->stop;
    }
    end = from;
  }
  restore(history_.first());
  return {.kind = DebugStop::Kind::Begin, .cpu = pc().current()};
}

DebugStop Debugger::step_back(unsigned cpu) {
  apply();
  const uint64_t now = retired(cpu);
  const uint64_t first = history_.first().executed;
  // At `lower` the CPU has not yet executed its last instruction, at `upper` it has.
  uint64_t upper = position_.executed, lower = upper;
  for (uint64_t distance = 1; lower > first; distance *= 8) {
    lower = upper - first > distance ? upper - distance : first;
    go_to(lower);
    if (retired(cpu) < now) break;
    upper = lower;
  }
  if (retired(cpu) == now) {
    restore(history_.first());
    return {.kind = DebugStop::Kind::Begin, .cpu = cpu};
  }
  while (upper - lower > 1) {
    const uint64_t middle = lower + (upper - lower) / 2;
    go_to(middle);
    (retired(cpu) < now ? lower : upper) = middle;
  }
  if (position_ != HistoryPoint{lower, false}) go_to(lower);
  return {.kind = DebugStop::Kind::Step, .cpu = cpu};
}

DebugStop Debugger::seek(uint64_t executed) {
  apply();
  if (executed < history_.first().executed) {
    restore(history_.first());
    return {.kind = DebugStop::Kind::Begin, .cpu = pc().current()};
  }
  if (executed <= position_.executed)
    go_to(executed);
  else if (const auto stop = advance_to(executed))
    return *stop;
  return {.kind = DebugStop::Kind::Step, .cpu = pc().current()};
}

void Debugger::changed() {
  ended_.reset();
  execution_.fork();
  history_.begin(position_);
}

}  // namespace slalom::vm
