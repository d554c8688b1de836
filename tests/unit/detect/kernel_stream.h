// Stream: hand-written accesses and events of a kernel's CPUs, one instruction per call. Tests of kernel
// detectors use it as input.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "detect/kernels/kernel_race.h"

namespace slalom::test {

using Titles = std::vector<std::string>;

class Places final : public Names {
 public:
  std::string agent(AgentId id) const override { return "cpu" + id.path(); }
  std::string role(AgentId) const override { return "cpu"; }
  std::string object(ObjectId id) const override { return fmt::format("{:#x}", id.raw); }
  std::string place(Place pc) const override {
    const auto known = names.find(pc.raw);
    return known == names.end() ? fmt::format("f{}+0x1", pc.raw) : known->second;
  }
  std::string source(Place) const override { return ""; }
  Place number(const std::string& name) {
    for (const auto& [number, known] : names)
      if (known == name) return Place{number};
    names[1000 + names.size()] = name;
    return Place{999 + names.size()};
  }
  Marking marking(Place pc, bool writes) const override {
    const auto known = markings.find({place(pc), writes});
    return known == markings.end() ? Marking::Unknown : known->second;
  }
  std::map<uint64_t, std::string> names;
  std::map<std::pair<std::string, bool>, Marking> markings;  // by place, and whether it writes
};

// An execution, one instruction per call. Physical addresses equal virtual ones, unless moved.
class Stream {
 public:
  struct Item {
    AgentId agent;
    std::vector<Access> accesses;  // of one instruction; empty if the item is the event
    Event event;
  };

  Access make(OpKind op, const std::string& place, uint64_t address, bool wrote, uint32_t size,
              uint64_t value) {
    Access access{};
    access.pc_bits = places.number(place).raw;
    access.op_bits = static_cast<uint64_t>(op);
    access.address_bits = address;
    access.physical = address + moved;
    access.size = size;
    access.value = value;
    access.wrote = wrote;
    return access;
  }
  Stream& add(AgentId agent, std::vector<Access> accesses) {
    items.push_back({agent, std::move(accesses), {}});
    return *this;
  }
  Stream& load(int cpu, const std::string& place, uint64_t address, uint32_t size = 8, uint64_t value = 5) {
    return add(id(cpu), {make(OpKind::Load, place, address, false, size, value)});
  }
  Stream& store(int cpu, const std::string& place, uint64_t address, uint32_t size = 8, uint64_t value = 6) {
    return add(id(cpu), {make(OpKind::Store, place, address, true, size, value)});
  }
  Stream& locked(int cpu, uint64_t address, uint32_t size = 4) {
    return add(id(cpu), {make(OpKind::ReadModifyWrite, "lock", address, false, size, 0),
                         make(OpKind::ReadModifyWrite, "lock", address, true, size, 1)});
  }
  Stream& failed_exchange(int cpu, uint64_t address) {
    return add(id(cpu), {make(OpKind::CompareExchange, "lock", address, false, 4, 1)});
  }
  Stream& unlock(int cpu, uint64_t address) { return store(cpu, "unlock", address, 1, 0); }
  Stream& interrupt(AgentId agent, int cpu, int vector) {
    Event event;
    event.agent = agent;
    event.op = OpKind::IrqEnter;
    event.object = ObjectId{static_cast<uint64_t>(cpu)};
    event.value = vector;
    items.push_back({agent, {}, event});
    return *this;
  }
  // `text` must outlive the stream.
  Stream& event(int cpu, OpKind op, const std::string& place, uint64_t object, int64_t value = 0,
                std::string_view text = {}, uint64_t state = 0) {
    Event event;
    event.step = Step{items.size()};
    event.agent = id(cpu);
    event.op = op;
    event.pc = places.number(place);
    event.object = ObjectId{object};
    event.state = state;
    event.value = value;
    event.text = text;
    items.push_back({id(cpu), {}, event});
    return *this;
  }
  // `stack` is the stack pointer after the call.
  Stream& call(int cpu, const std::string& place, const std::string& function, uint64_t stack) {
    return add(id(cpu), {make(OpKind::Call, place, places.number(function).raw, false, 0, stack)});
  }
  Stream& ret(int cpu, const std::string& place, uint64_t stack) {
    return add(id(cpu), {make(OpKind::Return, place, 0, false, 0, stack)});
  }
  static AgentId id(int cpu) { return AgentId::initial(static_cast<uint32_t>(cpu)); }

  void feed(Detector& detector, size_t from, size_t to) const {
    for (size_t i = from; i < to; ++i) {
      if (items[i].accesses.empty())
        detector.on_event(items[i].event);
      else
        detector.on_accesses(items[i].accesses, {items[i].agent, 0, Step{i}});
    }
  }
  std::vector<Verdict> verdicts(KernelRaceOptions options = {}) const {
    KernelRaceDetector detector(places, std::move(options));
    return verdicts(detector);
  }
  std::vector<Verdict> verdicts(Detector& detector) const {
    detector.reset();
    feed(detector, 0, items.size());
    detector.on_end(Exited{});
    std::vector<Verdict> verdicts;
    detector.harvest(verdicts);
    return verdicts;
  }
  Titles titles(const KernelRaceOptions& options = {}) const {
    Titles titles;
    for (const Verdict& verdict : verdicts(options)) titles.push_back(verdict.title);
    return titles;
  }

  Places places;
  std::vector<Item> items;
  uint64_t moved = 0;
};

inline constexpr uint64_t kX = 0x1000, kY = 0x2000, kLock = 0x3000;

}  // namespace slalom::test
