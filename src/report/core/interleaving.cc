#include "report/core/interleaving.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/core/summary.h"
#include "trace/memory_order.h"

namespace slalom {
namespace {

// Returns whether the event belongs to an operation, or comes between two. Other events are operations of
// their own.
bool retires_nothing(OpKind kind) {
  switch (kind) {
    case OpKind::Exit:
    case OpKind::IrqExit:
    case OpKind::Note:
    case OpKind::Fail:
      return true;
    default:
      return false;
  }
}

bool is_name_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool mentions(std::string_view source, std::string_view name) {
  for (size_t at = source.find(name); at != std::string_view::npos; at = source.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool starts = at == 0 || !is_name_character(source[at - 1]);
    const bool ends = end == source.size() || !is_name_character(source[end]);
    if (starts && ends && !name.empty()) return true;
  }
  return false;
}

class Reader {
 public:
  Reader(const TraceLog& log, const Names& names) : log_(log), names_(names) {}

  Interleaving read() {
    for (const TraceLog::Batch& batch : log_.batches())
      for (uint64_t i = 0; i < batch.count; ++i) {
        const Access& access = log_.accesses()[batch.first + i];
        lines_[line(access.pc())].objects.insert(access.address());
      }
    for (const TraceLog::Entry& entry : log_.order()) {
      if (entry.what == TraceLog::Entry::What::Event) {
        add(log_.events()[entry.index]);
        continue;
      }
      const TraceLog::Batch& batch = log_.batches()[entry.index];
      for (uint64_t i = 0; i < batch.count; ++i) add(log_.accesses()[batch.first + i], batch.header);
    }
    note_lines();
    std::set<AgentId> agents;
    for (const Operation& operation : result_.operations)
      if (operation.agent) agents.insert(operation.agent);
    if (const auto* deadlock = std::get_if<Deadlocked>(&log_.outcome()))
      for (const auto& waiting : deadlock->waiting) agents.insert(waiting.agent);
    result_.agents.assign(agents.begin(), agents.end());
    return std::move(result_);
  }

 private:
  struct Line {
    std::string place;
    std::string source;
    std::set<ObjectId> objects;  // objects of its accesses
  };

  size_t line(Place pc) {
    const auto [known, added] = line_of_.try_emplace(pc, 0);
    if (!added) return known->second;
    std::string place = names_.place(pc);
    std::string source = printable(names_.source(pc));
    const auto [same, first] = line_by_text_.try_emplace({place, source}, lines_.size());
    if (first) lines_.push_back({printable(place), std::move(source), {}});
    return known->second = same->second;
  }

  Operation& start(Step step, AgentId agent, OpKind kind, Place pc) {
    Operation operation;
    operation.step = step;
    operation.agent = agent;
    operation.kind = kind;
    operation.pc = pc;
    // The check after the end has no place.
    if (agent) operation.line = line(pc);
    if (agent && !retires_nothing(kind)) {
      Count& count = counts_[agent];
      if (!count.last || *count.last != step) ++count.retired;
      count.last = step;
      operation.ops = count.retired - 1;
    }
    return result_.operations.emplace_back(std::move(operation));
  }

  void add(const Access& access, const BatchHeader& header) {
    const Step step{header.first_step.raw + access.retired};
    Operation& operation = start(step, header.agent, access.op(), access.pc());
    const Line& line = lines_[operation.line];
    const std::string object = printable(names_.object(access.address()));
    const bool writes = may_only_read(access.op()) ? access.wrote != 0 : effect(access.op()) == Effect::Write;
    operation.uses.push_back({access.address(), access.op(), writes, 0});
    operation.text = line.source;
    if (line.source.empty())
      operation.text = line.place.empty() ? fmt::format("{} {}", name(access.op()), object)
                                          : fmt::format("{}: {} {}", line.place, name(access.op()), object);
    const std::string value = knows_value(access) ? ' ' + value_text(access.value, access.size) : "";
    std::string note;
    switch (access.op()) {
      case OpKind::CompareExchange:
        note = fmt::format("was{}, {}", value, access.wrote ? "swapped" : "not swapped");
        break;
      case OpKind::ReadModifyWrite:
        note = fmt::format("updated to{}", value);
        break;
      default:
        note = fmt::format("{}{}", writes ? "wrote" : "read", value);
    }
    const bool obvious = line.objects.size() == 1 && mentions(line.source, object);
    if (!obvious && !line.source.empty()) note = fmt::format("{}: {}", object, note);
    if (heap_use_ && heap_use_->step == step && heap_use_->agent == header.agent) {
      operation.uses.push_back({heap_use_->object, OpKind::HeapUse, false, heap_use_->state});
      if (heap_use_->state == 0) note += ", after free";
    }
    heap_use_.reset();
    operation.note = std::move(note);
  }

