// Reads the records of a stopped target: its agents, the stops that it passed by itself, its accesses and
// events. Checks everything, because the target can write anything there.
#include <algorithm>

#include "base/hash.h"
#include "process/program_machine.h"
#include "process/uses.h"
#include "trace/memory_order.h"

namespace slalom {
namespace {

using preload::kNoAgent;
using State = preload::Slot::State;

constexpr const char* kNonsense =
    "the program has overwritten slalom's memory in its process; it may be writing through wild pointers";

}  // namespace

// Makes addresses stable in new records, for modules that the target has loaded by itself. Records are read
// in several steps; making an address stable twice changes nothing.
void ProgramMachine::make_stable() {
  preload::Channel& channel = zygote_->channel();
  const uint32_t count = std::min(channel.record_count, preload::kMostRecords);
  for (uint32_t i = records_; i < count; ++i) {
    preload::Record& record = channel.records[i];
    record.pc = added_.stable(record.pc);
    record.object = added_.stable(record.object);
  }
}

// Reads the agents that were added since the last call.
std::optional<std::string> ProgramMachine::read_agents() {
  const preload::Channel& channel = zygote_->channel();
  const uint32_t count = channel.agent_count;
  if (count > preload::kMostAgents || count < agents_.size()) return kNonsense;
  for (auto i = static_cast<uint32_t>(agents_.size()); i < count; ++i) {
    const AgentId id{channel.slots[i].id};
    if (!id || find(id) != nullptr) return kNonsense;
    agents_.emplace_back().id = id;
    order_.insert(std::lower_bound(order_.begin(), order_.end(), i,
                                   [&](uint32_t a, uint32_t) { return agents_[a].id < id; }),
                  i);
    names_->learn_agent(id, added_.stable(channel.slots[i].entry));
  }
  return std::nullopt;
}

// Reads the stop at which the target waits.
std::optional<std::string> ProgramMachine::read_stop() {
  const preload::Channel& channel = zygote_->channel();
  const uint32_t kind = channel.choice.kind;
  if (kind > static_cast<uint32_t>(ChoiceKind::Data)) return kNonsense;
  enabled_.clear();
  for (uint32_t index : order_) {
    const preload::Slot& slot = channel.slots[index];
    AgentView& seen = agents_[index];
    if (slot.id != seen.id.raw || static_cast<int>(slot.op) >= kOpKinds || slot.state > State::Ended)
      return kNonsense;
    seen.ops = slot.ops;
    seen.pending = {slot.op, ObjectId{added_.stable(slot.object)}, Place{added_.stable(slot.pc)}};
    seen.state = slot.state;
    if (seen.state == State::Enabled) enabled_.push_back({seen.id, seen.pending});
  }
  steps_ = channel.steps;
  kind_ = static_cast<ChoiceKind>(kind);
  arity_ = channel.choice.arity;
  if (agents_.empty()) return std::nullopt;  // it ended before its first stop
  current_ = channel.choice.current;
  if (current_ >= agents_.size()) return kNonsense;
  return std::nullopt;
}

// Reads a stop that the target has passed: restores the agents as they were then.
std::optional<std::string> ProgramMachine::read_passed(const preload::Record& stop) {
  const auto mask = static_cast<uint64_t>(stop.value);
  const auto able = [&](uint32_t index) {
    return mask == 0 ? index == stop.other : index < preload::kMostInMask && (mask >> index & 1) != 0;
  };
  if (stop.other >= agents_.size() || !able(stop.other) ||
      stop.size >= static_cast<uint8_t>(ChoiceKind::Data) || stop.wrote > static_cast<uint8_t>(State::Ended))
    return kNonsense;
  AgentView& agent = agents_[stop.agent];
  agent.ops = stop.state;
  agent.pending = {stop.op, ObjectId{stop.object}, Place{stop.pc}};
  agent.state = static_cast<State>(stop.wrote);
  enabled_.clear();
  for (uint32_t index : order_) {
    AgentView& seen = agents_[index];
    if (able(index)) {
      seen.state = State::Enabled;
      enabled_.push_back({seen.id, seen.pending});
    } else if (seen.state == State::Enabled) {
      seen.state = State::Disabled;
    }
  }
  steps_ = stop.step;
  kind_ = static_cast<ChoiceKind>(stop.size);
  arity_ = 0;
  current_ = stop.agent;
  passed_to_ = runs_ = stop.other;
  return std::nullopt;
}

// Reads the records up to the next stop that the target has passed, and then sets at_passed_; otherwise all
// of them.
std::optional<std::string> ProgramMachine::read_records() {
  const preload::Channel& channel = zygote_->channel();
  const uint32_t count = channel.record_count;
  at_passed_ = false;
  if (count > preload::kMostRecords) return kNonsense;
  for (uint32_t& i = records_; i < count;) {
    const preload::Record record = channel.records[i];
    if (record.agent >= agents_.size() || static_cast<int>(record.op) >= kOpKinds ||
        (record.other != kNoAgent && record.other >= agents_.size()))
      return kNonsense;
    if (record.what == preload::Record::What::Stop) {
      ++i;
      at_passed_ = true;
      return read_passed(record);
    }
    if (record.what == preload::Record::What::Agent) {
      ++i;
      agents_[record.agent].ops = record.state;
      agents_[record.agent].pending = {record.op, ObjectId{record.object}, Place{record.pc}};
      continue;
    }
    if (record.what == preload::Record::What::Error) {
      ++i;
      if (!read_error(record)) return kNonsense;
      continue;
    }
    // Not hashed for plain stores, because the value before the store may be data that earlier calls left on
    // the stack.
    const int64_t value = record.op == OpKind::Store ? 0 : record.value;
    hash_ = combine(hash_, record.step, record.object, agents_[record.agent].id.raw,
                    static_cast<uint64_t>(record.op), static_cast<uint64_t>(value));
    if (!is_memory(record.op)) {
      if (stack_names_) stack_names_->touched(record.object, record.agent);
      Event event;
      event.step = Step{record.step};
      event.agent = agents_[record.agent].id;
      event.op = record.op;
      event.pc = Place{record.pc};
      event.object = ObjectId{record.object};
      event.state = record.state;
      if (record.other != kNoAgent) event.other = agents_[record.other].id;
      event.value = record.value;
      const std::string text = text_at(record.text);
      event.text = text;
      sink_->on_event(event);
      if (record.op == OpKind::Alloc || record.op == OpKind::Free) note_heap(record);
      if (!freed_.empty() && uses_object(record))
        if (const std::optional<Event> use = use_of_freed(record)) sink_->on_event(*use);
      ++i;
      continue;
    }
    accesses_.clear();
    const BatchHeader header{agents_[record.agent].id, 0, Step{record.step}};
    const bool orders = options_.orders_set_up || record.step >= channel.set_up_steps;
    std::optional<Event> use;
    for (; i < count && !use; ++i) {
      const preload::Record& next = channel.records[i];
      if (next.agent != record.agent || next.what != preload::Record::What::Happened || !is_memory(next.op) ||
          next.step - record.step > UINT16_MAX || (!orders && next.step >= channel.set_up_steps))
        break;
      if (stack_names_) stack_names_->touched(next.object, next.agent);
      Access& access = accesses_.emplace_back(Access{.pc_bits = next.pc,
                                                     .op_bits = static_cast<uint64_t>(next.op),
                                                     .modify_bits = 0,
                                                     .address_bits = next.object,
                                                     .retired = next.step - record.step,
                                                     .value = static_cast<uint64_t>(next.value),
                                                     .physical = 0,
                                                     .size = next.size,
                                                     .ring = 0,
                                                     .wrote = next.wrote != 0,
                                                     .unordered = !orders,
                                                     .is_private = 0,
                                                     .unused = 0});
      if (next.op != OpKind::Store) {
        if (next.state != 0) set_weak(access, true);
      } else if (next.text == preload::Record::kKnown) {
        access.value = next.state;
      } else {
        set_unknown_value(access);
      }
      if (!freed_.empty()) use = use_of_freed(next);
    }
    sink_->on_accesses(accesses_, header);
    if (use) sink_->on_event(*use);
  }
  return std::nullopt;
}

void ProgramMachine::note_heap(const preload::Record& record) {
  const auto size = static_cast<uint64_t>(record.value);
  if (record.op == OpKind::Free) {
    if (record.state == 0) return;
    freed_[record.object] = size;
    kept_.emplace_back(record.object, size);
    kept_bytes_ += size;
    if (kept_.size() < preload::kMostKept && kept_bytes_ <= preload::kMostKeptBytes) return;
    // The oldest block goes back to the allocator, and a library may get it.
    const auto [oldest, bytes] = kept_.front();
    kept_.pop_front();
    kept_bytes_ -= bytes;
    freed_.erase(oldest);
    return;
  }
  // The memory is allocated again, so blocks that were there before are gone.
  auto block = freed_.upper_bound(record.object);
  if (block != freed_.begin() && std::prev(block)->first + std::prev(block)->second > record.object) --block;
  while (block != freed_.end() && block->first < record.object + size) block = freed_.erase(block);
}

std::optional<Event> ProgramMachine::use_of_freed(const preload::Record& record) const {
  auto block = freed_.upper_bound(record.object);
  if (block == freed_.begin()) return std::nullopt;
  --block;
  if (record.object - block->first >= block->second) return std::nullopt;
  Event use;
  use.step = Step{record.step};
  use.agent = agents_[record.agent].id;
  use.op = OpKind::HeapUse;
  use.pc = Place{record.pc};
  use.object = ObjectId{block->first};
  return use;
}

std::string ProgramMachine::text_at(uint32_t text) const {
  const preload::Channel& channel = zygote_->channel();
  if (text == 0 || text > preload::kTextBytes) return {};
  const char* start = channel.texts + (text - 1);
  return std::string(start, strnlen(start, preload::kTextBytes - (text - 1)));
}

}  // namespace slalom
