#include "check/check_machine.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "check/heap.h"
#include "check/watchdog.h"
#include "preload/runtime/runtime.h"
#include "preload/sync/locks.h"
#include "process/uses.h"
#include "trace/lock_change.h"
#include "trace/memory_order.h"

namespace slalom::checking {
namespace {

using preload::Ending;
using preload::kNoAgent;
using preload::Phase;
using preload::Record;
using State = preload::Slot::State;

// Steps that an execution may still take after the search has given it up.
constexpr uint64_t kUnseenSteps = 20'000;

// Objects that are not addresses keep their number, also in reports.
bool is_address(uint64_t object) {
  return object < preload::kChannelObjects;
}

// Writes whole words in place. With bit fields, or a copy, the processor would wait for its own stores.
void pack(const Record& record, uint64_t first_step, Access& access) {
  constexpr uint64_t kLow = (uint64_t{1} << 48) - 1;
  const auto put = [&access](size_t word, uint64_t value) {
    memcpy(reinterpret_cast<char*>(&access) + 8 * word, &value, sizeof value);
  };
  put(0, (record.pc & kLow) | static_cast<uint64_t>(record.op) << 48);
  put(1, (record.object & kLow) | (record.step - first_step) << 48);
  const bool store = record.op == OpKind::Store;
  const bool known = record.text == Record::kKnown;
  put(2, store && known ? record.state : static_cast<uint64_t>(record.value));
  const uint64_t ring = store ? (known ? 0 : kUnknownValue) : (record.state != 0 ? kWeakOrder : 0);
  put(3, uint64_t{record.size} << 40 | ring << 56 | static_cast<uint64_t>(record.wrote != 0) << 58);
}

}  // namespace

Result<void> CheckMachine::reset(const Inputs& inputs) {
  if (inputs.control == Control::None) return error("a test's body cannot run without control");
  if (const std::string over = watchdog_report(modules_); !over.empty()) return error("{}", over);
  give_up();
  if (inputs.policy.accesses.size() > preload::kMostAccesses)
    return error("{} watched accesses: in a test, at most {}; name fewer", inputs.policy.accesses.size(),
                 preload::kMostAccesses);
  inputs_ = inputs;
  preload::Channel& c = channel();
  const bool everywhere = inputs.policy.where == ChoicePolicy::Where::Everywhere;
  c.timeouts = preload::Timeouts::Any;
  c.choice_points =
      everywhere ? preload::Channel::ChoicePoints::All : preload::Channel::ChoicePoints::SeveralEnabled;
  c.stop_at_accesses = everywhere;
  c.place_count = 0;
  if (!everywhere)
    for (Place place : inputs.policy.places)
      if (c.place_count < preload::kMostPlaces) c.places[c.place_count++] = modules_.here(place.raw);
  std::sort(c.places, c.places + c.place_count);
  c.access_count = 0;
  for (ChoicePolicy::WatchedAccess access : inputs.policy.accesses) {
    if (access.place.raw != 0) access.place = Place{modules_.here(access.place.raw)};
    c.accesses[c.access_count++] = access;
  }
  c.named_count = c.place_count + c.access_count;
  c.access_agent = preload::kNoAgent;
  c.keeps_values = inputs.reporting.keeps_values;
  c.record_limit = inputs.reporting.keeps_values ? 1 : preload::kMostRecords;
  c.max_steps = inputs.max_steps;
  c.stop_at = UINT64_MAX;
  c.uncontrolled = 0;
  steps_ = hash_ = 0;
  held_.clear();
  order_.clear();
  c.forecast.keep = keep_ = 0;
  return {};
}

Stop CheckMachine::start(EventSink& sink) {
  sink_ = &sink;
  modules_.forget_library_state();
  process_.begin(*this);
  read_target();
  at_choice_point_ = true;
  return choice_point();
}

// Inlined and flattened, as Runtime::arrive() is.
[[gnu::always_inline, gnu::flatten]] inline void CheckMachine::let_run(uint32_t agent) {
  at_choice_point_ = false;
  const auto& stops = inputs_.policy.stops;
  uint64_t stop_at = UINT64_MAX;
  if (!stops.empty()) {
    const AgentId id = agents_[agent].id;
    const auto next = std::lower_bound(stops.begin(), stops.end(),
                                       ChoicePolicy::AgentPosition{id, channel().slots[agent].ops + 1});
    if (next != stops.end() && next->agent == id) stop_at = next->ops;
  }
  channel().stop_at = stop_at;
  process_.let_run(agent);
}

Stop CheckMachine::resume(Decision decision) {
  preload::Channel& c = channel();
  const uint32_t agent = index_of(decision.next);
  const bool data = c.choice.kind == static_cast<uint32_t>(ChoiceKind::Data);
  if (!at_choice_point_)
    return Outcome(ToolError{"resume() without a choice point: call reset() and start() first"});
  if (agent == kNoAgent || (data ? agent != c.choice.current || decision.value >= c.choice.arity
                                 : c.slots[agent].state != State::Enabled))
    return finish(ToolError{"the decision does not answer the question that was asked"}, false);
  c.value = decision.value;
  c.forecast.keep = keep_ = decision.forecast.keep;
  c.forecast.keep_enabled = static_cast<uint32_t>(enabled_.size());
  let_run(agent);
  return run();
}

Stop CheckMachine::run() {
  preload::Channel& c = channel();
  for (;;) {
    read_target();
    const Phase phase = c.phase.load(std::memory_order_relaxed);
    if (phase == Phase::Over) {
      Outcome outcome = conclude();
      const bool normally = std::holds_alternative<Exited>(outcome);
      return finish(std::move(outcome), normally);
    }
    if (phase == Phase::Drain) {
      process_.let_run(c.choice.current);
      continue;
    }
    if (enabled_.empty()) return finish(deadlock(), false);
    if (steps_ >= inputs_.max_steps) {
      LimitReached limit{steps_, {}};
      for (const Option& option : enabled_) limit.enabled.push_back(option.agent);
      return finish(std::move(limit), false);
    }
    if (is_choice_point()) break;
    let_run(c.choice.current);
  }
  at_choice_point_ = true;
  return choice_point();
}

bool CheckMachine::is_choice_point() {
  const preload::Channel& c = channel();
  if (c.choice.kind != static_cast<uint32_t>(ChoiceKind::Running)) return true;
  const auto& stops = inputs_.policy.stops;
  const uint32_t current = c.choice.current;
  if (!stops.empty() &&
      std::binary_search(stops.begin(), stops.end(),
                         ChoicePolicy::AgentPosition{agents_[current].id, c.slots[current].ops}))
    return true;
  return inputs_.policy.where != ChoicePolicy::Where::Nowhere ||
         (c.access_agent == current && c.access_ops == c.slots[current].ops);
}

void CheckMachine::read_target() {
  preload::Channel& c = channel();
  for (auto i = static_cast<uint32_t>(order_.size()); i < c.agent_count; ++i) {
    KnownAgent now;
    now.id = AgentId{c.slots[i].id};
    now.entry = c.slots[i].entry;
    if (i >= agents_.size()) agents_.emplace_back();
    if (agents_[i].id != now.id || agents_[i].entry != now.entry)
      modules_.names()->learn_agent(now.id, modules_.stable(now.entry));
    agents_[i] = now;
    order_.insert(std::lower_bound(order_.begin(), order_.end(), now.id,
                                   [&](uint32_t a, AgentId id) { return agents_[a].id < id; }),
                  i);
  }
  read_records();
  enabled_.clear();
  for (const uint32_t index : order_) {
    const preload::Slot& slot = c.slots[index];
    if (slot.state != State::Enabled) continue;
    KnownAgent& known = agents_[index];
    // Local copies, because reading back just stored values would make the processor wait.
    uint64_t object = known.stable_object, pc = known.stable_pc;
    if (slot.object != known.object || slot.pc != known.pc) {
      known.object = slot.object;
      known.pc = slot.pc;
      known.stable_object = object = stable(slot.object);
      known.stable_pc = pc = modules_.stable(slot.pc);
    }
    enabled_.emplace_back() = {known.id, {slot.op, ObjectId{object}, Place{pc}}};
  }
  steps_ = c.steps;
}

inline uint64_t CheckMachine::stable(uint64_t object) const {
  if (!is_address(object) || Fibers::on_a_stack(object)) return object;
  if (Heap::owns(reinterpret_cast<const void*>(object))) return heap().stable(object);
  return modules_.stable(object);
}

void CheckMachine::read_records() {
  preload::Channel& c = channel();
  Record* const end = c.records + c.record_count;
  for (Record* record = c.records; record != end;) {
    if (record->agent == kNoAgent)
      ++record;
    else if (is_memory(record->op))
      record = read_accesses(record, end);
    else
      read_event(*record++);
  }
  c.record_count = 0;
}

void CheckMachine::read_event(const Record& record) {
  const AgentId agent = agents_[record.agent].id;
  Event event;
  event.step = Step{record.step};
  event.agent = agent;
  event.op = record.op;
  event.pc = Place{modules_.stable(record.pc)};
  event.object = ObjectId{stable(record.object)};
  event.state = record.state;
  if (record.other != kNoAgent) event.other = agents_[record.other].id;
  event.value = record.value;
  note_lock(record);
  if (record.op == OpKind::Free && record.state != 0)
    heap().mark_freed(reinterpret_cast<const void*>(record.object));
  hash_ = fold(hash_ + event.object.raw + agent.raw + static_cast<uint64_t>(record.op),
               static_cast<uint64_t>(record.value));
  if (record.text != 0) event.text = text_at(record.text);
  sink_->on_event(event);
  if (!uses_object(record)) return;
  const void* freed = heap().freed_block(reinterpret_cast<const void*>(record.object));
  if (freed != nullptr) emit_use_of(freed, event.step, agent, event.pc);
}

// Reads consecutive accesses of one agent. Returns the end of the run.
Record* CheckMachine::read_accesses(Record* from, const Record* end) {
  const uint32_t index = from->agent;
  const BatchHeader header{agents_[index].id, 0, Step{from->step}};
  Access* access = accesses_.data();
  uint64_t hash = hash_;
  do {
    const void* freed = heap().freed_block(reinterpret_cast<const void*>(from->object));
    from->pc = modules_.stable(from->pc);
    from->object = stable(from->object);
    if (freed != nullptr) emit_use_of(freed, Step{from->step}, header.agent, Place{from->pc});
    pack(*from, header.first_step.raw, *access++);
    hash = fold(hash + from->object + header.agent.raw + static_cast<uint64_t>(from->op),
                from->op == OpKind::Store ? 0 : static_cast<uint64_t>(from->value));
    ++from;
  } while (from != end && from->agent == index && is_memory(from->op) &&
           from->step - header.first_step.raw <= UINT16_MAX);
  hash_ = hash;
  sink_->on_accesses({accesses_.data(), access}, header);
  return from;
}

void CheckMachine::emit_use_of(const void* freed, Step step, AgentId agent, Place pc) {
  Event event;
  event.step = step;
  event.agent = agent;
  event.op = OpKind::HeapUse;
  event.pc = pc;
  event.object = ObjectId{stable(preload::object_id(freed))};
  sink_->on_event(event);
}

void CheckMachine::note_lock(const Record& record) {
  const LockChange change = lock_change(record.op, record.value);
  if (change == LockChange::Take) {
    held_.push_back(record.object);
  } else if (change == LockChange::Release) {
    const auto at = std::find(held_.rbegin(), held_.rend(), record.object);
    if (at != held_.rend()) held_.erase(std::next(at).base());
  }
}

inline Stop CheckMachine::choice_point() const {
  const preload::Channel& c = channel();
  Stop stop(std::in_place_type<ChoicePoint>);
  auto& point = std::get<ChoicePoint>(stop);
  point.position = Position{steps_};
  point.kind = static_cast<ChoiceKind>(c.choice.kind);
  point.source = this;
  point.arity = point.kind == ChoiceKind::Data ? c.choice.arity : 0;
  point.passed = keep_ - c.forecast.keep;
  uint64_t digest = enabled_.size() << 8 | c.choice.kind;
  for (const Option& option : enabled_) digest = digest * 0x9e3779b97f4a7c15u + option.agent.raw;
  if (point.kind != ChoiceKind::Start) {
    const preload::Slot& slot = c.slots[c.choice.current];
    point.current = AgentId{slot.id};
    point.current_ops = slot.ops;
    digest = fold(fold(digest, slot.id), fold(slot.ops << 32 | point.arity, modules_.stable(slot.pc)));
  }
  point.digest = digest;
  return stop;
}

Stop CheckMachine::finish(Outcome outcome, bool normally) {
  at_choice_point_ = false;
  if (!normally) open_locks();
  process_.end(normally);
  sink_->on_end(outcome);
  return outcome;
}

// The search has given up this execution, but the body must still reach its end.
void CheckMachine::give_up() {
  if (!at_choice_point_) return;
  at_choice_point_ = false;
  preload::Channel& c = channel();
  c.choice_points = preload::Channel::ChoicePoints::SeveralEnabled;
  c.stop_at_accesses = c.place_count = c.access_count = c.named_count = 0;
  c.stop_at = UINT64_MAX;
  c.max_steps = c.steps + kUnseenSteps;
  uint32_t next = c.choice.current;
  while (c.phase.load(std::memory_order_relaxed) != Phase::Over && c.steps < c.max_steps) {
    const bool again = c.phase.load(std::memory_order_relaxed) == Phase::Drain ||
                       c.choice.kind == static_cast<uint32_t>(ChoiceKind::Data);
    for (uint32_t i = 0; !again && i < c.agent_count; ++i) {
      next = (next + 1) % c.agent_count;
      if (c.slots[next].state == State::Enabled) break;
    }
    if (again) next = c.choice.current;
    if (!again && c.slots[next].state != State::Enabled) break;
    for (uint32_t i = 0; i < c.record_count; ++i) note_lock(c.records[i]);
    c.record_count = 0;
    c.value = 0;
    process_.let_run(next);
  }
  const bool normally =
      c.phase.load(std::memory_order_relaxed) == Phase::Over && c.ending.kind == Ending::Kind::Exit;
  if (!normally) open_locks();
  process_.end(normally);
}

// Opens the locks of an execution that cannot end. The contents show the kind of lock: a mutex of the model
// has an owner, a taken spin lock is 0, and a pthread_once that is running is 1.
void CheckMachine::open_locks() {
  for (const uint64_t address : held_) {
    auto* mutex = reinterpret_cast<pthread_mutex_t*>(address);
    auto* lock = reinterpret_cast<pthread_rwlock_t*>(address);
    auto* word = reinterpret_cast<volatile int*>(address);
    const auto owner = static_cast<uint32_t>(mutex->__data.__owner);
    if (preload::lock_of(mutex) == 1 && owner != 0 && owner <= channel().agent_count) {
      preload::set_lock(mutex, 0);
      mutex->__data.__count = 0;
      mutex->__data.__owner = 0;
    } else if (lock->__data.__writers != 0 || lock->__data.__readers != 0) {
      lock->__data.__writers = lock->__data.__readers = 0;
      lock->__data.__cur_writer = 0;
    } else {
      *word = *word == 0;
    }
  }
  held_.clear();
}

Outcome CheckMachine::conclude() {
  if (std::string over = watchdog_report(modules_); !over.empty()) return ToolError{std::move(over)};
  const Ending& ending = channel().ending;
  if (ending.kind == Ending::Kind::Exit) return Exited{};
  Faulted fault;
  fault.kind = ending.kind == Ending::Kind::Assertion ? Faulted::Kind::Assertion : Faulted::Kind::Crash;
  if (ending.agent < agents_.size()) fault.agent = agents_[ending.agent].id;
  fault.pc = Place{modules_.stable(ending.pc)};
  fault.what = text_at(ending.text);
  hash_ = combine(hash_, static_cast<uint64_t>(ending.kind), hash_text(fault.what));
  return fault;
}

Deadlocked CheckMachine::deadlock() const {
  const preload::Channel& c = channel();
  Deadlocked result;
  for (const uint32_t index : order_) {
    const preload::Slot& slot = c.slots[index];
    if (slot.state == State::Ended) continue;
    Deadlocked::Waiting waiting{
        agents_[index].id, slot.op, ObjectId{stable(slot.object)}, Place{modules_.stable(slot.pc)}, {}};
    for (uint32_t i = 0; i < c.holder_count; ++i)
      if (c.holders[i].waiting == index) waiting.held_by.push_back(agents_[c.holders[i].holder].id);
    std::sort(waiting.held_by.begin(), waiting.held_by.end());
    result.waiting.push_back(std::move(waiting));
  }
  return result;
}

std::vector<Option> CheckMachine::blocked() const {
  const preload::Channel& c = channel();
  std::vector<Option> blocked;
  for (const uint32_t index : order_) {
    const preload::Slot& slot = c.slots[index];
    if (slot.state == State::Disabled)
      blocked.push_back(
          {agents_[index].id, {slot.op, ObjectId{stable(slot.object)}, Place{modules_.stable(slot.pc)}}});
  }
  return blocked;
}

std::string_view CheckMachine::text_at(uint32_t text) const {
  if (text == 0 || text > preload::kTextBytes) return {};
  const char* start = channel().texts + (text - 1);
  return {start, strnlen(start, preload::kTextBytes - (text - 1))};
}

uint32_t CheckMachine::index_of(AgentId id) const {
  for (const uint32_t index : order_)
    if (agents_[index].id == id) return index;
  return kNoAgent;
}

}  // namespace slalom::checking
