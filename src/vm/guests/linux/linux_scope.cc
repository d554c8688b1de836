#include "vm/guests/linux/linux_scope.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/text/characters.h"
#include "symbols/code_part.h"

namespace slalom::vm {
namespace {

// Prefixes of function names.
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

// Prefixes of function names without leading underscores; see scheduling_code(). They are long enough to
// leave out unrelated code: mounts have propagate_..., pipes account_..., and block devices rq_...
constexpr std::string_view kScheduling[] = {
    // scheduler
    "account_cfs", "account_entity", "account_guest", "account_idle", "account_llc", "account_process",
    "account_steal", "account_system", "account_user", "active_load_balance", "attach_task",
    "available_idle_cpu", "calc_global", "calc_load", "can_migrate", "check_preempt", "clear_buddies",
    "cpu_util", "cpuacct_", "dequeue_entity", "dequeue_pushable", "dequeue_rt", "dequeue_task",
    "detach_entity", "detach_task", "effective_load", "enqueue_entity", "enqueue_pushable", "enqueue_rt",
    "enqueue_task", "entity_", "find_busiest", "find_idlest", "finish_task_switch", "idle_cpu", "irqtime_",
    "load_balance", "migrate_task", "newidle_balance", "nohz_", "pick_next_", "pick_task", "place_entity",
    "propagate_entity", "psi_", "put_prev_", "rebalance_domains", "resched_curr", "reweight_", "rq_attach",
    "rq_clock", "rq_offline", "rq_online", "run_rebalance", "sched_balance", "sched_clock", "schedule",
    "scheduler_tick", "select_idle", "select_task_rq", "set_next_", "set_task_cpu", "task_tick", "task_util",
    "trigger_load_balance", "ttwu_", "update_blocked", "update_cfs", "update_curr", "update_group",
    "update_idle", "update_load_avg", "update_min_vruntime", "update_rq", "update_rt", "update_sd",
    "update_sg", "update_tg", "wakeup_preempt", "yield_task",
    // timekeeping
    "do_timer", "ktime_", "tick_", "timekeeping_", "update_process_times", "update_vsyscall",
    "update_wall_time"};

bool is_ignored(const Symbol& symbol) {
  return symbol.module.empty() && std::ranges::any_of(kIgnored, [&](std::string_view beginning) {
           return symbol.name.starts_with(beginning);
         });
}

}  // namespace

bool is_scope(std::string_view text) {
  const std::optional<CodePart> part = CodePart::parse(text);
  constexpr std::string_view kOthers = ".:*";
  return part && std::ranges::all_of(part->name, [&](char c) {
           return is_name_character(c) || kOthers.find(c) != std::string_view::npos;
         });
}

Result<Scope> find_scope(const SymbolTable& symbols, std::span<const std::string> wanted) {
  Scope scope;
  if (wanted.empty()) return scope;
  std::set<std::string> modules;
  std::vector<CodePart> parts;
  for (const std::string& text : wanted) {
    std::optional<CodePart> part = CodePart::parse(text);
    if (!part) return error("\"{}\": {}", text, kScopeAdvice);
    parts.push_back(*std::move(part));
  }
  std::vector<bool> found(wanted.size());
  for (const Symbol& symbol : symbols.symbols()) {
    if (!symbol.is_code() || symbol.is_offset) continue;
    if (!symbol.module.empty()) modules.insert(symbol.module);
    bool in_scope = false;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const CodePart& part = parts[i];
      if (part.is_module ? symbol.module == part.name
                         : part.matches_function(symbol.name) || part.matches_function(symbol.full_name()))
        found[i] = in_scope = true;
    }
    if (in_scope || is_ignored(symbol)) scope.add(symbol.address, !in_scope);
  }
  for (size_t i = 0; i < wanted.size(); ++i)
    if (!found[i] && parts[i].is_module)
      return error("the scope \"{}\" is no module that is loaded; these are: {}", wanted[i],
                   modules.empty() ? "none" : fmt::format("{}", fmt::join(modules, ", ")));
    else if (!found[i])
      return error(
          "the scope \"{}\" is no function of this kernel or of a loaded module: is it spelled as in "
          "/proc/kallsyms?",
          wanted[i]);
  return scope;
}

std::vector<CodeRange> scheduling_code(const SymbolTable& symbols) {
  std::vector<CodeRange> found;
  for (const Symbol& symbol : symbols.symbols()) {
    if (!symbol.is_code() || symbol.is_offset || !symbol.module.empty()) continue;
    std::string_view name = symbol.name;
    name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
    if (std::ranges::any_of(kScheduling, [&](std::string_view one) { return name.starts_with(one); }))
      found.push_back({symbol.address, symbol.address + symbol.size});
  }
  return found;
}

CodeRange module_code(const SymbolTable& symbols) {
  CodeRange all{~uint64_t{0}, 0};
  for (const Symbol& symbol : symbols.symbols()) {
    if (!symbol.is_code() || symbol.is_offset || symbol.module.empty()) continue;
    all.begin = std::min(all.begin, symbol.address);
    all.end = std::max(all.end, symbol.address + symbol.size);
  }
  return all.end == 0 ? CodeRange{} : all;
}

}  // namespace slalom::vm
