#include "vm/replay/scheduled_run.h"

namespace slalom::vm {

ScheduledRun::ScheduledRun(KernelMachine& machine, const Course& course)
    : machine_(machine), course_(course) {
  using Kind = Course::Leg::Kind;
  for (size_t i = 0; i < course_.legs.size(); ++i)
    if (course_.legs[i].kind == Kind::Run || course_.legs[i].kind == Kind::Natural) end_ = i + 1;
  machine_.answer_hypercalls_only(false);
  pc().attach(nullptr);
  pc().set_places({});
  go_to_begin();
}

void ScheduledRun::go_to_begin() {
  pc().restore(machine_.begin());
  next_ = 0;
}

bool ScheduledRun::leads_to_the_same_end() {
  while (next_ < course_.legs.size())
    if (go(~uint64_t{0})) break;
  pc().devices().take_console_output();
  const bool same = pc().executed() == course_.end && pc().state_hash() == course_.end_hash;
  go_to_begin();
  return same;
}

PcStop ScheduledRun::forward(uint64_t instructions) {
  const uint64_t end = pc().executed() + instructions;
  while (pc().executed() < end) {
    if (next_ == end_) return PcStop::Exit;
    const auto stop = go(end - pc().executed());
    pc().devices().take_console_output();
    if (stop) return *stop;
  }
  return PcStop::Budget;
}

std::optional<unsigned> ScheduledRun::next_cpu() {
  using Kind = Course::Leg::Kind;
  for (; next_ < end_; go(0)) {
    const Course::Leg& leg = course_.legs[next_];
    if (leg.kind == Kind::Natural) return std::nullopt;
    if (leg.kind == Kind::Run && pc().cpu(leg.cpu).regs.retired < leg.value) return leg.cpu;
  }
  return std::nullopt;
}

uint64_t ScheduledRun::check_left() const {
  if (next_ == end_ || course_.legs[next_].kind != Course::Leg::Kind::Natural) return 0;
  return course_.legs[next_].value - std::min(course_.legs[next_].value, machine_.pc().executed());
}

// Continues the current leg, and moves on to the next one when it is finished. Returns a stop as forward()
// does.
std::optional<PcStop> ScheduledRun::go(uint64_t most) {
  const Course::Leg& leg = course_.legs[next_];
  using Kind = Course::Leg::Kind;
  Cpu& cpu = pc().cpu(leg.cpu);
  PcStop stop = PcStop::Budget;
  switch (leg.kind) {
    case Kind::Run: {
      const uint64_t left = leg.value > cpu.regs.retired ? leg.value - cpu.regs.retired : 0;
      if (cpu.regs.activity == Activity::Running)
        stop = pc().run_cpu(leg.cpu, {.instructions = std::min(left, most)});
      const bool waits = cpu.regs.activity != Activity::Running;
      if (waits || cpu.regs.retired >= leg.value) ++next_;
      break;
    }
    case Kind::Natural: {
      machine_.answer_hypercalls_only(true);
      const uint64_t left = leg.value > pc().executed() ? leg.value - pc().executed() : 0;
      stop = pc().run(std::min(left, most));
      machine_.answer_hypercalls_only(false);
      if (pc().executed() >= leg.value) ++next_;
      break;
    }
    case Kind::Deliver:
      pc().deliver(leg.cpu, static_cast<uint8_t>(leg.value));
      ++next_;
      break;
    case Kind::Timer:
      pc().skip_to_timer(leg.cpu);
      ++next_;
      break;
    case Kind::AnyTimer:
      pc().skip_to_timer();
      ++next_;
      break;
    case Kind::Answer:
      cpu.gpr(kRax) = leg.value;
      ++next_;
      break;
  }
  switch (stop) {
    case PcStop::Place:
    case PcStop::Access:
    case PcStop::PowerOff:
    case PcStop::Reset:
    case PcStop::Shutdown:
    case PcStop::Exit:
    case PcStop::Idle:
    case PcStop::Unknown:
      return stop;
    case PcStop::Budget:
    case PcStop::Halted:
    case PcStop::Paused:
    case PcStop::Event:
    case PcStop::Hypercall:
    case PcStop::Window:
      return std::nullopt;
  }
  return std::nullopt;
}

Pc::Checkpoint ScheduledRun::take() {
  const Pc::Checkpoint id = pc().take();
  next_at_[id] = next_;
  return id;
}

void ScheduledRun::restore(Pc::Checkpoint id) {
  pc().restore(id);
  next_ = next_at_.at(id);
}

void ScheduledRun::drop(Pc::Checkpoint id) {
  pc().drop(id);
  next_at_.erase(id);
}

}  // namespace slalom::vm
