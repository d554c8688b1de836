#include "detect/kernels/console_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text/characters.h"
#include "detect/kernels/console_frames.h"

namespace slalom {
namespace {

constexpr size_t kNone = std::string_view::npos;
constexpr size_t kFarthestPart = 12;  // lines between the message of a report and its oops or warning

// Where a report names the function of its title.
enum class Where : uint8_t {
  Nowhere,
  Rip,    // where the CPU stood, or its caller
  Trace,  // the call trace
  Head,   // in the first line, else as Rip
  Lock,   // "at: func", else as Trace
};

// One report often has several heads: a message, then "kernel BUG at", then "invalid opcode". The first head
// gives the title.
struct Head {
  std::string title;
  BugKind kind = BugKind::Crash;
  Where where = Where::Rip;
  bool opens = false;    // further heads may follow
  bool follows = false;  // may belong to an open report
  Severity severity = Severity::Failure;
  std::string function;  // empty if the head does not name it
};

struct Rule {
  std::string_view begins;
  std::string_view title;
  BugKind kind;
  Where where;
  bool opens = false;
  bool follows = false;
};

using enum BugKind;
constexpr Rule kRules[] = {
    {"BUG: kernel NULL pointer dereference", "NULL pointer dereference", Crash, Where::Rip, true},
    {"BUG: unable to handle kernel NULL pointer", "NULL pointer dereference", Crash, Where::Rip, true},
    {"BUG: unable to handle page fault", "page fault", Crash, Where::Rip, true},
    {"BUG: unable to handle kernel paging request", "page fault", Crash, Where::Rip, true},
    {"BUG: stack guard page was hit", "stack overflow", Crash, Where::Rip, true},
    {"BUG: TASK stack guard page was hit", "stack overflow", Crash, Where::Rip, true},
    {"BUG: IRQ stack guard page was hit", "stack overflow", Crash, Where::Rip, true},
    {"PANIC: double fault", "double fault", Crash, Where::Rip, true, true},
    {"kernel BUG at ", "kernel BUG", Assertion, Where::Rip, true, true},
    {"Kernel BUG at ", "kernel BUG", Assertion, Where::Rip, true, true},
    {"list_add corruption", "list_add corruption", Crash, Where::Rip, true},
    {"list_add double add", "list_add double add", Crash, Where::Rip, true},
    {"list_del corruption", "list_del corruption", Crash, Where::Rip, true},
    {"refcount_t: underflow; use-after-free", "refcount_t: underflow", UseAfterFree, Where::Rip, true},
    {"refcount_t: addition on 0; use-after-free", "refcount_t: addition on 0", UseAfterFree, Where::Rip,
     true},
    {"refcount_t: saturated; leaking memory", "refcount_t: saturated", Leak, Where::Rip, true},
    {"refcount_t: hit saturation", "refcount_t: saturated", Leak, Where::Rip, true},
    {"refcount_t: decrement hit 0; leaking memory", "refcount_t: decrement hit 0", Leak, Where::Rip, true},
    {"ODEBUG: ", "ODEBUG: misused object", Assertion, Where::Rip, true},
    {"BUG: scheduling while atomic", "scheduling while atomic", Assertion, Where::Trace},
    {"BUG: sleeping function called from invalid context", "sleeping function called from invalid context",
     Assertion, Where::Trace},
    {"BUG: using smp_processor_id() in preemptible", "smp_processor_id() in preemptible code", Assertion,
     Where::Trace},
    {"BUG: spinlock bad magic", "spinlock: bad magic", Assertion, Where::Trace},
    {"BUG: spinlock recursion", "spinlock: recursion", Deadlock, Where::Trace},
    {"BUG: spinlock lockup suspected", "spinlock: lockup", Deadlock, Where::Trace},
    {"BUG: spinlock already unlocked", "spinlock: already unlocked", Assertion, Where::Trace},
    {"BUG: Bad page state", "bad page state", Crash, Where::Trace},
    {"BUG: Bad page map", "bad page map", Crash, Where::Trace},
    {"BUG: Bad rss-counter state", "bad rss-counter state", Assertion, Where::Nowhere},
    {"BUG: workqueue leaked", "workqueue function leaked a lock or atomic context", Assertion, Where::Trace},
    {"BUG: workqueue lockup", "workqueue lockup", Livelock, Where::Nowhere},
    {"BUG: Dentry ", "dentry still in use at unmount", Leak, Where::Nowhere, true},
    {"BUG: soft lockup", "soft lockup", Livelock, Where::Rip},
    {"Watchdog detected hard LOCKUP", "hard lockup", Livelock, Where::Rip},
    {"VFS: Busy inodes after unmount", "VFS: busy inodes after unmount", Leak, Where::Nowhere},
    {"WARNING: possible circular locking", "lockdep: possible circular locking", Deadlock, Where::Lock},
    {"WARNING: possible recursive locking", "lockdep: possible recursive locking", Deadlock, Where::Lock},
    {"WARNING: possible irq lock inversion", "lockdep: possible irq lock inversion", Deadlock, Where::Lock},
    {"WARNING: inconsistent lock state", "lockdep: inconsistent lock state", Deadlock, Where::Lock},
    {"WARNING: HARDIRQ-safe", "lockdep: hardirq-unsafe lock order", Deadlock, Where::Lock},
    {"WARNING: SOFTIRQ-safe", "lockdep: softirq-unsafe lock order", Deadlock, Where::Lock},
    {"WARNING: suspicious RCU usage", "lockdep: suspicious RCU usage", Assertion, Where::Trace},
    {"WARNING: bad unlock balance", "lockdep: bad unlock balance", Assertion, Where::Trace},
    {"WARNING: held lock freed", "lockdep: held lock freed", UseAfterFree, Where::Trace},
    {"WARNING: lock held when returning", "lockdep: lock held at return to user space", Assertion,
     Where::Lock},
    {"WARNING: Nested lock was not taken", "lockdep: nested lock was not taken", Assertion, Where::Trace},
    {"BUG: Invalid wait context", "lockdep: invalid wait context", Assertion, Where::Lock},
};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != kNone;
}

// Returns the text between two marks; empty if either is missing.
std::string_view between(std::string_view text, std::string_view after, std::string_view before) {
  const size_t begin = text.find(after);
  if (begin == kNone) return {};
  const size_t from = begin + after.size();
  const size_t end = text.find(before, from);
  return end == kNone ? std::string_view{} : text.substr(from, end - from);
}

std::optional<Head> sanitizer(std::string_view text) {
  for (const std::string_view tool : {"KASAN", "KFENCE", "KMSAN", "KCSAN"}) {
    const std::string begin = fmt::format("BUG: {}: ", tool);
    if (!text.starts_with(begin)) continue;
    const std::string_view rest = text.substr(begin.size());
    const std::string_view what = rest.substr(0, rest.find(" in "));
    Head head{.title = fmt::format("{}: {}", tool, stable_text(what)), .where = Where::Head};
    if (has(what, "use-after-free")) head.kind = UseAfterFree;
    if (has(what, "double-free") || has(what, "invalid-free") || has(what, "invalid free"))
      head.kind = DoubleFree;
    if (tool != "KCSAN") return head;
    head.kind = DataRace;
    head.severity = Severity::Race;
    // "data-race in a / b", with or without offsets
    const std::string_view places =
        what.size() == rest.size() ? std::string_view{} : rest.substr(what.size() + 4);
    const size_t slash = places.find(" / ");
    const auto function = [](std::string_view place) {
      const std::string known = console_function(place);
      return known.empty() ? stable_text(place.substr(0, place.find_first_of(" ."))) : known;
    };
    std::string a = function(places), b = slash == kNone ? "" : function(places.substr(slash + 3));
    if (!b.empty() && b < a) std::swap(a, b);
    head.function = b.empty() ? a : fmt::format("{} / {}", a, b);
    return head;
  }
  if (text.starts_with("UBSAN: ")) {
    const std::string_view what = text.substr(7, text.find(" in ") == kNone ? kNone : text.find(" in ") - 7);
    return Head{
        .title = fmt::format("UBSAN: {}", stable_text(what)), .kind = Assertion, .where = Where::Trace};
  }
  // SLUB's own checks: "BUG kmalloc-64 (Not tainted): Poison overwritten"
  if (text.starts_with("BUG ") && has(text, "): ")) {
    const std::string_view what = text.substr(text.find("): ") + 3);
    const BugKind kind = has(what, "already free") ? DoubleFree : has(what, "Poison") ? UseAfterFree : Crash;
    return Head{.title = fmt::format("SLUB: {}", stable_text(what)), .kind = kind, .where = Where::Trace};
  }
  return std::nullopt;
}

// File systems name the function in the message. The title leaves the device out.
std::optional<Head> file_system(std::string_view text) {
  const auto head = [](std::string_view what, std::string_view function, std::string_view message) {
    const bool named = !function.empty() && std::all_of(function.begin(), function.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':';
    });
    Head result{.title = std::string(what), .kind = Assertion, .where = Where::Nowhere};
    if (named)
      result.function = function;
    else
      result.title += ": " + stable_text(message);
    return result;
  };
  for (const std::string_view name : {"EXT4-fs error", "BTRFS: error", "BTRFS error", "BTRFS critical"}) {
    if (!text.starts_with(name) || !text.substr(name.size()).starts_with(" (device ")) continue;
    const size_t close = text.find(')');
    if (close == kNone) return head(name, {}, "");
    const std::string_view what = name.starts_with("BTRFS") ? "BTRFS error" : name;
    const std::string_view rest = text.substr(close + 1);
    if (rest.starts_with(" in ")) return head(what, between(rest, " in ", ":"), rest.substr(4));
    if (!rest.starts_with(": ")) return head(what, {}, rest);
    const std::string_view message = rest.substr(2);
    return head(what, name.starts_with("EXT4") ? between(rest, ": ", ":") : std::string_view{}, message);
  }
  if (text.starts_with("EXT2-fs (") && has(text, "): error: "))
    return head("EXT2-fs error", between(text, "): error: ", ":"), text.substr(text.find("): error: ") + 10));
  if (text.starts_with("FAT-fs (") && has(text, "): error, "))
    return head("FAT-fs error", {}, text.substr(text.find("): error, ") + 10));
  if (text.starts_with("XFS: Assertion failed: "))
    return Head{.title = fmt::format("XFS assertion failed: {}", between(text, "failed: ", ", file")),
                .kind = Assertion,
                .where = Where::Nowhere,
                .opens = true};
  if (!text.starts_with("XFS (")) return std::nullopt;
  const size_t close = text.find("): ");
  const std::string_view message = close == kNone ? std::string_view{} : text.substr(close + 3);
  if (message.starts_with("Internal error ")) return head("XFS internal error", first_function(message), "");
  if (message.starts_with("Metadata ") && has(message, " detected at "))
    return head(has(message, "CRC") ? "XFS metadata CRC error" : "XFS metadata corruption",
                first_function(message), "");
  if (message.starts_with("Corruption of "))
    return head("XFS corruption of in-memory data", first_function(message), "");
  return std::nullopt;
}

