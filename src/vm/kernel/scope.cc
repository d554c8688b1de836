#include "vm/kernel/scope.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>

namespace slalom::vm {
namespace {

constexpr std::string_view kModule = "module:", kFunction = "function:";

// Beginnings of names.
constexpr std::string_view kIgnored[] = {
    // scheduler
    "schedule", "__schedule", "preempt_schedule", "__cond_resched", "try_to_wake_up", "wake_up_process",
    "wake_up_q", "default_wake_function", "finish_task_switch", "io_schedule", "sched_",
    // timekeeping
    "ktime_", "timekeeping_", "tick_", "hrtimer_", "get_jiffies", "jiffies", "current_time",
    // RCU
    "__rcu_read_", "rcu_", "call_rcu", "kvfree_call_rcu", "synchronize_rcu", "__call_rcu",
    // allocators
    "kmem_cache_alloc", "kmem_cache_free", "__kmem_cache_", "kmalloc", "__kmalloc", "kfree", "kvfree",
    "kvmalloc", "krealloc", "ksize", "slab_", "__slab_", "___slab_", "vmalloc", "__vmalloc", "vfree",
    "__alloc_pages", "__get_free_pages", "__free_pages", "free_pages", "folio_alloc", "__folio_alloc",
    "pcpu_alloc", "free_percpu",
    // printk
    "printk", "_printk", "vprintk", "__warn", "warn_slowpath"};

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return name == pattern;
}

bool is_ignored(const Symbol& symbol) {
  return symbol.module.empty() && std::ranges::any_of(kIgnored, [&](std::string_view beginning) {
           return symbol.name.starts_with(beginning);
         });
}

}  // namespace

bool is_scope(std::string_view text) {
  for (const std::string_view kind : {kModule, kFunction})
    if (text.starts_with(kind)) {
      const std::string_view name = text.substr(kind.size());
      const size_t star = name.find('*');
      const auto is_part = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || strchr("_.:*", c);
      };
      return !name.empty() && name != "*" && std::ranges::all_of(name, is_part) &&
             (star == std::string_view::npos || (kind == kFunction && star == name.size() - 1));
    }
  return false;
}

Result<Scope> find_scope(const SymbolTable& symbols, std::span<const std::string> wanted) {
  Scope scope;
  if (wanted.empty()) return scope;
  std::set<std::string> modules;
  std::vector<bool> found(wanted.size());
  for (const Symbol& symbol : symbols.symbols()) {
    if (!symbol.is_code() || symbol.is_offset) continue;
    if (!symbol.module.empty()) modules.insert(symbol.module);
    bool in_scope = false;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const std::string_view text = wanted[i];
      const bool is_module = text.starts_with(kModule);
      const std::string_view name = text.substr((is_module ? kModule : kFunction).size());
      if (is_module ? symbol.module == name : matches(name, symbol.name) || matches(name, symbol.full_name()))
        found[i] = in_scope = true;
    }
    if (in_scope || is_ignored(symbol)) scope.add(symbol.address, !in_scope);
  }
  for (size_t i = 0; i < wanted.size(); ++i)
    if (!found[i] && wanted[i].starts_with(kModule))
      return error("the scope \"{}\" is no module that is loaded; these are: {}", wanted[i],
                   modules.empty() ? "none" : fmt::format("{}", fmt::join(modules, ", ")));
    else if (!found[i])
      return error(
          "the scope \"{}\" is no function of this kernel or of a loaded module: is it spelled as in "
          "/proc/kallsyms?",
          wanted[i]);
  return scope;
}

void Scope::watch(FunctionWatch& watch) const {
  entries_.for_each([&](uint64_t entry, uint8_t) { watch.add(entry); });
}

bool Scope::is_inside(const FunctionWatch::Open& open, uint64_t pointer, uint64_t end) const {
  for (auto at = open.lower_bound(pointer); at != open.end() && at->first < end; ++at)
    for (auto frame = at->second.rbegin(); frame != at->second.rend(); ++frame)
      if (const uint8_t* kind = entries_.find(frame->function)) return *kind != 1;
  return false;
}

}  // namespace slalom::vm
