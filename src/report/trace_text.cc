#include "report/trace_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>

#include "report/core/interleaving.h"
#include "report/core/object_names.h"
#include "report/core/summary.h"
#include "report/kernels/kernel_trace.h"
#include "trace/memory_order.h"

namespace slalom {
namespace {

// Caches names, because a long trace repeats them.
class NameCache {
 public:
  explicit NameCache(const Names& names) : names_(names) {}
  const std::string& agent(AgentId id) {
    return cached(agents_, id, [&] { return id ? names_.agent(id) : "-"; });
  }
  const std::string& object(ObjectId id) {
    return cached(objects_, id, [&] { return names_.object(id); });
  }
  const std::string& whole(ObjectId id) {
    return cached(wholes_, id, [&] { return names_.whole(id); });
  }
  const std::string& place(Place pc) {
    return cached(places_, pc, [&] { return names_.place(pc); });
  }

 private:
  template <typename Key, typename Ask>
  const std::string& cached(std::map<Key, std::string>& known, Key key, Ask ask) {
    const auto [entry, added] = known.try_emplace(key);
    if (added) entry->second = printable(ask());
    return entry->second;
  }

  const Names& names_;
  std::map<AgentId, std::string> agents_;
  std::map<ObjectId, std::string> objects_, wholes_;
  std::map<Place, std::string> places_;
};

std::string access_value(const Access& access) {
  const std::string value = value_text(access.value, access.size);
  if (access.op() == OpKind::CompareExchange) return value + (access.wrote ? ", swapped" : ", not swapped");
  return value;
}

std::string event_value(const Event& event, NameCache& names) {
  switch (event.op) {
    case OpKind::Choose:
    case OpKind::Alloc:
      return std::to_string(event.value);
    case OpKind::Signal:
    case OpKind::Broadcast:
      return fmt::format("wakes {}", event.value);
    case OpKind::TryLock:
      return event.value != 0 ? "taken" : "not taken";
    case OpKind::Note:
    case OpKind::Fail:
      return fmt::format("\"{}\"", printable(event.text));
    case OpKind::Wake:
    case OpKind::Spawn:
    case OpKind::Join:
      return event.other ? names.agent(event.other) : "";
    case OpKind::Free:
    case OpKind::HeapUse:
      return event.state != 0 ? "live" : "freed";
    case OpKind::SemWait:
    case OpKind::SemPost:
      return fmt::format("count {}", event.state);
    default:
      return "";
  }
}

std::string kernel_event(const Event& event, uint64_t ordinal, const Names& names) {
  switch (event.op) {
    case OpKind::SyscallEnter:
      return printable(names.system_call(event.agent, ordinal, event.value));
    case OpKind::SyscallExit:
      return printable(names.system_result(event.value));
    case OpKind::IrqEnter:
      return fmt::format("vector {:#x}", event.value);
    case OpKind::Console:
    case OpKind::Note:
    case OpKind::Fail:
      return fmt::format("\"{}\"", printable(event.text));
    default:
      return fmt::format("{:#x}", event.object.raw);
  }
}

std::string kernel_value(const Access& access) {
  if (access.size > 8) return fmt::format("{} bytes #{:016x}", access.size, access.value);
  return access_value(access);
}

// Prints one line for each access and event. Computes once what several instructions have in common.
void print_kernel_trace(std::ostream& out, const TraceLog& log, const Names& names) {
  constexpr size_t kPlace = 40;
  NameCache cache(names);
  std::map<AgentId, uint64_t> calls;
  size_t agents = 5;
  for (const TraceLog::Batch& batch : log.batches())
    agents = std::max(agents, display_width(cache.agent(batch.header.agent)));
  for (const Event& event : log.events()) agents = std::max(agents, display_width(cache.agent(event.agent)));
  const auto start = [&](uint64_t step, AgentId agent, Place pc) {
    out << fmt::format("{:>9}  {}  {}  ", step, pad(cache.agent(agent), agents),
                       pad(agent ? cache.place(pc) : "", kPlace));
  };
  for (const TraceLog::Entry& entry : log.order()) {
    if (entry.what == TraceLog::Entry::What::Event) {
      const Event& event = log.events()[entry.index];
      const uint64_t ordinal = event.op == OpKind::SyscallEnter ? calls[event.agent]++ : 0;
      start(event.step.raw, event.agent, event.pc);
      out << fmt::format("{} {}\n", name(event.op), kernel_event(event, ordinal, names));
      continue;
    }
    const TraceLog::Batch& batch = log.batches()[entry.index];
    for (uint64_t i = 0; i < batch.count; ++i) {
      const Access& access = log.accesses()[batch.first + i];
      // The value of a compare-exchange is the value that it found.
      const bool stores =
          access.op() == OpKind::Store || (access.op() == OpKind::ReadModifyWrite && access.wrote != 0);
      start(batch.header.first_step.raw + access.retired, batch.header.agent, access.pc());
      out << fmt::format("{} {} {} {}\n", name(access.op()), cache.object(access.address()),
                         stores ? "<-" : "->", kernel_value(access));
    }
  }
  out << fmt::format("end: {}\n", outcome_text(log.outcome(), names));
}

bool has_object(OpKind kind) {
  switch (kind) {
    case OpKind::None:
    case OpKind::Yield:
    case OpKind::Choose:
    case OpKind::Note:
    case OpKind::Fail:
      return false;
    default:
      return true;
  }
}

}  // namespace

std::string trace_text(const TraceLog& log, const Names& names) {
  const ObjectNames named(log, names);
  NameCache cache(named);
  Table table({{"step", Table::Align::Right}, {"agent"}, {"place"}, {"operation"}, {"object"}, {"value"}});
  for (const TraceLog::Entry& entry : log.order()) {
    if (entry.what == TraceLog::Entry::What::Event) {
      const Event& event = log.events()[entry.index];
      const std::string_view word = destroys(event) ? "destroy" : name(event.op);
      const bool is_whole =
          event.op == OpKind::Alloc || event.op == OpKind::Free || event.op == OpKind::HeapUse;
      table.add({std::to_string(event.step.raw), cache.agent(event.agent),
                 event.agent ? cache.place(event.pc) : "", std::string(word),
                 !has_object(event.op) ? ""
                 : is_whole            ? cache.whole(event.object)
                                       : cache.object(event.object),
                 destroys(event) ? "" : event_value(event, cache)});
      continue;
    }
    const TraceLog::Batch& batch = log.batches()[entry.index];
    for (uint64_t i = 0; i < batch.count; ++i) {
      const Access& access = log.accesses()[batch.first + i];
      table.add({std::to_string(batch.header.first_step.raw + access.retired),
                 cache.agent(batch.header.agent), cache.place(access.pc()), std::string(name(access.op())),
                 cache.object(access.address()), knows_value(access) ? access_value(access) : "?"});
    }
  }
  return table.text() + fmt::format("end: {}\n", outcome_text(log.outcome(), named));
}

void print_trace(std::ostream& out, const TraceLog& log, const Names& names) {
  if (is_kernel_trace(log)) return print_kernel_trace(out, log, names);
  out << trace_text(log, names);
}

}  // namespace slalom