// "general protection fault, probably for ...: 0000 [#1] SMP", "Oops: Oops: 0002 [#1]"
std::optional<Head> oops(std::string_view text) {
  const size_t number = text.find(" [#");
  if (number == kNone || number < 6 || text.substr(number - 6, 2) != ": ") return std::nullopt;
  if (!std::all_of(text.begin() + static_cast<ptrdiff_t>(number) - 4,
                   text.begin() + static_cast<ptrdiff_t>(number), is_hex))
    return std::nullopt;
  std::string_view what = text.substr(0, number - 6);
  if (what.starts_with("Oops: ")) what.remove_prefix(6);
  if (what == "Oops") what = "oops";
  return Head{.title = stable_text(what.substr(0, what.find(','))), .opens = true, .follows = true};
}

std::optional<Head> panic(std::string_view text) {
  constexpr std::string_view kPanic = "Kernel panic - not syncing: ";
  if (!text.starts_with(kPanic)) return std::nullopt;
  const std::string_view why = text.substr(kPanic.size());
  if (why.starts_with("stack-protector"))
    return Head{.title = "stack corruption (stack-protector)", .where = Where::Head};
  return Head{
      .title = fmt::format("kernel panic: {}", stable_text(why)), .where = Where::Nowhere, .follows = true};
}

