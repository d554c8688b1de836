#include "report/trace_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <ostream>

#include "base/check.h"
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

// Finds out whether a trace is of a kernel, and the width of its agent column, before the first line is
// printed.
class KernelOutline final : public EventSink {
 public:
  explicit KernelOutline(NameCache& cache) : cache_(cache) {}
  void on_accesses(std::span<const Access>, const BatchHeader& header) override { see(header.agent); }
  void on_event(const Event& event) override {
    is_kernel_ |= is_of_kernel(event);
    see(event.agent);
  }
  void on_end(const Outcome&) override {}
  bool is_kernel() const { return is_kernel_; }
  size_t agents() const { return agents_; }  // width of their column

 private:
  void see(AgentId agent) {
    if (agent == last_) return;
    last_ = agent;
    agents_ = std::max(agents_, display_width(cache_.agent(agent)));
  }

  NameCache& cache_;
  AgentId last_;
  size_t agents_ = 5;
  bool is_kernel_ = false;
};

// Prints one line for each access and event.
class KernelPrinter final : public EventSink {
 public:
  KernelPrinter(std::ostream& out, const Names& names, NameCache& cache, size_t agents)
      : out_(out), names_(names), cache_(cache), agents_(agents) {}

  void on_event(const Event& event) override {
    const uint64_t ordinal = event.op == OpKind::SyscallEnter ? calls_[event.agent]++ : 0;
    start(event.step.raw, event.agent, event.pc);
    out_ << fmt::format("{} {}\n", name(event.op), kernel_event(event, ordinal, names_));
  }
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override {
    for (const Access& access : accesses) {
      // The value of a compare-exchange is the value that it found.
      const bool stores =
          access.op() == OpKind::Store || (access.op() == OpKind::ReadModifyWrite && access.wrote != 0);
      start(header.first_step.raw + access.retired, header.agent, access.pc());
      out_ << fmt::format("{} {} {} {}\n", name(access.op()), cache_.object(access.address()),
                          stores ? "<-" : "->", kernel_value(access));
    }
  }
  void on_end(const Outcome& outcome) override {
    out_ << fmt::format("end: {}\n", outcome_text(outcome, names_));
  }

 private:
  void start(uint64_t step, AgentId agent, Place pc) {
    constexpr size_t kPlace = 40;
    out_ << fmt::format("{:>9}  {}  {}  ", step, pad(cache_.agent(agent), agents_),
                        pad(agent ? cache_.place(pc) : "", kPlace));
  }

  std::ostream& out_;
  const Names& names_;
  NameCache& cache_;
  const size_t agents_;
  std::map<AgentId, uint64_t> calls_;
};

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

constexpr std::array<std::string_view, 6> kTitles = {"step",      "agent",  "place",
                                                     "operation", "object", "value"};
using Row = std::array<std::string, kTitles.size()>;

// Makes a row of each access and event.
class RowMaker : public EventSink {
 public:
  explicit RowMaker(NameCache& names) : names_(names) {}

  void on_event(const Event& event) final {
    const std::string_view word = destroys(event) ? "destroy" : name(event.op);
    add({std::to_string(event.step.raw), names_.agent(event.agent), event.agent ? names_.place(event.pc) : "",
         std::string(word), object_text(event), destroys(event) ? "" : event_value(event, names_)});
  }
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) final {
    for (const Access& access : accesses)
      add({std::to_string(header.first_step.raw + access.retired), names_.agent(header.agent),
           names_.place(access.pc()), std::string(name(access.op())), names_.object(access.address()),
           knows_value(access) ? access_value(access) : "?"});
  }

 protected:
  virtual void add(const Row& row) = 0;

 private:
  // Events of the heap are about a whole block, not about what is at its beginning.
  std::string object_text(const Event& event) {
    if (!has_object(event.op)) return {};
    const bool is_whole =
        event.op == OpKind::Alloc || event.op == OpKind::Free || event.op == OpKind::HeapUse;
    return is_whole ? names_.whole(event.object) : names_.object(event.object);
  }

  NameCache& names_;
};

class WidthMeter final : public RowMaker {
 public:
  using Widths = std::array<size_t, kTitles.size()>;
  explicit WidthMeter(NameCache& names) : RowMaker(names) {
    for (size_t i = 0; i < kTitles.size(); ++i) widths_[i] = kTitles[i].size();
  }
  void on_end(const Outcome&) override {}
  const Widths& widths() const { return widths_; }

 private:
  void add(const Row& row) override {
    for (size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], display_width(row[i]));
  }
  Widths widths_{};
};

class RowPrinter final : public RowMaker {
 public:
  RowPrinter(std::ostream& out, const Names& names, NameCache& cache, const WidthMeter::Widths& widths)
      : RowMaker(cache), out_(out), names_(names), widths_(widths) {
    Row titles;
    std::ranges::copy(kTitles, titles.begin());
    add(titles);
  }
  void on_end(const Outcome& outcome) override {
    out_ << fmt::format("end: {}\n", outcome_text(outcome, names_));
  }

 private:
  void add(const Row& row) override {
    std::string line = pad_left(row[0], widths_[0]);
    for (size_t i = 1; i < row.size(); ++i) line += "  " + pad(row[i], widths_[i]);
    while (line.ends_with(' ')) line.pop_back();
    out_ << line << '\n';
  }

  std::ostream& out_;
  const Names& names_;
  const WidthMeter::Widths widths_;
};

}  // namespace

Result<void> print_trace(std::ostream& out, const TraceSource& source, const Names& names) {
  NameCache cache(names);
  KernelOutline outline(cache);
  TRY(source(outline));
  if (outline.is_kernel()) {
    KernelPrinter printer(out, names, cache, outline.agents());
    return source(printer);
  }
  ObjectNames named(names);
  ObjectNames::BlockReader blocks(named);
  TRY(source(blocks));
  ObjectNames::Reader reader(named);
  TRY(source(reader));
  NameCache named_cache(named);
  WidthMeter meter(named_cache);
  TRY(source(meter));
  RowPrinter printer(out, named, named_cache, meter.widths());
  return source(printer);
}

void print_trace(std::ostream& out, const TraceLog& log, const Names& names) {
  const Result<void> printed = print_trace(
      out,
      [&](EventSink& sink) -> Result<void> {
        log.replay_into(sink);
        return {};
      },
      names);
  CHECK(printed.ok(), "{}", printed.error().message);
}

}  // namespace slalom