  void add(const Event& event) {
    Operation* last = result_.operations.empty() ? nullptr : &result_.operations.back();
    const bool same = last != nullptr && last->agent == event.agent && last->step == event.step;
    switch (event.op) {
      case OpKind::CpuUse:
      case OpKind::IrqTake:
        return;
      case OpKind::HeapUse:
        heap_use_ = event;
        return;
      case OpKind::Wake:
        if (same) woken(*last, event);
        return;
      case OpKind::Unlock:
        if (same && last->kind == OpKind::Wait) {
          last->note = fmt::format("unlocks {}", printable(names_.object(event.object)));
          last->uses.push_back({event.object, event.op, true, event.state});
          return;
        }
        break;
      default:
        break;
    }
    Operation& operation = start(event.step, event.agent, event.op, event.pc);
    const bool writes = event.op == OpKind::TryLock ? event.value != 0 : effect(event.op) == Effect::Write;
    const bool uses = effect(event.op) != Effect::None || event.op == OpKind::Alloc ||
                      (event.op == OpKind::Fail && event.object.raw != 0);
    if (uses) operation.uses.push_back({event.object, event.op, writes, event.state});
    put_words(operation, event);
  }

  void put_words(Operation& operation, const Event& event) {
    const auto source = [&](std::string otherwise) {
      const std::string text = event.agent ? lines_[operation.line].source : "";
      return text.empty() ? otherwise : text;
    };
    switch (event.op) {
      case OpKind::Note:
        operation.text = fmt::format("\"{}\"", printable(event.text));
        return;
      case OpKind::Fail:
        operation.text = source("fails");
        operation.note = printable(event.text);
        if (mentions(operation.text, operation.note)) operation.note = "fails";
        return;
      case OpKind::Choose:
        operation.text = source("choose");
        operation.note = fmt::format("chose {}", event.value);
        return;
      case OpKind::Alloc:
        operation.text = source("alloc");
        operation.note = printable(names_.whole(event.object));
        return;
      case OpKind::TryLock:
        operation.note = event.value != 0     ? "got it"
                         : event.text.empty() ? "was taken"
                                              : printable(event.text);
        break;
      case OpKind::Free:
        if (event.state == 0) operation.note = "a second time";
        break;
      case OpKind::Signal:
      case OpKind::Broadcast:
        if (event.value == 0) operation.note = "wakes nobody";
        break;
      default:
        break;
    }
    operation.text = destroys(event) ? fmt::format("destroy {}", printable(names_.object(event.object)))
                                     : describe(event.op, event.object, event.other, names_);
    if (destroys(event)) operation.note.clear();
    if (event.agent && !retires_nothing(event.op) && event.op != OpKind::GoOn)
      described_.push_back(result_.operations.size() - 1);
  }

  // Splits a place such as "queue.c:12 (push)" into file and line. Empty for places of other forms.
  static std::pair<std::string, std::string> file_and_line(const std::string& place) {
    const std::string code = place.substr(0, place.find(" ("));
    const size_t colon = code.rfind(':');
    if (colon == std::string::npos || code.find('.') > colon) return {};
    return {code.substr(0, colon), code.substr(colon + 1)};
  }

  // Adds the line to operations that are not shown by their source line.
  void note_lines() {
    std::set<std::string> files;
    for (size_t i : described_)
      if (const std::string file = file_and_line(lines_[result_.operations[i].line].place).first;
          !file.empty())
        files.insert(file);
    for (size_t i : described_) {
      Operation& operation = result_.operations[i];
      const auto [file, number] = file_and_line(lines_[operation.line].place);
      if (file.empty()) continue;
      const std::string where = files.size() == 1 ? "line " + number : fmt::format("{}:{}", file, number);
      operation.note = operation.note.empty() ? where : fmt::format("{}, {}", where, operation.note);
    }
  }

  void woken(Operation& by, const Event& event) {
    by.woken.push_back(event.other);
    // The text of a raise or an arming already names the woken agents.
    if (by.kind == OpKind::IrqRaise || by.kind == OpKind::TimerArm) return;
    std::vector<std::string> agents;
    for (AgentId agent : by.woken) agents.push_back(printable(names_.agent(agent)));
    by.note = fmt::format("wakes {}", fmt::join(agents, ", "));
  }

  struct Count {
    uint64_t retired = 0;
    std::optional<Step> last;
  };

  const TraceLog& log_;
  const Names& names_;
  Interleaving result_;
  std::map<Place, size_t> line_of_;
  std::map<std::pair<std::string, std::string>, size_t> line_by_text_;
  std::vector<Line> lines_;
  std::vector<size_t> described_;  // operations whose text is not their source line
  std::map<AgentId, Count> counts_;
  std::optional<Event> heap_use_;  // a use of the heap by the access that follows
};

// Finds the switches. The log does not say whether an agent could have gone on. But it has the agent's next
// operation, and the states of objects: events after the switch hold the states from before them.
class SwitchFinder {
 public:
  SwitchFinder(Interleaving& all, const TraceLog& log, const Names& names)
      : all_(all), log_(log), names_(names) {}

  void find() {
    const auto& operations = all_.operations;
    for (size_t i = 0; i < operations.size(); ++i) {
      for (const ObjectUse& use : operations[i].uses)
        if (!is_memory(use.kind) && use.kind != OpKind::Fail) states_[use.object].push_back({i, use.state});
      if (operations[i].agent) of_agent_[operations[i].agent].push_back(i);
      for (AgentId agent : operations[i].woken) wakes_[agent].push_back(i);
    }
    std::optional<size_t> last;
    for (size_t i = 0; i < operations.size(); ++i) {
      if (!operations[i].ops) continue;
      if (last && operations[*last].agent != operations[i].agent) add(*last, i);
      last = i;
    }
  }