bool is_cut(std::string_view text) {
  return text.starts_with("------------[ cut here ]");
}
bool is_panic(const Head& head) {
  return head.title.starts_with("kernel panic: ");
}

// Subsystems put their names before their messages, and lockdep once put brackets around them.
std::string_view without_speaker(std::string_view text) {
  for (const std::string_view speaker : {"NMI watchdog: ", "watchdog: ", "rcu: ", "traps: ", "[ "})
    if (text.starts_with(speaker)) text.remove_prefix(speaker.size());
  if (text.starts_with("CPU") && has(text, ": Watchdog detected")) text.remove_prefix(text.find(": ") + 2);
  return text;
}

std::optional<Head> head_of(std::string_view line) {
  const std::string_view text = without_speaker(line);
  for (const Rule& rule : kRules)
    if (text.starts_with(rule.begins))
      return Head{std::string(rule.title), rule.kind, rule.where, rule.opens, rule.follows};
  if (text.starts_with("WARNING: CPU: ") || (text.starts_with("WARNING: ") && has(text, ", CPU#")))
    return Head{.title = "WARNING", .kind = Assertion, .where = Where::Head, .follows = true};
  if (text.starts_with("INFO: rcu") && has(text, "stall"))
    return Head{.title = "RCU stall", .kind = Livelock};
  if (text.starts_with("INFO: task ") && has(text, " blocked ") && has(text, "for more than "))
    return Head{.title = "hung task", .kind = Deadlock, .where = Where::Trace};
  if (auto found = sanitizer(text)) return found;
  if (auto found = file_system(text)) return found;
  if (auto found = panic(text)) return found;
  if (auto found = oops(text)) return found;
  if (text.starts_with("BUG: "))
    return Head{.title = stable_text(text), .kind = Assertion, .where = Where::Trace, .opens = true};
  return std::nullopt;
}

