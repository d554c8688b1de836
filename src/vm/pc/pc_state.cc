// The state of a Pc: its hash, checkpoints in memory, and the part of snapshots besides RAM.
#include "base/hash.h"
#include "vm/cpu/blocks.h"
#include "vm/cpu/memory/mmu.h"
#include "vm/pc/pc.h"

namespace slalom::vm {

uint64_t Pc::state_hash() {
  const uint64_t hash = combine(hash_state(rest()), ram_->hash());
  forget_writes(system_);
  return hash;
}

Pc::Rest Pc::rest() const {
  Rest rest{.turns = state_, .cpus = {}, .privileges = {}, .devices = devices_.state()};
  for (const auto& cpu : system_.cpus) {
    rest.cpus.push_back(cpu->regs);
    rest.privileges.push_back(cpu->cpl);
  }
  return rest;
}

Result<void> Pc::set_rest(const Rest& rest) {
  TRY(put_rest(rest));
  forget_all(system_);
  return {};
}

Result<void> Pc::put_rest(const Rest& rest) {
  if (rest.cpus.size() != cpu_count() || rest.privileges.size() != cpu_count())
    return error("the saved machine has {} CPUs, this one {}", rest.cpus.size(), cpu_count());
  if (rest.turns.current >= cpu_count() || (rest.turns.parked >> cpu_count()) != 0)
    return error("the saved machine names a CPU that it does not have");
  for (const Registers& r : rest.cpus)
    if (r.activity > Activity::Shutdown || r.gpr[kZero] != 0 || (r.rflags & flag::kFixed) == 0)
      return error("the saved machine holds registers that no CPU can have");
  for (const uint8_t privilege : rest.privileges)
    if (privilege > 3) return error("the saved machine holds registers that no CPU can have");
  if (!devices_.set_state(rest.devices))
    return error("the saved machine holds devices in a state that they cannot have");
  state_ = rest.turns;
  for (unsigned i = 0; i < cpu_count(); ++i) {
    Cpu& cpu = *system_.cpus[i];
    cpu.regs = rest.cpus[i];
    cpu.set_rflags(cpu.regs.rflags);
    cpu.set_cpl(rest.privileges[i]);
    cpu.registers_changed();
    cpu.leave = Leave::Block;
    cpu.last_faults.clear();
    cpu.moved();
    cpu.transfer = 0;
    cpu.came_from = cpu.last_stack = 0;
  }
  power_.reset();
  trouble_.clear();
  return {};
}

Pc::Checkpoint Pc::take() {
  const Ram::Checkpoint id = ram_->take();
  forget_writes(system_);
  if (saved_.size() <= id) saved_.resize(id + 1);
  saved_[id] = std::make_unique<Rest>(rest());
  return id;
}

void Pc::restore(Checkpoint id) {
  CHECK(id < saved_.size() && saved_[id] != nullptr, "no checkpoint {}", id);
  std::vector<UpperHalf> before;
  for (const auto& cpu : system_.cpus) before.emplace_back(*cpu);
  std::vector<uint32_t> changed;
  ram_->restore(id, changed);
  for (uint32_t page : changed)
    if (ram_->flags(page) & Ram::kCode) system_.blocks->drop_page(system_, page);
  const Result<void> result = put_rest(*saved_[id]);
  CHECK(result.ok(), "{}", result.error().message);
  forget_restored(system_, before, changed);
}

void Pc::drop(Checkpoint id) {
  ram_->drop(id);
  saved_[id].reset();
}

}  // namespace slalom::vm