 private:
  struct Seen {
    size_t at;
    uint64_t state;
  };

  void add(size_t last, size_t next) {
    const Operation& before = all_.operations[last];
    AgentSwitch change{next, before.agent, *before.ops + 1, all_.operations[next].agent, Leaving::Unknown,
                       ""};
    change.leaving = reason(last, next, change.blocked_on);
    all_.switches.push_back(std::move(change));
  }

  Leaving reason(size_t last, size_t next, std::string& blocked_on) const {
    const Operation& before = all_.operations[last];
    const auto& own = of_agent_.at(before.agent);
    const auto after = std::upper_bound(own.begin(), own.end(), last);
    if (after != own.end() && *after < next) {
      // The agent did something after its last operation, so it can only have ended there.
      for (auto it = after; it != own.end() && *it < next; ++it) {
        const OpKind kind = all_.operations[*it].kind;
        if (kind == OpKind::Exit || kind == OpKind::IrqExit) return Leaving::Ended;
      }
    }
    if (before.kind == OpKind::Yield) return Leaving::Yielded;
    if (before.kind == OpKind::Wait) return Leaving::Blocked;

    const auto resumed =
        std::find_if(after, own.end(), [&](size_t i) { return all_.operations[i].ops.has_value(); });
    const size_t resumed_at = resumed == own.end() ? all_.operations.size() : *resumed;
    if (before.kind == OpKind::BarrierArrive && before.woken.empty()) {
      if (const auto wakes = wakes_.find(before.agent); wakes != wakes_.end()) {
        const auto wake = std::upper_bound(wakes->second.begin(), wakes->second.end(), last);
        if (wake != wakes->second.end() && *wake < resumed_at) return Leaving::Blocked;
      }
      if (waits_at_end(before.agent) != nullptr && resumed == own.end()) return Leaving::Blocked;
    }
    const Leaving otherwise = interrupts(next, before.agent) ? Leaving::Interrupted : Leaving::Preempted;
    if (resumed != own.end()) {
      const Operation& pending = all_.operations[*resumed];
      // The context of an interrupt or timer starts from its beginning, so its last run was over.
      if (pending.kind == OpKind::IrqEnter || pending.kind == OpKind::TimerFire) return Leaving::Ended;
      if (pending.uses.empty() || could_run(pending.kind, pending.uses.front().object, last))
        return otherwise;
      blocked_on = pending.text;
      return Leaving::Blocked;
    }
    if (const auto* waiting = waits_at_end(before.agent)) {
      if (could_run(waiting->op, waiting->object, last)) return otherwise;
      blocked_on = describe(waiting->op, waiting->object, {}, names_);
      return Leaving::Blocked;
    }
    if (otherwise == Leaving::Interrupted) return otherwise;
    return std::holds_alternative<Exited>(log_.outcome()) ? Leaving::Ended : Leaving::Unknown;
  }

  bool interrupts(size_t next, AgentId agent) const {
    const Operation& operation = all_.operations[next];
    return operation.kind == OpKind::IrqEnter && operation.agent.parent() == agent;
  }

  const Deadlocked::Waiting* waits_at_end(AgentId agent) const {
    const auto* deadlock = std::get_if<Deadlocked>(&log_.outcome());
    if (deadlock == nullptr) return nullptr;
    for (const auto& waiting : deadlock->waiting)
      if (waiting.agent == agent) return &waiting;
    return nullptr;
  }

  // Returns whether the operation could run on the object just after operation `last`. If no agent uses the
  // object any more, it keeps the state in which an agent waits for it at the end.
  bool could_run(OpKind kind, ObjectId object, size_t last) const {
    if (kind == OpKind::Wait || kind == OpKind::BarrierArrive) return true;  // these block after they begin
    const auto seen = states_.find(object);
    if (seen == states_.end()) return can_run(kind, 0) && can_run(kind, 1);
    const auto next = std::partition_point(seen->second.begin(), seen->second.end(),
                                           [&](const Seen& entry) { return entry.at <= last; });
    return next == seen->second.end() ? can_run(kind, 0) && can_run(kind, 1) : can_run(kind, next->state);
  }

  Interleaving& all_;
  const TraceLog& log_;
  const Names& names_;
  std::map<ObjectId, std::vector<Seen>> states_;
  std::map<AgentId, std::vector<size_t>> of_agent_;
  std::map<AgentId, std::vector<size_t>> wakes_;
};

}  // namespace

const Operation* Interleaving::find(AgentId agent, uint64_t ops) const {
  for (const Operation& operation : operations)
    if (operation.agent == agent && operation.ops == ops) return &operation;
  return nullptr;
}

Interleaving read_interleaving(const TraceLog& log, const Names& names) {
  Interleaving all = Reader(log, names).read();
  SwitchFinder(all, log, names).find();
  return all;
}

}  // namespace slalom