std::string function_of(const Head& head, std::span<const std::string_view> texts) {
  if (!head.function.empty()) return head.function;
  switch (head.where) {
    case Where::Nowhere:
      return {};
    case Where::Rip:
      return telling_function(texts);
    case Where::Trace:
      return telling_caller(texts);
    case Where::Head: {
      const std::string function = first_function(texts[0]);
      if (!function.empty() && !is_machinery(function)) return function;
      const std::string caller = telling_caller(texts);
      return caller.empty() ? function : caller;
    }
    case Where::Lock:
      for (const std::string_view text : texts)
        if (const size_t at = text.find(" at: "); at != kNone)
          if (std::string function = console_function(text.substr(at + 5)); !function.empty())
            return function;
      return telling_caller(texts);
  }
  return {};
}

// Improves the head with information from the whole report.
void refine(Head& head, std::span<const std::string_view> texts) {
  const auto says = [&](std::string_view begin) {
    return std::any_of(texts.begin(), texts.end(),
                       [&](std::string_view text) { return text.starts_with(begin); });
  };
  if (head.title == "general protection fault" && says("KASAN: null-ptr-deref"))
    head.title = "NULL pointer dereference";
  if (head.title == "NULL pointer dereference" && says("RIP: 0010:0x0"))
    head.title = "call of a NULL pointer";
}

}  // namespace

std::string_view console_text(std::string_view line) {
  const auto skip = [&](char open, char close) {
    if (line.empty() || line[0] != open) return false;
    const size_t end = line.find(close);
    if (end == kNone || end > 24) return false;
    const std::string_view inside = line.substr(1, end - 1);
    const bool plain = std::all_of(inside.begin(), inside.end(), [](char c) {
      return is_digit(c) || c == ' ' || c == '.' || c == 'T' || c == 'C';
    });
    if (!plain || inside.empty()) return false;
    line.remove_prefix(end + 1);
    return true;
  };
  skip('<', '>');
  const bool timed = skip('[', ']');
  if (timed) skip('[', ']');  // the caller
  if (timed && line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

bool starts_report(std::string_view text) {
  return is_cut(text) || head_of(text).has_value();
}

bool ends_report(std::string_view text) {
  return text.starts_with("---[ end ");
}

std::vector<ConsoleReport> find_reports(std::span<const std::string_view> lines) {
  std::vector<std::string_view> texts;
  for (const std::string_view line : lines) texts.push_back(console_text(line));
  std::vector<ConsoleReport> reports;
  std::optional<Head> open;
  size_t first = 0, begin = 0;  // index of the open report's head, and of its first line
  size_t last_head = 0;         // the latest of its heads
  size_t cut = kNone;
  const auto close = [&](size_t end) {
    if (!open) return;
    const std::span<const std::string_view> own(texts.data() + first, end - first);
    refine(*open, own);
    const std::string function = function_of(*open, own);
    reports.push_back({open->kind, open->severity,
                       function.empty() ? open->title : fmt::format("{} in {}", open->title, function), begin,
                       end - begin});
    open.reset();
  };
  for (size_t i = 0; i < texts.size(); ++i) {
    if (is_cut(texts[i])) {
      cut = i;
      if (open && !(open->opens && i - last_head <= kFarthestPart)) close(i);
      continue;
    }
    if (ends_report(texts[i])) {
      close(i + 1);
      continue;
    }
    std::optional<Head> head = head_of(texts[i]);
    if (!head) continue;
    if (open && open->opens && head->follows && !is_panic(*head) && i - last_head <= kFarthestPart) {
      open->opens = head->opens;
      last_head = i;
      continue;
    }
    const bool was_cut = cut != kNone && i - cut <= kFarthestPart && (!open || cut > last_head);
    close(was_cut ? cut : i);
    const bool better = std::any_of(reports.begin(), reports.end(), [](const ConsoleReport& report) {
      return report.severity == Severity::Failure;
    });
    if (is_panic(*head) && better) continue;
    open = std::move(head);
    first = last_head = i;
    begin = was_cut ? cut : i;
  }
  close(texts.size());
  return reports;
}

}  // namespace slalom
