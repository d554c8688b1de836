#include "vm/pc/pc.h"

#include <algorithm>

#include "base/hash.h"
#include "vm/cpu/blocks.h"
#include "vm/cpu/descriptor.h"
#include "vm/cpu/memory/mmu.h"
#include "vm/cpu/observe/backtrace.h"

namespace slalom::vm {
namespace {

// A turn is short, so that a CPU which waits for another one in a loop does not wait long, but long enough
// that changing turns costs nothing. A fixed length could stay in step with a loop of the guest: the other
// CPU would then find a lock taken at each of its turns.
uint32_t turn_length(uint64_t executed) {
  constexpr uint32_t kShortest = 10'000, kSpread = 20'000;
  return kShortest + static_cast<uint32_t>(mix(executed) % kSpread);
}

Segment flat(uint16_t selector, bool code, bool is_long) {
  return {.selector = selector,
          .attributes = static_cast<uint16_t>((code ? 0x9b : 0x93) | 0x800 | (is_long ? 0x200 : 0x400)),
          .limit = 0xffffffff};
}

}  // namespace

Result<std::unique_ptr<Pc>> Pc::make(const PcOptions& options) {
  if (options.cpus < 1 || options.cpus > 8) return error("a machine has 1 to 8 CPUs, not {}", options.cpus);
  TRY_ASSIGN(std::unique_ptr<Ram> ram, Ram::make(options.memory));
  return std::unique_ptr<Pc>(new Pc(options, std::move(ram)));
}

Pc::Pc(const PcOptions& options, std::unique_ptr<Ram> ram)
    : ram_(std::move(ram)),
      devices_(Devices::Options{.cpus = options.cpus,
                                .rtc_start_unix_seconds = options.start_seconds,
                                .memory_size = options.memory}),
      system_(*ram_, *this) {
  for (unsigned i = 0; i < options.cpus; ++i) system_.cpus.push_back(std::make_unique<Cpu>(system_, i));
  for (const auto& cpu : system_.cpus) cpu->reset(true);
  begin_turn(0);
}

Pc::~Pc() = default;

void Pc::enter(const EntryState& entry) {
  Cpu& cpu = *system_.cpus[0];
  Registers& r = cpu.regs;
  const bool is_long = entry.mode == EntryState::Mode::Long64;
  r.cr0 = cr0::kPe | cr0::kEt | cr0::kNe | (is_long ? cr0::kPg | cr0::kWp : 0);
  if (is_long) {
    r.cr3 = entry.cr3;
    r.cr4 = cr4::kPae;
    r.efer = efer::kLme | efer::kLma;
  }
  r.gdtr = {.base = entry.gdt_base, .limit = entry.gdt_limit};
  for (SegmentName name : {kEs, kSs, kDs, kFs, kGs})
    r.segments[name] = flat(entry.data_selector, false, false);
  r.segments[kCs] = flat(entry.code_selector, true, is_long);
  r.gpr.fill(0);
  r.gpr[kRip] = entry.rip;
  r.gpr[kRsp] = entry.rsp;
  r.gpr[kRax] = entry.rax;
  r.gpr[kRbx] = entry.rbx;
  r.gpr[kRsi] = entry.rsi;
  r.activity = Activity::Running;
  cpu.set_rflags(flag::kFixed);
  cpu.set_cpl(0);
  cpu.forget_translations();
  cpu.registers_changed();
}

uint64_t Pc::now() const {
  // executed() already counts the instruction that asks.
  const uint64_t done = running_ == nullptr ? 0 : running_->executed() - 1;
  return state_.time + done * kNanosecondsPerInstruction;
}

bool Pc::in(unsigned cpu, uint16_t port, unsigned size, uint32_t& value) {
  return devices_.in(now(), cpu, port, size, value);
}
bool Pc::out(unsigned cpu, uint16_t port, unsigned size, uint32_t value) {
  system_.cpus[cpu]->pending_changed = true;
  const bool known = devices_.out(now(), cpu, port, size, value);
  if (const auto event = devices_.take_power_event()) power_ = event;
  return known;
}
bool Pc::is_device(Physical address) const {
  return devices_.is_mmio(address);
}
bool Pc::read(unsigned cpu, Physical address, unsigned size, uint64_t& value) {
  return devices_.mmio_read(now(), cpu, address, size, value);
}
bool Pc::write(unsigned cpu, Physical address, unsigned size, uint64_t value) {
  system_.cpus[cpu]->pending_changed = true;
  return devices_.mmio_write(now(), cpu, address, size, value);
}

void Pc::set_task_priority(unsigned cpu, uint8_t value) {
  system_.cpus[cpu]->pending_changed = true;
  devices_.set_task_priority(cpu, value);
}

bool Pc::attention(unsigned cpu, bool interrupts_enabled) const {
  return (interrupts_enabled && devices_.interrupt_pending(cpu)) ||
         (devices_.nmi_pending(cpu) && !system_.cpus[cpu]->regs.nmi_blocked) ||
         devices_.signal_pending(cpu) || devices_.next_deadline() < planned_ || power_.has_value() ||
         (others_deliverable_ && others_deliverable(cpu) != *others_deliverable_);
}

bool Pc::runnable(unsigned id) const {
  const Registers& r = system_.cpus[id]->regs;
  if (r.activity == Activity::Running) return true;
  if (r.activity != Activity::Halted) return false;
  return ((r.rflags & flag::kInterrupt) && devices_.interrupt_pending(id)) ||
         (devices_.nmi_pending(id) && !r.nmi_blocked);
}

void Pc::park(unsigned cpu, bool parked) {
  state_.parked = parked ? state_.parked | 1u << cpu : state_.parked & ~(1u << cpu);
}

void Pc::begin_turn(unsigned cpu) {
  state_.current = cpu;
  state_.quantum = turn_length(state_.executed);
}

bool Pc::next_turn() {
  const unsigned count = cpu_count();
  for (unsigned step = 1; step <= count; ++step) {
    const unsigned candidate = (state_.current + step) % count;
    if (parked(candidate) || !runnable(candidate)) continue;
    begin_turn(candidate);
    return true;
  }
  return false;
}

void Pc::take_signals() {
  for (const auto& cpu : system_.cpus) {
    while (devices_.signal_pending(cpu->id)) {
      const CpuSignal signal = devices_.take_signal(cpu->id);
      if (signal.kind == CpuSignal::Kind::Init) cpu->reset(false);
      if (signal.kind == CpuSignal::Kind::Startup) cpu->start_at(signal.vector);
    }
  }
}

void Pc::deliver_interrupts(Cpu& cpu) {
  Registers& r = cpu.regs;
  if (r.interrupt_shadow) return;
  uint8_t vector;
  if (devices_.nmi_pending(cpu.id) && !r.nmi_blocked) {
    devices_.take_nmi(cpu.id);
    r.nmi_blocked = true;
    vector = kNmi;
  } else if ((r.rflags & flag::kInterrupt) && devices_.interrupt_pending(cpu.id)) {
    const auto acknowledged = devices_.acknowledge(cpu.id);
    if (!acknowledged) return;
    vector = *acknowledged;
  } else {
    return;
  }
  enter_interrupt(cpu, vector);
}

bool Pc::enter_interrupt(Cpu& cpu, uint8_t vector) {
  const uint64_t from = cpu.gpr(kRip);
  cpu.regs.activity = Activity::Running;
  cpu.leave = Leave::Block;
  cpu.moved();
  if (cpu.tap != nullptr) cpu.tap->base_step = state_.executed - cpu.executed();
  if (cpu.interrupt(vector, false, false, 0, from))
    cpu.tell({.kind = CpuEvent::Kind::Interrupt, .pc = from, .number = vector});
  else if (cpu.leave == Leave::Fault)
    cpu.deliver_fault();
  cpu.settle();
  return true;
}

bool Pc::can_deliver(unsigned id) const {
  const Registers& r = system_.cpus[id]->regs;
  return !r.interrupt_shadow && (((r.rflags & flag::kInterrupt) && devices_.interrupt_pending(id)) ||
                                 (devices_.nmi_pending(id) && !r.nmi_blocked));
}

std::optional<uint8_t> Pc::next_vector(unsigned id) const {
  const std::optional<PendingInterrupt> next = devices_.next_interrupt(id);
  return next ? std::optional(next->vector) : std::nullopt;
}

uint32_t Pc::others_deliverable(unsigned id) const {
  uint32_t all = 0;
  for (unsigned cpu = 0; cpu < cpu_count(); ++cpu)
    if (cpu != id) all |= static_cast<uint32_t>(can_deliver(cpu)) << cpu;
  return all;
}

bool Pc::deliver(unsigned id) {
  if (!can_deliver(id)) return false;
  deliver_interrupts(*system_.cpus[id]);
  return true;
}

bool Pc::deliver(unsigned id, uint8_t vector) {
  Cpu& cpu = *system_.cpus[id];
  if (vector == kNmi) {
    if (!devices_.nmi_pending(id) || cpu.regs.nmi_blocked) return false;
    return deliver(id);
  }
  if (!can_deliver(id) || !(cpu.regs.rflags & flag::kInterrupt)) return false;
  if (!devices_.acknowledge(id, vector)) return false;
  return enter_interrupt(cpu, vector);
}

bool Pc::skip_to_timer() {
  const uint64_t deadline = devices_.next_deadline();
  if (deadline == ~uint64_t{0}) return false;
  state_.time = std::max(state_.time, deadline);
  devices_.advance(state_.time);
  return true;
}

std::optional<uint8_t> Pc::early_timer(unsigned id) const {
  const Registers& r = system_.cpus[id]->regs;
  const LocalApic& apic = devices_.local_apic(id);
  const uint8_t vector = apic.lvt_vector(LocalApic::kTimer);
  if (apic.deadline() == ~uint64_t{0} || apic.is_requested(vector) || !apic.outranks(vector) ||
      r.interrupt_shadow || !(r.rflags & flag::kInterrupt) || !apic.accepts_interrupts())
    return std::nullopt;
  return vector;
}

bool Pc::timer_requested(unsigned id) const {
  const LocalApic& apic = devices_.local_apic(id);
  return apic.is_requested(apic.lvt_vector(LocalApic::kTimer));
}

void Pc::skip_to_timer(unsigned id) {
  state_.time = std::max(state_.time, devices_.local_apic(id).deadline());
  devices_.advance(state_.time);
}

void Pc::attach(Tap* tap) {
  if (system_.tap != nullptr) system_.tap->flush();
  system_.tap = tap;
  for (const auto& cpu : system_.cpus) cpu->attach(tap);
  system_.blocks->drop_observed(system_);
}

void Pc::set_caching(bool caching) {
  system_.caching = caching;
  forget_all(system_);
}

void Pc::set_places(Places places) {
  const bool all = places.where != system_.places.where || places.page_offsets != system_.places.page_offsets;
  std::vector<Physical> changed;
  std::ranges::set_symmetric_difference(places.listed, system_.places.listed, std::back_inserter(changed));
  system_.places = std::move(places);
  if (all)
    system_.blocks->drop_observed(system_);
  else
    for (const Physical place : changed) system_.blocks->drop_observed_at(system_, place);
}

PcStop Pc::stop_for_power() {
  const PowerEvent event = *power_;
  power_.reset();
  exit_code_ = static_cast<int>(event.code);
  if (event.kind == PowerEvent::Kind::PowerOff) return PcStop::PowerOff;
  return event.kind == PowerEvent::Kind::Exit ? PcStop::Exit : PcStop::Reset;
}

PcStop Pc::stop_for_shutdown(Cpu& cpu) {
  trouble_ = describe_shutdown(cpu) + describe_place(cpu);
  return PcStop::Shutdown;
}

const Cpu* Pc::gave_up() const {
  for (const auto& cpu : system_.cpus)
    if (cpu->regs.activity == Activity::Shutdown) return cpu.get();
  return nullptr;
}

PcStop Pc::run(uint64_t instructions) {
  const uint64_t target = state_.executed + instructions;
  while (state_.executed < target) {
    if (devices_.next_deadline() <= state_.time) devices_.advance(state_.time);
    take_signals();
    if (power_) return stop_for_power();
    if ((state_.quantum == 0 || parked(state_.current) || !runnable(state_.current)) && !next_turn()) {
      const uint64_t deadline = devices_.next_deadline();
      if (deadline == ~uint64_t{0}) return PcStop::Idle;
      state_.time = std::max(state_.time, deadline);
      continue;
    }
    Cpu& cpu = *system_.cpus[state_.current];
    deliver_interrupts(cpu);
    if (cpu.regs.activity == Activity::Shutdown) return stop_for_shutdown(cpu);
    if (cpu.leave == Leave::Unknown) {
      trouble_ = describe_trouble(cpu);
      return PcStop::Unknown;
    }

    const uint64_t budget = std::min<uint64_t>(state_.quantum, target - state_.executed);
    const Exit exit = run_slice(cpu, budget);
    state_.quantum -= static_cast<uint32_t>(std::min<uint64_t>(cpu.executed(), state_.quantum));
    if (exit == Exit::Paused || cpu.ends_turn) state_.quantum = 0;
    if (const auto stop = stop_for(cpu, exit)) {
      if (system_.tap != nullptr) system_.tap->flush();
      return *stop;
    }
  }
  if (system_.tap != nullptr) system_.tap->flush();
  return power_ ? stop_for_power() : PcStop::Budget;
}

Exit Pc::run_slice(Cpu& cpu, uint64_t instructions) {
  instructions = std::min(instructions, uint64_t{1} << 40);  // a CPU counts in signed numbers
  planned_ = devices_.next_deadline();
  if (planned_ != ~uint64_t{0})
    instructions = std::min(
        instructions, (planned_ - state_.time + kNanosecondsPerInstruction - 1) / kNanosecondsPerInstruction);
  running_ = &cpu;
  if (system_.tap != nullptr) system_.tap->base_step = state_.executed;
  const Exit exit = cpu.run(instructions);
  running_ = nullptr;
  state_.executed += cpu.executed();
  state_.time += cpu.executed() * kNanosecondsPerInstruction;
  return exit;
}

// The reasons that end any kind of run.
std::optional<PcStop> Pc::stop_for(Cpu& cpu, Exit exit) {
  if ((cpu.happened & Cpu::kHypercall) && (hypercalls_ == nullptr || hypercalls_->on_hypercall(cpu)))
    cpu.happened &= static_cast<uint8_t>(~Cpu::kHypercall);
  const bool asked = (cpu.happened & Cpu::kHypercall) != 0;
  if (!asked && exit != Exit::Shutdown && exit != Exit::Unknown && exit != Exit::Place &&
      exit != Exit::Access)
    return std::nullopt;
  if (exit == Exit::Shutdown) return stop_for_shutdown(cpu);
  if (exit == Exit::Unknown) {
    trouble_ = describe_trouble(cpu);
    return PcStop::Unknown;
  }
  return asked ? PcStop::Hypercall : exit == Exit::Place ? PcStop::Place : PcStop::Access;
}

PcStop Pc::run_cpu(unsigned id, const RunOptions& options) {
  Cpu& cpu = *system_.cpus[id];
  CHECK(cpu.regs.activity == Activity::Running, "CPU {} cannot run", id);
  if (state_.current != id) begin_turn(id);
  const uint64_t target =
      options.instructions > ~state_.executed ? ~uint64_t{0} : state_.executed + options.instructions;
  cpu.passes = options.passes;
  cpu.pending = options.pending;
  // Including the place at which the CPU stands.
  const uint64_t places = options.passes + (cpu.at_place ? 1 : 0);
  if (options.stop_at_window) others_deliverable_ = others_deliverable(id);
  cpu.stop_on = options.stop_on | Cpu::kHypercall;
  PcStop why = PcStop::Budget;
  // Set if an interrupt may have become deliverable to this CPU. That must depend only on what the CPU and
  // the devices do, not on where a run began, because a replay begins runs elsewhere. Deliverability to other
  // CPUs is changed only by this CPU or by time, and noticed at once.
  bool window_possible = false;
  while (true) {
    if (devices_.next_deadline() <= state_.time) {
      devices_.advance(state_.time);
      window_possible = cpu.pending_changed = true;
    }
    take_signals();
    if (power_) {
      why = stop_for_power();
      break;
    }
    if (others_deliverable_ && ((window_possible && can_deliver(id) && next_vector(id) != options.offered) ||
                                others_deliverable(id) != *others_deliverable_)) {
      why = PcStop::Window;
      break;
    }
    if (state_.executed >= target) break;
    const bool shadow = cpu.regs.interrupt_shadow;
    const Exit exit = run_slice(cpu, target - state_.executed);
    window_possible = exit == Exit::Window || shadow;
    if (const auto stop = stop_for(cpu, exit)) {
      why = *stop;
      break;
    }
    if (exit == Exit::Halted || exit == Exit::Paused) {
      why = exit == Exit::Halted ? PcStop::Halted : PcStop::Paused;
      break;
    }
    if (cpu.happened & options.stop_on) {
      why = PcStop::Event;
      break;
    }
  }
  cpu.stop_on = Cpu::kHypercall;
  passed_ = places - std::exchange(cpu.passes, 0);
  cpu.pending = nullptr;
  others_deliverable_.reset();
  if (system_.tap != nullptr && !(options.keeps_batch && why == PcStop::Place)) system_.tap->flush();
  return why;
}

std::string Pc::describe_trouble(Cpu& cpu) const {
  const std::string& more = devices_.problem();
  return fmt::format("CPU {} met {}{}{}\n{}", cpu.id, cpu.unknown, more.empty() ? "" : ": ", more,
                     describe_place(cpu));
}

}  // namespace slalom::vm
